"""Cases for check-dns and for verifiers of mail: what DNS has at and around the name of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.ANY.TXT import TXT

from delegation import Host, Zone
from dkimctl.dkim import record_name
from dkimctl.dns.verdicts import ACCEPTED, Verdict

RECORD = "{name}. TXT {value}\n"


class Mail(StrEnum):
    """What verifiers say to mail that is signed with the key."""

    ACCEPTED = "accepted by all"
    REFUSED = "refused by some"
    DEPENDS = "depends"  # on the server that a resolver happens to ask


class Case(NamedTuple):
    """A registration, the records that DNS has for it, and the verdict on them.

    `records` are lines for the zone that contains the domain, `elsewhere` for other zones, by name,
    and `at` replaces `records` at some hosts. In all of them, {name} is the FQDN of the key record,
    {domain} the signing domain, {value} the registered value (see Text) and {other} the value of
    another key.

    Verifiers accept mail if the verdict is published or differs, and refuse it otherwise: else
    `mail` says what they do, and `because` why that is not the verdict's fault.
    """

    domain: str
    verdict: Verdict
    records: str = RECORD
    elsewhere: Mapping[str, str] = {}
    at: Mapping[str, str] = {}
    selector: str = "s1"
    key_len: int = 1024
    write: Callable[[str], str] = str  # makes {value} from the registered value
    spelled: str = ""  # as which the domain is registered
    mail: Mail | None = None
    because: str = ""
    about: str = ""  # for people

    @property
    def name(self) -> str:
        return record_name(self.selector, self.domain)

    @property
    def expected_mail(self) -> Mail:
        if self.mail is not None:
            return self.mail
        return Mail.ACCEPTED if self.verdict in ACCEPTED else Mail.REFUSED


class Text:
    """A TXT value as data of a zone file; the attributes split it into strings in unusual ways."""

    def __init__(self, value: str) -> None:
        self._value = value.encode()
        self.octets = self._split(1)
        self.empty_between = f'"" {self} ""'.replace('" "', '" "" "')
        escaped = ("".join(f"\\{octet:03}" for octet in part) for part in self._parts(255))
        self.escaped = " ".join(f'"{part}"' for part in escaped)

    def __str__(self) -> str:
        return self._split(255)

    @property
    def halves(self) -> str:
        return self._split(len(self._value) // 2)

    def _parts(self, size: int) -> list[bytes]:
        starts = range(0, len(self._value), size)
        return [self._value[start : start + size] for start in starts] or [b""]

    def _split(self, size: int) -> str:
        return TXT(dns.rdataclass.IN, dns.rdatatype.TXT, self._parts(size)).to_text()


def with_records(
    hosts: Iterable[Host], zones: Sequence[Zone], cases: Iterable[Case], values: Mapping[str, str]
) -> tuple[list[Host], list[Zone]]:
    """The hosts and zones with the records of all cases, from the registered values by name."""
    longest = sorted((zone.name for zone in zones), key=len, reverse=True)
    everywhere = {zone.name: zone.records for zone in zones}
    at: dict[str, dict[str, str]] = {}  # the records of zones that differ there, by host
    parts: list[tuple[str, Mapping[str, str], str]] = []  # zone, records by host, and of the others
    for case in cases:
        other = next(value for name, value in values.items() if name != case.name)
        texts = {"value": Text(case.write(values[case.name])), "other": Text(other)}
        names = {"name": case.name, "domain": case.domain}
        own = next((zone for zone in longest if f".{case.name}".endswith(f".{zone}")), "")
        filled = {host: lines.format(**texts, **names) for host, lines in case.at.items()}
        parts.append((own, filled, case.records.format(**texts, **names)))
        for zone, lines in case.elsewhere.items():
            parts.append((zone, {}, lines.format(**texts, **names)))
        for host in case.at:
            at.setdefault(host, {})[own] = everywhere[own]
    for zone, by_host, lines in parts:
        if zone in everywhere:
            everywhere[zone] += lines
        for host, records in at.items():
            if zone in records:
                records[zone] += by_host.get(host, lines)
    filled_hosts = [host._replace(records=at.get(host.name, {})) for host in hosts]
    return filled_hosts, [zone._replace(records=everywhere[zone.name]) for zone in zones]
