"""One DNS server that takes updates (RFC 2136), asked and updated over TCP."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from typing import NamedTuple

import dns.tsig
from dns.rcode import Rcode

from dkimctl.dns import transport
from dkimctl.dns.messages import QueryLog, Question, rcode_text
from dkimctl.dns.transport import ConnectionLost, Pipeline, Response, Streams, UnreadableAnswer
from dkimctl.dns.tsig import NotSigned, NotTrusted, SignatureRefused, Signer
from dkimctl.errors import DkimctlError, DnsRefused, ServiceError
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.text.addresses import Address
from dkimctl.text.escaping import printable

_REFUSED = (Rcode.REFUSED, Rcode.NOTAUTH)
_BADSIG = 16  # as a TSIG error (RFC 8945 section 3); as an RCODE, it is BADVERS
_HEADER = 12  # bytes
_RESPONSE_TO_UPDATE, _KIND = 0xA8, 0xF8  # in the third byte: QR, and the opcode (RFC 2136)
_MAX_AGE = 10.0  # seconds since a question was prefetched
_RUN_AGAIN = "run the same command again"
_ALLOW = (
    "{start} to change TXT records of the zone: allow-update or update-policy in BIND, an "
    "ACL with the action update in Knot DNS, dnsupdate=yes and TSIG-ALLOW-DNSUPDATE in PowerDNS"
)
_SEE_LOG = "the server's log says why"


class UpdateTimeouts(NamedTuple):
    """The longest waits, in seconds; `change`: until a change that was accepted can be read."""

    connect: float = 5.0
    answer: float = 10.0
    update: float = 60.0
    change: float = 2.0


class UnknownResult(Exception):
    """An update was sent, and may have been made. `error` is why that is not known."""

    def __init__(self, error: DkimctlError) -> None:
        super().__init__(error.message)
        self.error = error


class UpdateServer:
    """A DNS server that is asked and updated over TCP, with signatures if there is a key."""

    def __init__(self, address: Address, key: TsigKey | None, timeouts: UpdateTimeouts) -> None:
        self.timeouts = timeouts
        self._address = address
        self._key = printable(key.name) if key else ""
        self.signer: Signer | None = None
        if key is not None:
            self.signer = Signer(dns.tsig.Key(key.name, key.secret.reveal(), key.algorithm))
        self._latest: tuple[str, int] | None = None  # the address that answered last
        self._log = QueryLog(address)
        self._prefetched: dict[Question, Response] = {}
        self._prefetched_at = 0.0  # time.monotonic

    def prefetch(self, questions: Iterable[Question]) -> dict[Question, Response]:
        """The responses to all questions; soon after, `ask` gives them once more."""
        self._prefetched = {}
        responses = self.ask(questions)
        self._prefetched, self._prefetched_at = dict(responses), time.monotonic()
        return responses

    def ask(self, questions: Iterable[Question]) -> dict[Question, Response]:
        """The responses to all questions. Raises DkimctlError."""
        if time.monotonic() > self._prefetched_at + _MAX_AGE:
            self._prefetched = {}
        pipeline = Pipeline(
            self._connect, self._log, timeout=self.timeouts.answer, signer=self.signer
        )
        unasked = list(dict.fromkeys(questions))
        known = {one: self._prefetched.pop(one) for one in unasked if one in self._prefetched}
        unasked = [question for question in unasked if question not in known]
        try:
            if unasked:
                asyncio.run(pipeline.ask(unasked))
        except (SignatureRefused, NotTrusted) as wrong:
            raise self._distrusted(wrong) from None
        except ConnectionLost as lost:
            question = next(one for one in unasked if one not in pipeline.responses)
            raise self.no_answer(str(lost), str(question)) from None
        except UnreadableAnswer as unreadable:
            raise self.no_answer(str(unreadable), str(unreadable.question)) from None
        return known | pipeline.responses

    def update(self, message: bytes, zone: str) -> int:
        """The RCODE of the answer to an update. Raises DkimctlError if it was not made."""
        self._prefetched = {}
        wire, mac = self.signer.sign(message) if self.signer else (message, b"")

        async def send() -> bytes:
            return await transport.exchange(await self._connect(), wire, self.timeouts.update)

        what = f"the update of the zone {zone}"
        try:
            answer = asyncio.run(send())
            if self.signer is not None:
                answer = self.signer.verify(answer, mac)
        except SignatureRefused as refused:
            raise self._distrusted(refused) from None
        except ConnectionLost as lost:
            raise UnknownResult(self.no_answer(str(lost), what)) from None
        except NotTrusted as wrong:
            raise UnknownResult(self._distrusted(wrong)) from None
        if len(answer) < _HEADER or answer[2] & _KIND != _RESPONSE_TO_UPDATE:
            raise UnknownResult(self.no_answer("it cannot be read", what))
        return answer[3] & 0x0F

    async def _connect(self) -> Streams:
        """Tries all addresses of its name, first the latest that answered. Raises ServiceError."""
        try:
            found = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ServiceError(
                f"cannot find the address of the DNS server {self._address}: {_reason(error)}",
                hint="check `server` in the config file, or write its IP address",
            ) from None
        addresses = [(str(one[4][0]), int(one[4][1])) for one in found]
        failure: OSError | None = None
        for address in sorted(addresses, key=lambda address: address != self._latest):
            try:
                connected = socket.create_connection(address, self.timeouts.connect)
                streams = await asyncio.open_connection(sock=connected)
            except OSError as error:
                failure = error
                continue
            self._latest = address
            return streams
        raise ServiceError(
            f"cannot connect to the DNS server {self._address} over TCP: {_reason(failure)}",
            hint="check `server` in the config file, that the server runs, and that a firewall "
            "lets TCP pass",
        )

    def refused_update(self, rcode: int, zone: str) -> DkimctlError:
        """For an update that is answered with an RCODE other than of a prerequisite."""
        zone, allow = printable(zone), _ALLOW.format(start=self._allow())
        set_primary = "set `server` to the primary server"
        frozen = f"{_SEE_LOG}: the zone may be frozen, or its files may not be writable"
        reasons: dict[int, tuple[type[ServiceError | DnsRefused], str, str]] = {
            Rcode.REFUSED: (
                DnsRefused, f"refuses to update the zone {zone}",
                f"{allow}; if it is a secondary server, {set_primary}",
            ),
            Rcode.NOTAUTH: (
                DnsRefused, f"is not the primary server of the zone {zone}, or does not allow this",
                f"{set_primary} of the zone, and {allow}",
            ),
            Rcode.NOTIMP: (DnsRefused, "takes no updates", allow),
            Rcode.NOTZONE: (
                ServiceError, f"says that a name is not in the zone {zone}", _RUN_AGAIN,
            ),
            Rcode.FORMERR: (ServiceError, f"cannot read the update of the zone {zone}", _SEE_LOG),
        }  # fmt: skip
        other = ServiceError, f"failed to update the zone {zone}", frozen
        kind, what, hint = reasons.get(rcode, other)
        return kind(f"the DNS server {self._address} {what} ({rcode_text(rcode)})", hint=hint)

    def not_made(self, zone: str, *, is_visible: bool) -> DkimctlError:
        """For a change that was accepted, and that is not there; others of it may be visible."""
        start = f"the DNS server {self._address} accepted a change of the zone {printable(zone)}"
        if not is_visible:
            return ServiceError(
                f"{start}, which is not visible there yet",
                hint=f"if the server forwards updates to the primary, wait and {_RUN_AGAIN}; else "
                "check its policy for updates, such as PowerDNS's lua-dnsupdate-policy-script",
            )
        return DnsRefused(
            f"{start}, but did not make it",
            hint="check that `server` is the primary server, and its policy for updates: PowerDNS "
            "drops what its lua-dnsupdate-policy-script refuses",
        )

    def refused_query(self, rcode: int, question: str) -> DkimctlError:
        """For a question that is answered with an RCODE other than NOERROR or NXDOMAIN."""
        message = f"the DNS server {self._address} answers {rcode_text(rcode)} to {question}"
        if rcode in _REFUSED:
            return DnsRefused(
                message, hint=f"{self._allow()} to read the zone: allow-query in BIND"
            )
        hint = "the zone may not be loaded, or may have expired" if rcode == Rcode.SERVFAIL else ""
        return ServiceError(message, hint=": ".join(filter(None, (_SEE_LOG, hint))))

    def not_authoritative(self, zone: str) -> DkimctlError:
        """For an answer that is not from a zone of the server's own."""
        return ServiceError(
            f"the DNS server {self._address} does not answer for the zone {printable(zone)} itself",
            hint="set `server` to the primary server of the zone",
        )

    def no_answer(self, why: str, to: str) -> ServiceError:
        """For a question or an update without a useful answer."""
        return ServiceError(
            f"the DNS server {self._address} gives no answer to {to}: {why}",
            hint=f"check that the server runs, then {_RUN_AGAIN}",
        )

    def _distrusted(self, wrong: SignatureRefused | NotTrusted) -> DkimctlError:
        """For a signature that the server does not accept, or an answer that is not well signed."""
        if isinstance(wrong, SignatureRefused):
            what, hint = self._why_refused(wrong)
            return DnsRefused(f"the DNS server {self._address} {what}", hint=hint)
        if isinstance(wrong, NotSigned) and wrong.rcode in _REFUSED:  # as PowerDNS does
            return DnsRefused(
                f"the DNS server {self._address} does not accept the TSIG key {self._key}, and "
                "signs no answer",
                hint="check `key_file`: the name, algorithm and secret of the key at the server; "
                "and that both clocks agree",
            )
        return DnsRefused(
            f"cannot trust the DNS server {self._address}: {wrong}",
            hint=f"check `server`, and that it has the TSIG key {self._key}",
        )

    def _why_refused(self, refused: SignatureRefused) -> tuple[str, str]:
        """What the server says of our signature, and what to do."""
        key, difference = self._key, "its clock differs from ours"
        if refused.server_time is not None:
            seconds = refused.server_time - int(time.time())
            side = "ahead of" if seconds > 0 else "behind"
            difference = f"its clock is {abs(seconds):,} s {side} ours"
        if refused.error == Rcode.BADKEY:
            what = f"does not know the TSIG key {key}, or does not allow it here (BADKEY)"
            start = "check the name and algorithm in `key_file`, and that the server allows the key"
            return what, f"{start} to read and update the zone"
        if refused.error == _BADSIG:
            what = f"has another secret for the TSIG key {key} (BADSIG)"
            return what, "check `key_file`: copy the key from the server again"
        if refused.error == Rcode.BADTIME:
            hint = "set the clocks of this machine and of the server, such as with NTP"
            return f"refuses our time: {difference} (BADTIME)", hint
        return f"does not accept the TSIG key {key} (error {refused.error})", _SEE_LOG

    def _allow(self) -> str:
        if self._key:
            return f"allow the TSIG key {self._key}"
        return "the message was not signed: set `key_file`, or allow the address of this machine"


def _reason(error: Exception | None) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at that address and port"
    return printable(getattr(error, "strerror", None) or str(error))
