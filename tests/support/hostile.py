"""Hostile servers on loopback: plain sockets, and what they send."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNENDING = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"  # until the connection ends
PERIOD = 0.2  # seconds between dripping bytes


class HostileServer:
    """Sends the pieces that `say` makes of a request, and hangs up.

    `say` takes the whole request, head and body. With `tls`, the server uses TLS.
    """

    def __init__(
        self, say: Callable[[bytes], Iterable[bytes]], tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[bytes] = []
        self._say = say
        self._tls = tls
        self._is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def close(self) -> None:
        self._is_over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while not self._is_over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._meet, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _meet(self, connection: socket.socket) -> None:
        connection.settimeout(3)
        with connection, suppress(OSError):  # the client may hang up
            if self._tls is None:
                self._serve(connection)
                return
            with self._tls.wrap_socket(connection, server_side=True) as secured:
                self._serve(secured)

    def _serve(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        self.requests.append(request)
        for piece in self._say(request):
            if self._is_over.is_set():
                return
            connection.sendall(piece)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, _ = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n")
               if line.startswith(b"content-length:")]  # fmt: skip
    length = len(head) + 4 + sum(map(int, lengths))
    while len(data) < length:
        data += _some(connection)
    return data


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError
    return data


def whole(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A complete response."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join(
        [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *lines]
    )
    return f"{head}\r\n\r\n".encode() + body


def drip(text: bytes = b"x") -> Iterator[bytes]:
    """The bytes of `text`, over and over, one every PERIOD."""
    while True:
        for number in text:
            yield bytes([number])
            time.sleep(PERIOD)


def flood(text: bytes) -> Iterator[bytes]:
    """`text` without end, as fast as it is read."""
    piece = text * (65536 // len(text) + 1)
    while True:
        yield piece


def gzip_bomb() -> bytes:
    """1 MB that becomes 1 GB."""
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(1024)) + packer.flush()


def make_certificate(folder: Path, host: str, *, days: int) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for `host` that expires in `days`, and a server's TLS context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dkimctl test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=30))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path, key_path = folder / f"{host}.pem", folder / f"{host}.key"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key_path)
    return path, context


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@contextmanager
def servers() -> Iterator[Callable[..., HostileServer]]:
    """Start HostileServers that end with the block."""
    with ExitStack() as running:

        def start(say, tls=None) -> HostileServer:
            server = HostileServer(say, tls)
            running.callback(server.close)
            return server

        yield start
