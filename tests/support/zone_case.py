"""Cases for check-dns and for verifiers of mail: what DNS has at and around the name of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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

    def __str__(self) -> str:
        return self._split(255)

    @property
    def octets(self) -> str:
        return self._split(1)

    @property
    def halves(self) -> str:
        return self._split(len(self._value) // 2)

    @property
    def of_254(self) -> str:
        return self._split(254)

    @property
    def empty_first(self) -> str:
        return f'"" {self}'

    @property
    def empty_between(self) -> str:
        return str(self).replace('" "', '" "" "" "')

    @property
    def empty_last(self) -> str:
        return f'{self} ""'

    @property
    def escaped(self) -> str:
        parts = ("".join(f"\\{octet:03}" for octet in part) for part in self._parts(255))
        return " ".join(f'"{part}"' for part in parts)

    def _parts(self, size: int) -> list[bytes]:
        starts = range(0, len(self._value), size)
        return [self._value[start : start + size] for start in starts] or [b""]

    def _split(self, size: int) -> str:
        return TXT(dns.rdataclass.IN, dns.rdatatype.TXT, self._parts(size)).to_text()


class Contents:
    """The records of all cases, by zone, from the registered values by name."""

    def __init__(self, cases: Iterable[Case], zones: Iterable[str], values: Mapping[str, str]):
        self._zones = sorted(zones, key=len, reverse=True)
        self._values = values
        self._cases = list(cases)

    def zone(self, zone: str, host: str = "") -> str:
        """The records of a zone, at one host if that is given."""
        return "".join(self._lines(zone, host))

    def hosts(self, zone: str) -> set[str]:
        """The hosts whose records differ."""
        return {host for case in self._cases for host in case.at if self._zone_of(case) == zone}

    def _lines(self, zone: str, host: str) -> Iterator[str]:
        for case in self._cases:
            if self._zone_of(case) == zone:
                yield self._filled(case, case.at.get(host, case.records))
            if zone in case.elsewhere:
                yield self._filled(case, case.elsewhere[zone])

    def _filled(self, case: Case, lines: str) -> str:
        other = next(value for name, value in self._values.items() if name != case.name)
        value = Text(case.write(self._values[case.name]))
        return lines.format(name=case.name, domain=case.domain, value=value, other=Text(other))

    def _zone_of(self, case: Case) -> str:
        name = case.name
        return next((zone for zone in self._zones if f".{name}".endswith(f".{zone}")), "")


def with_records(
    hosts: Iterable[Host], zones: Iterable[Zone], contents: Contents
) -> tuple[list[Host], list[Zone]]:
    """The hosts and zones with the records of all cases."""
    filled = [zone._replace(records=zone.records + contents.zone(zone.name)) for zone in zones]
    records: dict[str, dict[str, str]] = {}
    for zone in zones:
        for host in contents.hosts(zone.name):
            text = zone.records + contents.zone(zone.name, host)
            records.setdefault(host, {})[zone.name] = text
    return [host._replace(records=records.get(host.name, {})) for host in hosts], filled
