"""A DNS server over TCP on loopback that answers as a test says, perhaps against all rules."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsig

from dns_servers import SECRET

KEYRING = {dns.name.from_text("dkim"): dns.tsig.Key("dkim", SECRET)}

Say = Callable[[bytes], bytes | None]


class HangUp(Exception):
    """Raised by a script to close the connection, after these bytes."""

    def __init__(self, last: bytes = b"") -> None:
        super().__init__()
        self.last = last


class ScriptedDns:
    """Gives what `say` makes of each message, as it is, in a thread for each connection."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else the thread that waits accepts one more
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
            try:
                while size := stream.read(2):
                    message = stream.read(int.from_bytes(size))
                    self.asked.append(message)
                    connection.sendall(self.say(message) or b"")
            except HangUp as end:
                connection.sendall(end.last)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1 << 16)  # else what was not read resets the connection


@contextlib.contextmanager
def scripted_dns(say: Say) -> Iterator[ScriptedDns]:
    server = ScriptedDns(say)
    try:
        yield server
    finally:
        server.close()


def is_update(wire: bytes) -> bool:
    return wire[2] >> 3 & 0xF == 5


def is_wildcard(wire: bytes) -> bool:
    return wire[12:14] == b"\1*"


def reply(wire: bytes, *values: str, rcode: str = "NOERROR", flags: str = "AA") -> bytes:
    """The signed response to a message, with these TXT values unless it is about a wildcard."""
    asked = dns.message.from_wire(wire, keyring=KEYRING)
    made = dns.message.make_response(asked)
    made.flags |= dns.flags.from_text(flags)
    made.set_rcode(dns.rcode.from_text(rcode))
    if values and not is_update(wire) and not is_wildcard(wire):
        name = asked.question[0].name
        made.answer = [dns.rrset.from_text(name, 60, "IN", "TXT", *map('"{}"'.format, values))]
    return made.to_wire(max_size=65535)


def framed(*messages: bytes) -> bytes:
    return b"".join(len(one).to_bytes(2) + one for one in messages)
