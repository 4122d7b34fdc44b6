"""Put records into DNS by dynamic updates (RFC 2136), signed with TSIG (RFC 8945)."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import dns.tsig
from dns.rcode import Rcode

from dkimctl.addresses import Address
from dkimctl.dns import messages, transport
from dkimctl.dns.messages import SOA, TXT, Answer, Question, plain_name, rcode_text
from dkimctl.dns.transport import ConnectionLost, NotTrusted, Response, SignatureRefused
from dkimctl.errors import DkimctlError, DnsRefused, NegativeAnswer, ServiceError
from dkimctl.publishing.plan import (
    Access,
    Action,
    Applied,
    Change,
    NameState,
    changed_error,
    is_done,
    outcome_of,
)
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.text import character_strings, printable

# A prerequisite does not hold.
_CHANGED = frozenset((Rcode.NXDOMAIN, Rcode.YXDOMAIN, Rcode.YXRRSET, Rcode.NXRRSET))
_REFUSED = frozenset((Rcode.REFUSED, Rcode.NOTAUTH))
_PAUSE = 0.2  # seconds
_MAX_MESSAGE = 0xFFFF  # bytes (RFC 1035 section 4.2.2)
_HEADER, _FIXED = struct.Struct("!6H"), struct.Struct("!HHIH")
_UPDATE = 5 << 11  # the opcode
_IN, _NONE, _ANY = 1, 254, 255
_DNAME = 39
_SOA_IN = struct.pack("!2H", SOA, _IN)

_BADSIG = 16  # as a TSIG error (RFC 8945 section 3); as an RCODE, it is BADVERS

_RESPONSE_TO_UPDATE, _KIND = 0xA8, 0xF8  # in the third byte: QR, and the opcode (RFC 2136)
_MAX_AGE = 10.0  # seconds since a question was prefetched
_RUN_AGAIN = "run the same command again"
_ALLOW = (
    "{start} to change TXT records of the zone: allow-update or update-policy in BIND, an "
    "ACL with the action update in Knot DNS, dnsupdate=yes and TSIG-ALLOW-DNSUPDATE in PowerDNS"
)
_SEE_LOG = "the server's log says why"


class Rfc2136Target:
    """The zones of one DNS server. Without a key, messages are not signed."""

    def __init__(
        self,
        label: str,
        server: Address,
        ttl: int,
        key: TsigKey | None = None,
        *,
        timeouts: UpdateTimeouts | None = None,
    ) -> None:
        self.label = label
        self.ttl = ttl
        self._server = UpdateServer(server, key, timeouts or UpdateTimeouts())

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """See Target. A delegated name is in the zone that delegates it.

        A zone that the server cannot load is found, too: it answers SERVFAIL below its apex.
        """
        asked = {messages.make_txt_question(name): name.lower() for name in names}
        # A negative answer names the zone as well; and the same questions are asked to read.
        steps = {
            asked[question]: self._next(_Step(asked[question]), response.answer)
            for question, response in self._server.prefetch(asked).items()
        }
        while candidates := {step.candidate for step in steps.values() if step.candidate}:
            questions = {name: Question(plain_name(name) + _SOA_IN, SOA) for name in candidates}
            responses = self._server.ask(questions.values())
            for name, step in steps.items():
                if step.candidate:
                    answer = responses[questions[step.candidate]].answer
                    steps[name] = self._next(step, answer)
        return {name: steps[name.lower()].zone or None for name in names}

    def read(self, zone: str, names: Sequence[str]) -> dict[str, NameState]:
        """See Target. What a name has, not what a wildcard has for it.

        An update does not see a wildcard either (RFC 2136 section 2.4.1), and what it adds hides
        it.
        """
        states = self._read_visible(zone, names)
        wildcards = {
            name: f"*.{name.partition('.')[2]}" for name in names if _content(states[name])
        }
        of_wildcards = self._read_visible(zone, wildcards.values())
        for name, wildcard in wildcards.items():
            if _content(states[name]) == _content(of_wildcards[wildcard]):
                states[name] = NameState()
        return states

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """See Target. One message is in flight at a time."""
        return _Updater(self, self._server, zone).run(changes)

    def read_again(self, zone: str, changes: Sequence[Change]) -> list[tuple[Change, NameState]]:
        """What the names of the changes have now. Raises DkimctlError."""
        by_name = {change.record.fqdn: change for change in changes}
        states = self._read_visible(zone, by_name)
        # What a wildcard has may hide that the name has nothing.
        others = [name for name, change in by_name.items() if not is_done(states[name], change)]
        states |= self.read(zone, others)
        return [(change, states[name]) for name, change in by_name.items()]

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """See Target. The update deletes a value that the name does not have."""
        states = self.read(zone, names)
        own = [name for name in names if not states[name].delegated]
        if not own:
            return Access(True, None, "none of the names is in the zone itself")
        value = _txt_wire(f"dkimctl access check {secrets.token_hex(16)}")
        probe = _record(plain_name(own[0]), TXT, _NONE, value)
        try:
            rcode = self._server.update(_make_update(zone, (), [probe]), zone)
            if rcode != Rcode.NOERROR:
                raise self._server.refused_update(rcode, zone)
        except UnknownResult as unknown:
            return Access(True, None, unknown.error.message, unknown.error.hint)
        except DkimctlError as error:
            writable = False if isinstance(error, DnsRefused) else None
            return Access(True, writable, error.message, error.hint)
        return Access(True, True)

    def _next(self, step: _Step, answer: Answer) -> _Step:
        """The step after an answer to the question for records of its candidate."""
        name = step.candidate
        if answer.rcode == Rcode.SERVFAIL and "." in name:
            return _Step(name.partition(".")[2], name)
        # Rcode.SERVFAIL at the top: a resolver that knows nothing, rather than a zone.
        if answer.rcode in (Rcode.FORMERR, Rcode.NOTIMP, Rcode.SERVFAIL):
            raise self._server.refused_query(answer.rcode, f"SOA {name}")
        if step.zone or answer.rcode not in messages.USEFUL:
            return _Step("", step.zone)
        if answer.delegated:
            return _Step(answer.delegated.partition(".")[2])
        if not answer.is_authoritative:
            return _Step("")
        if answer.alias:
            return _Step(name.partition(".")[2])
        if answer.values:
            return _Step(name)
        # Of an answer to the question for an SOA record: the name itself, if it has one.
        records = answer.message.answer if answer.message else ()
        apex = name if any(rrset.rdtype == SOA for rrset in records) else ""
        return _Step("", answer.zone or apex)

    def _read_visible(self, zone: str, names: Iterable[str]) -> dict[str, NameState]:
        """What each name seems to have: also what a wildcard has. Raises DkimctlError."""
        questions = {name: messages.make_txt_question(name) for name in names}
        responses = self._server.ask(questions.values())
        return {
            name: self._state(zone, question, responses[question])
            for name, question in questions.items()
        }

    def _state(self, zone: str, question: Question, response: Response) -> NameState:
        answer, wire = response
        if answer.rcode not in messages.USEFUL:
            raise self._server.refused_query(answer.rcode, str(question))
        if answer.delegated:
            return NameState(delegated=answer.delegated)
        if not answer.is_authoritative:
            raise self._server.not_authoritative(zone)
        if answer.alias:
            # The owner of a DNAME, from which the server has made the alias (RFC 6672).
            records = answer.message.answer if answer.message else ()
            owners = (rrset.name for rrset in records if rrset.rdtype == _DNAME)
            owner = next((owner.to_text(omit_final_dot=True) for owner in owners), "")
            return NameState(alias=answer.alias, redirected=owner)
        if not answer.values:
            # A zone below it, on the same server.
            is_own = answer.zone in ("", zone)
            return NameState() if is_own else NameState(delegated=answer.zone)
        values = tuple(value.decode("utf-8", "surrogateescape") for value in answer.values)
        if answer.message is None:
            ttl, data = messages.only_record(wire, question)
            stored: tuple[bytes, ...] = (data,)
        else:
            wanted = question.name, _IN, TXT, 0
            rrset = next(rrset for rrset in answer.message.answer if rrset.match(*wanted))
            ttl, stored = rrset.ttl, tuple(data.to_wire() for data in rrset)
        is_usual = stored == tuple(map(_txt_wire, values))
        return NameState(values, ttl, wire=() if is_usual else stored)


class _Step(NamedTuple):
    """Where to ask next for the zone of a name, "" at the end; `zone` is what is known of it."""

    candidate: str
    zone: str = ""


class _Updater:
    """Makes changes, each with its prerequisites; a message is done as a whole, or not at all.

    If names in a message have changed meanwhile, or are refused, its halves are sent, and so on,
    until only these names fail. What makes all others fail as well ends it: no answer, any other
    error, and a message of which every name is refused.

    A server may accept what it then drops, such as PowerDNS by its policy script, name by name. So
    every name in a message is read again before it is told as done.
    """

    def __init__(self, target: Rfc2136Target, server: UpdateServer, zone: str) -> None:
        self._target = target
        self._server = server
        self._zone = zone
        self._is_accepted = False
        self._refusal: DkimctlError | None = None
        self._end: DkimctlError | None = None

    def run(self, changes: Sequence[Change]) -> Iterator[Applied]:
        signature = self._server.signer.size if self._server.signer else 0
        room = _MAX_MESSAGE - len(_make_update(self._zone, (), ())) - signature
        batches: list[list[_Part]] = [[]]
        filled = 0
        for part in map(_make_part, changes):
            if part.size > room:
                name = printable(part.change.record.fqdn)
                error = NegativeAnswer(
                    f"the TXT records of {name} are too large for one DNS update",
                    hint="remove the records that are there by other means, then run the same "
                    "command again",
                )
                yield Applied(part.change, error)
                continue
            if filled + part.size > room:
                batches.append([])
                filled = 0
            batches[-1].append(part)
            filled += part.size
        for batch in filter(None, batches):
            yield from self._apply(batch)
            if not self._is_accepted:
                self._end = self._end or self._refusal

    def _apply(self, parts: Sequence[_Part]) -> Iterator[Applied]:
        changes = [part.change for part in parts]
        if self._end is not None:
            yield from _all(changes, self._end)
            return
        prerequisites = [record for part in parts for record in part.prerequisites]
        updates = [record for part in parts for record in part.updates]
        try:
            message = _make_update(self._zone, prerequisites, updates)
            rcode = self._server.update(message, self._zone)
        except UnknownResult as unknown:
            yield from self._look_again(changes, unknown.error)
            return
        except DkimctlError as error:
            self._end = error
            yield from _all(changes, error)
            return
        if rcode == Rcode.NOERROR:
            self._is_accepted = True
            yield from self._confirm(changes)
        elif rcode in _CHANGED | _REFUSED and len(parts) > 1:
            middle = len(parts) // 2
            yield from self._apply(parts[:middle])
            yield from self._apply(parts[middle:])
        elif rcode in _CHANGED:
            self._is_accepted = True
            yield from (Applied(change, changed_error(change)) for change in changes)
        else:
            refusal = self._server.refused_update(rcode, self._zone)
            if rcode in _REFUSED:
                self._refusal = refusal
            else:
                self._end = refusal
            yield from _all(changes, refusal)

    def _look_again(self, changes: Sequence[Change], error: DkimctlError) -> Iterator[Applied]:
        """Find out what became of an update without an answer."""
        try:
            states = self._target.read_again(self._zone, changes)
            applied = [outcome_of(change, state, error) for change, state in states]
        except DkimctlError:
            applied = list(_all(changes, error))
        if any(change.error is error for change in applied):
            self._end = error
        yield from applied

    def _confirm(self, changes: Sequence[Change]) -> Iterator[Applied]:
        """Find out whether accepted changes are made, and wait: a server may forward an update."""
        deadline = time.monotonic() + self._server.timeouts.change
        left = changes
        try:
            while True:
                states = self._target.read_again(self._zone, left)
                yield from (Applied(change) for change, state in states if is_done(state, change))
                states = [(change, state) for change, state in states if not is_done(state, change)]
                left = [change for change, _ in states]
                if not left:
                    return
                if time.monotonic() > deadline:
                    break
                time.sleep(_PAUSE)
        except DkimctlError as error:
            self._end = error
            yield from _all(left, error)
            return
        not_made = self._server.not_made(self._zone, is_visible=len(left) < len(changes))
        yield from (outcome_of(change, state, not_made) for change, state in states)


class _Part(NamedTuple):
    """The records of one change: its prerequisites and updates."""

    change: Change
    prerequisites: list[bytes]
    updates: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.prerequisites)) + sum(map(len, self.updates))


def _make_part(change: Change) -> _Part:
    """The change, if the name still has exactly the TXT records, and no CNAME, that were read."""
    name = plain_name(change.record.fqdn)
    if change.action is Action.CREATE:
        prerequisites = [_record(name, TXT, _NONE), _record(name, messages.CNAME, _NONE)]
        updates = []
    else:
        stored = change.before.wire or tuple(map(_txt_wire, change.before.values))
        prerequisites = [_record(name, TXT, _IN, data) for data in stored]
        updates = [_record(name, TXT, _ANY)]
    if change.value is not None:
        updates.append(_record(name, TXT, _IN, _txt_wire(change.value), change.ttl))
    return _Part(change, prerequisites, updates)


def _make_update(zone: str, prerequisites: Sequence[bytes], updates: Sequence[bytes]) -> bytes:
    """All of it is done, or nothing. For 10,000 records, dnspython takes 0.9 s, this 0.1 s."""
    header = _HEADER.pack(messages.random_id(), _UPDATE, 1, len(prerequisites), len(updates), 0)
    return b"".join((header, plain_name(zone), _SOA_IN, *prerequisites, *updates))


def _record(name: bytes, rdtype: int, rdclass: int, data: bytes = b"", ttl: int = 0) -> bytes:
    return name + _FIXED.pack(rdtype, rdclass, ttl, len(data)) + data


def _txt_wire(value: str) -> bytes:
    return b"".join(bytes((len(string),)) + string for string in character_strings(value))


def _content(state: NameState) -> tuple[str, ...]:
    """The records, in any order."""
    return (state.alias,) if state.alias else tuple(sorted(state.values))


def _all(changes: Sequence[Change], error: DkimctlError) -> Iterator[Applied]:
    return (Applied(change, error) for change in changes)


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
        self.signer: transport.Signer | None = None
        if key is not None:
            self.signer = transport.Signer(
                dns.tsig.Key(key.name, key.secret.reveal(), key.algorithm)
            )
        self._latest: tuple[str, int] | None = None  # the address that answered last
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
        pipeline = transport.Pipeline(
            self._connect, self._address, timeout=self.timeouts.answer, signer=self.signer
        )
        unasked = list(dict.fromkeys(questions))
        known = {
            question: self._prefetched.pop(question)
            for question in unasked
            if question in self._prefetched
        }
        unasked = [question for question in unasked if question not in known]
        try:
            if unasked:
                asyncio.run(pipeline.ask(unasked))
        except (SignatureRefused, NotTrusted) as wrong:
            raise self._distrusted(wrong) from None
        except ConnectionLost as lost:
            question = next(question for question in unasked if question not in pipeline.responses)
            raise self.no_answer(str(lost), str(question)) from None
        except transport.UnreadableAnswer as unreadable:
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
        if len(answer) < _HEADER.size or answer[2] & _KIND != _RESPONSE_TO_UPDATE:
            raise UnknownResult(self.no_answer("it cannot be read", what))
        return answer[3] & 0x0F

    async def _connect(self) -> transport.Streams:
        """Tries all addresses of its name, first the latest that answered. Raises ServiceError."""
        try:
            infos = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ServiceError(
                f"cannot find the address of the DNS server {self._address}: {_reason(error)}",
                hint="check `server` in the config file, or write its IP address",
            ) from None
        addresses = [(str(info[4][0]), int(info[4][1])) for info in infos]
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
        key = self._key
        if isinstance(wrong, SignatureRefused):
            what, hint = f"does not accept the TSIG key {key} (error {wrong.error})", _SEE_LOG
            if wrong.error == Rcode.BADKEY:
                what = f"does not know the TSIG key {key}, or does not allow it here (BADKEY)"
                hint = (
                    "check the name and algorithm in `key_file`, and that the server allows the "
                    "key to read and update the zone"
                )
            elif wrong.error == _BADSIG:
                what = f"has another secret for the TSIG key {key} (BADSIG)"
                hint = "check `key_file`: copy the key from the server again"
            elif wrong.error == Rcode.BADTIME:
                difference = "differs from ours"
                if wrong.server_time is not None:
                    seconds = wrong.server_time - int(time.time())
                    side = "ahead of" if seconds > 0 else "behind"
                    difference = f"is {abs(seconds):,} s {side} ours"
                what = f"refuses our time: its clock {difference} (BADTIME)"
                hint = "set the clocks of this machine and of the server, such as with NTP"
            return DnsRefused(f"the DNS server {self._address} {what}", hint=hint)
        if isinstance(wrong, transport.NotSigned) and wrong.rcode in _REFUSED:  # as PowerDNS does
            return DnsRefused(
                f"the DNS server {self._address} does not accept the TSIG key {key}, and "
                "signs no answer",
                hint="check `key_file`: the name, algorithm and secret of the key at the server; "
                "and that both clocks agree",
            )
        return DnsRefused(
            f"cannot trust the DNS server {self._address}: {wrong}",
            hint=f"check `server`, and that it has the TSIG key {key}",
        )

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
