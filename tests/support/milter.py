"""A mail server's side of the milter protocol, as far as a filter that signs needs it.

The commands and responses are those of libmilter/include/libmilter/mfdef.h of sendmail.
"""

from __future__ import annotations

import re
import socket
import struct

_VERSION, _ALL_ACTIONS, _ALL_STEPS = 6, 0x1FF, 0
_INSERT_HEADER, _ADD_HEADER, _PROGRESS = b"i", b"h", b"p"
_DECISIONS = b"acdrty"  # accept, continue, discard, reject, temporary failure, reply code


def added_headers(
    port: int, message: bytes, sender: str
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """The decision of the filter on this port of loopback, and the header fields that it adds.

    `message` has CRLF, and a space after each field's name. It comes from this machine.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        _send(connection, b"O", struct.pack("!III", _VERSION, _ALL_ACTIONS, _ALL_STEPS))
        command, _ = _receive(connection)
        assert command == b"O"
        head, _, body = message.partition(b"\r\n\r\n")
        commands = [
            (b"C", b"localhost\0" + b"4" + struct.pack("!H", 25) + b"127.0.0.1\0"),
            (b"H", b"localhost\0"),
            (b"M", f"<{sender}>".encode() + b"\0"),
            (b"R", b"<someone@example.net>\0"),
            (b"T", b""),
            *((b"L", _field(field)) for field in re.split(rb"\r\n(?![ \t])", head)),
            (b"N", b""),
            *([(b"B", body)] if body else []),
        ]
        for command, data in commands:
            _send(connection, command, data)
            decision, _ = _receive(connection)
            if decision != b"c":
                return decision, []
        _send(connection, b"E", b"")
        added = []
        while (response := _receive(connection))[0] not in _DECISIONS:
            if response[0] in (_INSERT_HEADER, _ADD_HEADER):
                field = response[1][4:] if response[0] == _INSERT_HEADER else response[1]
                name, value = field.rstrip(b"\0").split(b"\0")
                added.append((name, value))
        _send(connection, b"Q", b"")
        return response[0], added


def _field(text: bytes) -> bytes:
    return text.replace(b": ", b"\0", 1).replace(b"\r\n", b"\n") + b"\0"


def _send(connection: socket.socket, command: bytes, data: bytes) -> None:
    connection.sendall(struct.pack("!I", 1 + len(data)) + command + data)


def _receive(connection: socket.socket) -> tuple[bytes, bytes]:
    """The next response that is more than a sign of life."""
    while True:
        (length,) = struct.unpack("!I", _read(connection, 4))
        packet = _read(connection, length)
        if packet[:1] != _PROGRESS:
            return packet[:1], packet[1:]


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        assert piece, "the filter has closed the connection"
        data += piece
    return data
