"""Sign messages with a TSIG key, and verify the answers (RFC 8945)."""

# By hand: dnspython takes ten times as long, and there are thousands of messages.
from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

from dkimctl.dns.messages import plain_name, rcode_text
from dkimctl.publishing.dns_server.tsig_record import (
    FIXED,
    HEAD,
    HEADER,
    TIME,
    find_tsig,
)
from dkimctl.publishing.tsig_key import TsigKey

BADSIG, BADKEY, BADTIME = 16, 17, 18

# The digest of each algorithm, and the length of its MACs in bytes (section 6).
_ALGORITHMS = {
    "hmac-sha1": ("sha1", 20),
    "hmac-sha224": ("sha224", 28),
    "hmac-sha256": ("sha256", 32),
    "hmac-sha256-128": ("sha256", 16),
    "hmac-sha384": ("sha384", 48),
    "hmac-sha384-192": ("sha384", 24),
    "hmac-sha512": ("sha512", 64),
    "hmac-sha512-256": ("sha512", 32),
}
_TIME_OCTETS = 6  # of the server's clock in the other data of BADTIME (section 5.2.3)
_FUDGE = 300  # seconds that clocks may differ (section 10)
_NO_ERROR = bytes(4)  # no error, and no other data


class NotTrusted(Exception):
    """An answer without signature, or with a wrong one; the text says which."""


class NotSigned(NotTrusted):
    """An answer without signature, and its RCODE."""

    def __init__(self, rcode: int) -> None:
        super().__init__(f"its answer ({rcode_text(rcode)}) is not signed")
        self.rcode = rcode


class SignatureRefused(Exception):
    """The server says what is wrong with our signature: BADKEY, BADSIG, BADTIME, or another error.

    `server_time` is its clock, in seconds since the epoch, if it tells.
    """

    def __init__(self, error: int, server_time: int | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.server_time = server_time


class Unsigned:
    """What a server without a key has in place of a Signer."""

    size = 0

    def sign(self, wire: bytes) -> tuple[bytes, bytes]:
        return wire, b""

    def verify(self, wire: bytes, request_mac: bytes) -> bytes:  # noqa: ARG002
        return wire


class Signer:
    """Signs messages, and verifies the answers. `clock` gives seconds since the epoch."""

    def __init__(self, key: TsigKey, clock: Callable[[], float]) -> None:
        digest, self._size = _ALGORITHMS[key.algorithm]
        self._name = plain_name(key.name)
        self._algorithm = plain_name(key.algorithm)
        # In the digest stand the name, class and TTL of the record, and the algorithm.
        self._variables = self._name + HEAD[2:] + self._algorithm
        secret = base64.b64decode(key.secret.reveal())
        # In a function, it is in no repr.
        self._digest: Callable[[bytes], bytes] = lambda data: hmac.digest(secret, data, digest)
        self._clock = clock

    @property
    def size(self) -> int:
        """The bytes that a signature adds to a message."""
        data = len(self._algorithm) + TIME.size + 2 + self._size + 2 + len(_NO_ERROR)
        return len(self._name) + FIXED + data

    def sign(self, wire: bytes) -> tuple[bytes, bytes]:
        """The message with a signature; and its MAC, with which the answer is verified."""
        now = int(self._clock())
        time = TIME.pack(now >> 32, now & 0xFFFFFFFF, _FUDGE)
        mac = self._mac(wire, time + _NO_ERROR)
        data = b"".join((self._algorithm, time, _length(mac), mac, wire[:2], _NO_ERROR))
        signed = (_recounted(wire, 1), self._name, HEAD, _length(data), data)
        return b"".join(signed), mac

    def verify(self, wire: bytes, request_mac: bytes) -> bytes:
        """The answer without its signature. Raises NotTrusted, SignatureRefused."""
        tsig = find_tsig(wire)
        if tsig is None:
            raise NotSigned(int.from_bytes(wire[3:4]) & 0xF)
        if error := int.from_bytes(tsig.error):
            time = int.from_bytes(tsig.other) if len(tsig.other) == _TIME_OCTETS else None
            raise SignatureRefused(error, time)
        plain = tsig.original_id + _recounted(wire[: tsig.start], -1)[2:]
        before = _length(request_mac) + request_mac
        expected = self._mac(before + plain, tsig.time + tsig.error + _length(tsig.other))
        if not hmac.compare_digest(expected, tsig.mac):
            raise NotTrusted("the signature of its answer is wrong")
        high, low, fudge = TIME.unpack(tsig.time)
        if (difference := abs((high << 32 | low) - int(self._clock()))) > fudge:
            raise NotTrusted(f"the time of its answer differs by {difference} s from ours")
        return plain

    def _mac(self, signed: bytes, end: bytes) -> bytes:
        return self._digest(signed + self._variables + end)[: self._size]


def _length(data: bytes) -> bytes:
    return len(data).to_bytes(2)


def _recounted(wire: bytes, difference: int) -> bytes:
    """The message with another number of additional records in its header."""
    count = int.from_bytes(wire[10:HEADER]) + difference
    return wire[:10] + count.to_bytes(2) + wire[HEADER:]
