"""What a DNS server refused, and what to do about it: one line and a hint each."""

from __future__ import annotations

from typing import NamedTuple

from dkimctl.dns.messages import FORMERR, NOTIMP, REFUSED, SERVFAIL, rcode_text
from dkimctl.errors import DkimctlError, DnsRefused, ServiceError
from dkimctl.publishing.dns_server.signing import (
    BADKEY,
    BADSIG,
    BADTIME,
    NotSigned,
    NotTrusted,
    SignatureRefused,
)
from dkimctl.text.escaping import printable

NOTAUTH, NOTZONE = 9, 10
_RUN_AGAIN = "run the same command again"
_ALLOW = (
    "{start} to change TXT records of the zone: allow-update or update-policy in BIND, an "
    "ACL with the action update in Knot DNS, dnsupdate=yes and TSIG-ALLOW-DNSUPDATE in PowerDNS"
)
_SEE_LOG = "the server's log says why"


class Errors(NamedTuple):
    """Makes the errors of one server, which `server` names; `key` is the key's name, or ""."""

    server: str
    key: str

    def of_update(self, rcode: int, zone: str) -> DkimctlError:
        """For an update that is answered with an RCODE other than of a prerequisite."""
        name, zone = rcode_text(rcode), printable(zone)
        start, allow = f"the DNS server {self.server}", _ALLOW.format(start=self._allow())
        if rcode == REFUSED:
            return DnsRefused(
                f"{start} refuses to update the zone {zone} ({name})",
                hint=f"{allow}; if it is a secondary server, set `server` to the primary server",
            )
        if rcode == NOTAUTH:
            return DnsRefused(
                f"{start} is not the primary server of the zone {zone}, or does not allow this "
                f"({name})",
                hint=f"set `server` to the primary server of the zone, and {allow}",
            )
        if rcode == NOTIMP:
            return DnsRefused(f"{start} takes no updates ({name})", hint=allow)
        if rcode == NOTZONE:
            return ServiceError(
                f"{start} says that a name is not in the zone {zone} ({name})", hint=_RUN_AGAIN
            )
        if rcode == FORMERR:
            return ServiceError(
                f"{start} cannot read the update of the zone {zone} ({name})", hint=_SEE_LOG
            )
        return ServiceError(
            f"{start} failed to update the zone {zone} ({name})",
            hint=f"{_SEE_LOG}: the zone may be frozen, or its files may not be writable",
        )

    def not_made(self, zone: str) -> DkimctlError:
        """For an update that was answered as if it were made, and was not."""
        return DnsRefused(
            f"the DNS server {self.server} accepted a change of the zone {printable(zone)}, but "
            "did not make it",
            hint="check that `server` is the primary server, and its policy for updates: PowerDNS "
            "drops what its lua-dnsupdate-policy-script refuses",
        )

    def of_query(self, rcode: int, question: str) -> DkimctlError:
        """For a question that is answered with an RCODE other than NOERROR or NXDOMAIN."""
        message = f"the DNS server {self.server} answers {rcode_text(rcode)} to {question}"
        if rcode in (REFUSED, NOTAUTH):
            return DnsRefused(
                message, hint=f"{self._allow()} to read the zone: allow-query in BIND"
            )
        hint = "the zone may not be loaded, or may have expired" if rcode == SERVFAIL else ""
        return ServiceError(message, hint=": ".join(filter(None, (_SEE_LOG, hint))))

    def not_authoritative(self, zone: str) -> DkimctlError:
        """For an answer that is not from a zone of the server's own."""
        return ServiceError(
            f"the DNS server {self.server} does not answer for the zone {printable(zone)} itself",
            hint="set `server` to the primary server of the zone",
        )

    def of_signature(self, refused: SignatureRefused, now: float) -> DkimctlError:
        """For a message whose signature the server does not accept."""
        start, key = f"the DNS server {self.server}", printable(self.key)
        if refused.error == BADKEY:
            return DnsRefused(
                f"{start} does not know the TSIG key {key}, or does not allow it here (BADKEY)",
                hint="check the name and algorithm in `key_file`, and that the server allows the "
                "key to read and update the zone",
            )
        if refused.error == BADSIG:
            return DnsRefused(
                f"{start} has another secret for the TSIG key {key} (BADSIG)",
                hint="check `key_file`: copy the key from the server again",
            )
        if refused.error == BADTIME:
            return DnsRefused(
                f"{start} refuses our time: {_difference(refused, now)} (BADTIME)",
                hint="set the clocks of this machine and of the server, such as with NTP",
            )
        return DnsRefused(
            f"{start} does not accept the TSIG key {key} (error {refused.error})", hint=_SEE_LOG
        )

    def untrusted(self, wrong: NotTrusted) -> DkimctlError:
        """For an answer that is not signed as it should be."""
        if isinstance(wrong, NotSigned) and wrong.rcode in (REFUSED, NOTAUTH):  # as PowerDNS does
            return DnsRefused(
                f"the DNS server {self.server} does not accept the TSIG key "
                f"{printable(self.key)}, and signs no answer",
                hint="check `key_file`: the name, algorithm and secret of the key at the server; "
                "and that both clocks agree",
            )
        return DnsRefused(
            f"cannot trust the DNS server {self.server}: {wrong}",
            hint=f"check `server`, and that it has the TSIG key {printable(self.key)}",
        )

    def no_answer(self, why: str, to: str) -> ServiceError:
        """For a question or an update without a useful answer."""
        return ServiceError(
            f"the DNS server {self.server} gives no answer to {to}: {why}",
            hint=f"check that the server runs, then {_RUN_AGAIN}",
        )

    def _allow(self) -> str:
        if self.key:
            return f"allow the TSIG key {printable(self.key)}"
        return "the message was not signed: set `key_file`, or allow the address of this machine"


def _difference(refused: SignatureRefused, now: float) -> str:
    if refused.server_time is None:
        return "its clock differs from ours"
    seconds = refused.server_time - int(now)
    side = "ahead of" if seconds > 0 else "behind"
    return f"its clock is {abs(seconds):,} s {side} ours"
