"""Sign messages with a TSIG key, and verify the answers (RFC 8945).

The algorithms are dnspython's. Its `sign` and `validate` take 40 and 30 us, these 10 each: of
10,000 records, each of which is read twice, that is a second.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import dns.rdataclass
import dns.rdatatype
import dns.tsig

from dkimctl.dns.messages import REFUSED, rcode_text

_HEAD = struct.pack("!HHI", dns.rdatatype.TSIG, dns.rdataclass.ANY, 0)  # type, class and TTL
_TIME = struct.Struct("!HIH")  # 48 bits of seconds, and the fudge
_TIME_OCTETS = 6  # of the server's clock in the other data of BADTIME (section 5.2.3)
_FUDGE = 300  # seconds that clocks may differ (section 10)
_NO_ERROR = bytes(4)  # no error, and no other data
_POINTER = b"\xc0"  # what a compressed name ends with, in place of an empty label


class NotTrusted(Exception):
    """An answer without signature, or with a wrong one; the text says which."""


class NotSigned(NotTrusted):
    """An answer without signature, and its RCODE."""

    def __init__(self, rcode: int) -> None:
        super().__init__(f"its answer ({rcode_text(rcode)}) is not signed")
        self.rcode = rcode


class SignatureRefused(Exception):
    """The server says what is wrong with our signature: BADKEY, BADSIG, BADTIME, or another."""

    def __init__(self, error: int, server_time: int | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.server_time = server_time


class Signer:
    """Signs messages, and verifies the answers."""

    def __init__(self, key: dns.tsig.Key) -> None:
        self._name = key.name.to_digestable()
        self._algorithm = key.algorithm.to_digestable()
        # In the digest stand the name, class and TTL of the record, and the algorithm.
        self._variables = self._name + _HEAD[2:] + self._algorithm
        # In a function, the secret is in no repr.
        self._context: Callable[[], Any] = lambda: dns.tsig.get_context(key)  # type: ignore[no-untyped-call]
        mac_size = dns.tsig.mac_sizes[key.algorithm]
        #: The bytes that a signature adds to a message.
        self.size = len(self._variables) + 4 + _TIME.size + 2 + mac_size + 2 + len(_NO_ERROR)

    def sign(self, wire: bytes) -> tuple[bytes, bytes]:
        """The message with a signature; and its MAC, with which the answer is verified."""
        now = int(time.time())
        signed_at = _TIME.pack(now >> 32, now & 0xFFFFFFFF, _FUDGE)
        context = self._context()
        context.update(b"".join((wire, self._variables, signed_at, _NO_ERROR)))
        mac: bytes = context.sign()
        data = b"".join((self._algorithm, signed_at, _sized(mac), wire[:2], _NO_ERROR))
        return b"".join((_recounted(wire, 1), self._name, _HEAD, _sized(data))), mac

    def verify(self, wire: bytes, request_mac: bytes, *, or_refusal: bool = False) -> bytes:
        """The answer without its signature. Raises NotTrusted, SignatureRefused.

        `or_refusal`: REFUSED is believed without one. Knot DNS signs no refusal of names that are
        in none of its zones.
        """
        found = _find_tsig(wire, len(self._name))
        if found is None:
            rcode = int.from_bytes(wire[3:4]) & 0xF
            if or_refusal and rcode == REFUSED:
                return wire
            raise NotSigned(rcode)
        start, signed_at, mac, original_id, error, other = found
        if number := int.from_bytes(error):
            has_time = len(other) == _TIME_OCTETS
            raise SignatureRefused(number, int.from_bytes(other) if has_time else None)
        plain = original_id + _recounted(wire[:start], -1)[2:]
        end = signed_at + error + _sized(other)
        context = self._context()
        context.update(b"".join((_sized(request_mac), plain, self._variables, end)))
        try:
            context.verify(mac)
        except dns.tsig.BadSignature:
            raise NotTrusted("the signature of its answer is wrong") from None
        high, low, fudge = _TIME.unpack(signed_at)
        if (difference := abs((high << 32 | low) - int(time.time()))) > fudge:
            raise NotTrusted(f"the time of its answer differs by {difference} s from ours")
        return plain


def _find_tsig(wire: bytes, name_size: int) -> tuple[int, bytes, bytes, bytes, bytes, bytes] | None:
    """The TSIG record, which is the last one of a message (section 5.1); None without one.

    Where it starts, its time, MAC, original ID, error and other data.
    """
    head = wire.rfind(_HEAD)  # at a wrong place, the signature is wrong
    start = head - (2 if wire[head - 2 : head - 1] >= _POINTER else name_size)
    at = head + len(_HEAD) + 2
    if start < 0 or at + int.from_bytes(wire[at - 2 : at]) != len(wire) or wire[10:12] == bytes(2):
        return None
    while size := int.from_bytes(wire[at : at + 1]):  # the name of the algorithm
        at += 1 + size
    at += 1 + _TIME.size
    mac = wire[at + 2 : at + 2 + int.from_bytes(wire[at : at + 2])]
    end = at + 2 + len(mac)
    original_id, error, other = wire[end : end + 2], wire[end + 2 : end + 4], wire[end + 6 :]
    if len(wire) < end + 6 or int.from_bytes(wire[end + 4 : end + 6]) != len(other):
        return None
    return start, wire[at - _TIME.size : at], mac, original_id, error, other


def _sized(data: bytes) -> bytes:
    """The data after its length."""
    return len(data).to_bytes(2) + data


def _recounted(wire: bytes, difference: int) -> bytes:
    """The message with another number of additional records in its header."""
    count = int.from_bytes(wire[10:12]) + difference
    return wire[:10] + count.to_bytes(2) + wire[12:]
