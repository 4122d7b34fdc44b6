"""Find the TSIG record of a message (RFC 8945 section 4.2)."""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = 12  # bytes of the header of a message
FIXED = 10  # bytes of a record between its name and its data
HEAD = struct.pack("!HHI", 250, 255, 0)  # type TSIG, class ANY, TTL
TIME = struct.Struct("!HIH")  # 48 bits of seconds, and the fudge


class TsigRecord(NamedTuple):
    """The TSIG record of a message, which starts at `start`."""

    start: int
    time: bytes
    mac: bytes
    original_id: bytes
    error: bytes
    other: bytes


def find_tsig(wire: bytes) -> TsigRecord | None:
    """The TSIG record, which is the last one of a message (section 5.1); None without one."""
    try:
        questions, *records = struct.unpack_from("!4H", wire, 4)
        at = HEADER
        for _ in range(questions):
            at = _after_name(wire, at) + 4
        for _ in range(sum(records) - 1):
            at = _after_record(wire, at)
        start, at = at, _after_name(wire, at)
        if not records[-1] or wire[at : at + len(HEAD)] != HEAD:
            return None
        return _read_tsig(wire, start, at + FIXED)
    except (IndexError, struct.error):
        return None


def _read_tsig(wire: bytes, start: int, at: int) -> TsigRecord | None:
    """The record at `start`, whose data is at `at`."""
    at = _after_name(wire, at)  # the algorithm
    time = wire[at : at + TIME.size]
    at += TIME.size
    mac = _sized(wire, at)
    at += 2 + len(mac)
    other = _sized(wire, at + 4)
    if at + 6 + len(other) != len(wire):
        return None
    return TsigRecord(start, time, mac, wire[at : at + 2], wire[at + 2 : at + 4], other)


def _sized(wire: bytes, at: int) -> bytes:
    """The data at `at`, after its length."""
    return wire[at + 2 : at + 2 + int.from_bytes(wire[at : at + 2])]


def _after_record(wire: bytes, at: int) -> int:
    at = _after_name(wire, at) + FIXED
    return at + int.from_bytes(wire[at - 2 : at])


def _after_name(wire: bytes, at: int) -> int:
    """Where a name ends: with an empty label, or with a pointer. Raises IndexError."""
    while size := wire[at]:
        if size >= 0xC0:
            return at + 2
        at += 1 + size
    return at + 1
