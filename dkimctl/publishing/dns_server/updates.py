"""Update messages (RFC 2136), built by hand: dnspython's classes take twenty times as long."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dkimctl.dns.messages import SOA, TXT, plain_name, random_id
from dkimctl.publishing.changes import Action, Change
from dkimctl.text.character_strings import character_strings

MAX_MESSAGE = 0xFFFF  # bytes (RFC 1035 section 4.2.2)
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")  # type, class, TTL, length of the data
_CNAME = 5
_IN, _NONE, _ANY = 1, 254, 255
# What follows the name in records without data: what must not exist, and what is deleted.
_NO_TXT, _NO_CNAME = _RECORD.pack(TXT, _NONE, 0, 0), _RECORD.pack(_CNAME, _NONE, 0, 0)
_ALL_TXT = _RECORD.pack(TXT, _ANY, 0, 0)
_OPCODE = 5 << 11
_ZONE_NAME = b"\xc0\x0c"  # a pointer to the name in the zone section


class Part(NamedTuple):
    """The records of one change: prerequisites and updates, and how many there are of each."""

    change: Change
    prerequisites: bytes
    updates: bytes
    counts: tuple[int, int]

    @property
    def size(self) -> int:
        return len(self.prerequisites) + len(self.updates)


def make_part(change: Change, zone: str) -> Part:
    """The change, if the name still has what it had before it was planned.

    To create: no TXT records and no CNAME; else exactly the TXT records that were read.
    """
    name = _name(change.record.fqdn, zone)
    before = change.before
    if change.action is Action.CREATE:
        prerequisites = [name + _NO_TXT, name + _NO_CNAME]
        updates = []
    else:
        stored = before.wire or tuple(map(txt_wire, before.values))
        prerequisites = [_record(name, TXT, _IN, data) for data in stored]
        updates = [name + _ALL_TXT]
    if change.value is not None:
        updates.append(_record(name, TXT, _IN, txt_wire(change.value), change.ttl))
    counts = len(prerequisites), len(updates)
    return Part(change, b"".join(prerequisites), b"".join(updates), counts)


def make_update(zone: str, parts: Sequence[Part]) -> bytes:
    """The message; all of it is done, or nothing."""
    prerequisites = sum(part.counts[0] for part in parts)
    updates = sum(part.counts[1] for part in parts)
    header = _HEADER.pack(random_id(), _OPCODE, 1, prerequisites, updates, 0)
    return b"".join(
        (header, _zone_section(zone), *(part.prerequisites for part in parts),
         *(part.updates for part in parts))
    )  # fmt: skip


def make_probe(zone: str, fqdn: str, value: str) -> bytes:
    """The message that deletes one value of a name, which it does not have."""
    record = _record(_name(fqdn, zone), TXT, _NONE, txt_wire(value))
    return _HEADER.pack(random_id(), _OPCODE, 1, 0, 1, 0) + _zone_section(zone) + record


def batches(parts: Sequence[Part], max_size: int) -> Iterator[Sequence[Part]]:
    """The parts, in as few groups as messages of this size can take; too large ones alone."""
    start = size = 0
    for end, part in enumerate(parts):
        if size + part.size > max_size and end > start:
            yield parts[start:end]
            start, size = end, 0
        size += part.size
    if parts:
        yield parts[start:]


def room(zone: str, signature_size: int) -> int:
    """The bytes that a message has for parts."""
    return MAX_MESSAGE - _HEADER.size - len(_zone_section(zone)) - signature_size


def txt_wire(value: str) -> bytes:
    """The data of a TXT record."""
    return b"".join(bytes((len(one),)) + one for one in character_strings(value))


def _zone_section(zone: str) -> bytes:
    return plain_name(zone) + struct.pack("!2H", SOA, _IN)


def _name(fqdn: str, zone: str) -> bytes:
    below = fqdn.lower().removesuffix(f".{zone.lower()}")
    return plain_name(below)[:-1] + _ZONE_NAME if len(below) < len(fqdn) else plain_name(fqdn)


def _record(name: bytes, rdtype: int, rdclass: int, data: bytes, ttl: int = 0) -> bytes:
    return name + _RECORD.pack(rdtype, rdclass, ttl, len(data)) + data
