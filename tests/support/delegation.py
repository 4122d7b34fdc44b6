"""The zones of a network, from the root on: who serves what, and what the zone above says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

ROOT_ADDRESS = "127.0.0.53"
ROOT_HOST = "root-server"
_START = "$ORIGIN {name}.\n$TTL 60\n@ SOA {first}. hostmaster.{first}. 1 3600 600 86400 60\n"


class Security(Enum):
    """The state of a zone in DNSSEC (RFC 4035 section 4.3)."""

    INSECURE = auto()  # not signed
    SECURE = auto()
    EXPIRED = auto()  # bogus: its signatures were valid until yesterday
    WRONG_DS = auto()  # bogus: the zone above has the digest of another key


class Host(NamedTuple):
    """A name server: a program (named, nsd or knotd) on port 53 of its addresses.

    Without a program, nothing answers there. It serves all zones that name it, except `refused`,
    and `also`. `records` has those of zones where it differs from the others. With `updates`, a
    named takes updates that are signed with the key of dns_servers.key_file; its zones change in no
    other way then. It notifies `secondaries`, which are addresses; a named that is `secondary_of`
    another address has its zones from there. `environment` has variables for the program.
    """

    name: str
    addresses: Sequence[str]
    program: str = "nsd"
    also: Sequence[str] = ()
    refused: Sequence[str] = ()
    records: Mapping[str, str] = {}
    updates: bool = False
    signed_updates: bool = True  # else from anybody
    secondaries: Sequence[str] = ()
    secondary_of: str = ""
    environment: Mapping[str, str] = {}


class Zone(NamedTuple):
    """A zone: the hosts in its NS records, and its other records, as lines of a zone file.

    The zone above delegates it to the same hosts, unless `delegated_to` has others, and with their
    addresses as glue, unless `glue` has others. The addresses of hosts are added to the records of
    the closest zone that contains their names. Top-level domains need no Zone.
    """

    name: str
    hosts: Sequence[str]
    records: str = ""
    delegated_to: Sequence[str] | None = None
    glue: Mapping[str, Sequence[str]] = {}
    security: Security = Security.INSECURE


class Tree:
    """All zones and hosts of a network, with the root and the top-level domains."""

    def __init__(self, hosts: Iterable[Host], zones: Iterable[Zone]) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.zones = {zone.name: zone for zone in zones}
        self.hosts[ROOT_HOST] = Host(ROOT_HOST, (ROOT_ADDRESS,))
        below = {*self.hosts, *self.zones} - {ROOT_HOST, ""}
        top = {name.rpartition(".")[2] for name in below}
        for name in ("", *sorted(top)):
            self.zones.setdefault(name, Zone(name, (ROOT_HOST,)))
        for name in self.signed():
            if self.zones[name].security is Security.INSECURE:
                self.zones[name] = self.zones[name]._replace(security=Security.SECURE)

    def zones_of(self, host: Host) -> list[Zone]:
        """The zones that a host serves."""
        return [
            zone
            for zone in self.zones.values()
            if (host.name in zone.hosts and zone.name not in host.refused) or zone.name in host.also
        ]

    def signed(self) -> list[str]:
        """The names of signed zones, and of those above them: the chain of trust."""
        secured = [zone.name for zone in self.zones.values() if zone.security != Security.INSECURE]
        return [name for name in self.zones if any(_is_below(one, name) for one in secured)]

    def zone_file(self, zone: Zone, host: Host, ds: Mapping[str, str]) -> str:
        """The zone file of a zone at a host; `ds` has the DS records of signed zones, by name."""
        lines = [f"@ NS {name}.\n" for name in zone.hosts]
        own = [name for name in self.hosts if self._zone_of(name) == zone.name]
        lines += self._addresses(own, {})
        for cut in self._cuts(zone.name):
            lines += [f"{cut.name}. NS {name}.\n" for name in _delegated_to(cut)]
            lines += self._addresses(self._glue_hosts(cut, zone.name), cut.glue)
            lines.append(ds.get(cut.name, ""))
        start = _START.format(name=zone.name, first=zone.hosts[0])
        records = host.records.get(zone.name, zone.records)
        return "".join([start, *dict.fromkeys(lines), records])  # zones below may share a host

    def _cuts(self, above: str) -> Iterator[Zone]:
        for zone in self.zones.values():
            if zone.name and self._zone_above(zone.name) == above:
                yield zone

    def _glue_hosts(self, cut: Zone, above: str) -> list[str]:
        """Those hosts of a delegation whose addresses are not data of the zone above itself."""
        return [
            name
            for name in _delegated_to(cut)
            if name in self.hosts and _is_below(name, above) and self._zone_of(name) != above
        ]

    def _addresses(self, names: Iterable[str], instead: Mapping[str, Sequence[str]]) -> list[str]:
        return [
            f"{name}. {'AAAA' if ':' in address else 'A'} {address}\n"
            for name in names
            for address in instead.get(name, self.hosts[name].addresses)
        ]

    def _zone_of(self, name: str) -> str:
        """The closest zone at or above a name."""
        return name if name in self.zones else self._zone_above(name)

    def _zone_above(self, name: str) -> str:
        above = name.partition(".")[2]
        while above not in self.zones:
            above = above.partition(".")[2]
        return above


def _delegated_to(zone: Zone) -> Sequence[str]:
    return zone.hosts if zone.delegated_to is None else zone.delegated_to


def _is_below(name: str, zone: str) -> bool:
    return not zone or name == zone or name.endswith(f".{zone}")
