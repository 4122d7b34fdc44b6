"""What all tests share: a network guard, real keys, a scripted server, a small disk."""

from __future__ import annotations

import base64
import gc
import ipaddress
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, settings

from dkimctl.models import DnsRecord, Registration
from dkimctl.service.location import DatabaseUrl
from needs import extend_path, program
from postgresql import PostgresServer, emptied, serving_postgresql
from small_disk import SmallDisk, run_in_namespace

extend_path()

# The same examples each time, so that a failure is due to the change; tests/fuzz looks for new
# ones. No time limits: the machine may be busy.
settings.register_profile(
    "same", max_examples=60, derandomize=True, deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.register_profile("few", settings.get_profile("same"), max_examples=20)
settings.load_profile("same")

# With Ubuntu's umask of 002, directories that tests create would be refused as state directories.
os.umask(0o022)

# A background job of a shell ignores SIGINT, and under nohup SIGHUP; so would the processes that
# the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Ten thousand collected tests live until the end: to look for garbage among them again and again
# takes a tenth of the fast tests' time.
gc.set_threshold(50_000)  # objects


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "not slow":
        settings.load_profile("few")


def _refuse_network(event: str, arguments: tuple) -> None:
    """An audit hook: fail on a connection to anything but loopback."""
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    host = str(arguments[1][0])
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise AssertionError(f"a test went to the network: {arguments[1]}")


sys.addaudithook(_refuse_network)


def _key_record(bits: int) -> str:
    der = (
        rsa.generate_private_key(public_exponent=65537, key_size=bits)
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    value = f"v=DKIM1; g=*; k=rsa; p={base64.b64encode(der).decode()}"
    # Some tests take the plus signs out, and one key of 2048 bits in 300 has none.
    return value if "+" in value else _key_record(bits)


@pytest.fixture(scope="session")
def key_records() -> dict[int, str]:
    """TXT values with real public keys, by their length in bits."""
    return {bits: _key_record(bits) for bits in (1024, 2048, 4096)}


@pytest.fixture
def make_registration(key_records):
    """Make a sound registration; keywords replace fields."""

    def make(sign_domain: str = "example.com", selector: str = "s1", **fields) -> Registration:
        key_len = fields.setdefault("key_len", 2048)
        fields.setdefault(
            "record",
            DnsRecord(f"{selector}._domainkey.{sign_domain}", "TXT", key_records[key_len or 2048]),
        )
        fields.setdefault("code", "201")
        fields.setdefault("message", "created")
        return Registration(sign_domain, selector, **fields)

    return make


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass
class Answer:
    """A response of a ScriptedServer. A `body` that is not bytes is sent as JSON.

    It has a Date, unless `headers` have another one.
    """

    status: int = 200
    body: object = b""
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that hung up is no error
            super().handle_error(request, client_address)


class ScriptedServer:
    """A real HTTP server on loopback that records its requests.

    `answer` takes a Request and returns an Answer, or None to hang up without one.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.answer = lambda request: Answer(404)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.rfile.read(length))
                server.requests.append(request)
                answer = server.answer(request)
                if answer is None:
                    self.close_connection = True
                    return
                body = answer.content()
                if "Date" in answer.headers:
                    self.send_response_only(answer.status)
                else:
                    self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in answer.headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = handle_one

            def log_message(self, *arguments) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def scripted_server():
    """A ScriptedServer that ends with the test."""
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def api_fixture():
    """Read an example of the API, which client and service must both match."""
    folder = Path(__file__).parent / "fixtures" / "api"
    return lambda name: (folder / name).read_bytes()


@pytest.fixture
def make_answer():
    """Make an Answer for a ScriptedServer."""
    return Answer


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk; if this process may not mount one, the test runs in one that may."""
    if sys.platform != "linux":
        pytest.skip("needs a tmpfs of Linux")
    path = tmp_path / "disk"
    path.mkdir()
    disk = SmallDisk(path)
    yield disk
    disk.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    disk = pyfuncitem.funcargs.get("small_disk")
    if disk is None or disk.mounted:
        return None
    run_in_namespace(pyfuncitem)
    return True  # the test is done


@pytest.fixture(scope="session")
def needs_tool() -> Callable[[str], str]:
    """Give the path of a program, or skip the test without it: see `needs.program`."""
    return program


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    with serving_postgresql(program) as server:
        yield server


@pytest.fixture
def postgresql_database(postgresql: PostgresServer) -> DatabaseUrl:
    """A database with empty tables; a test has one at a time."""
    return emptied(postgresql, "service")


@pytest.fixture(scope="session")
def needs_root() -> None:
    """Skip the test unless it can give files to another user."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
