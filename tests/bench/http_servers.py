"""Compare HTTP servers for one process: speed, and behaviour under the attacks of attack.py.

    python tests/bench/http_servers.py [--connections 1000] [--seconds 10] [SERVER ...]

Each serves the same bare Falcon application with 8 threads. Needs Linux, and the servers:
pip install cheroot granian gunicorn. "ours" is that of `dkimctl serve`.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attack

APP = """
import falcon
class Small:
    def on_get(self, request, response):
        response.media = {"items": [], "count": 0}
    def on_post(self, request, response):
        request.bounded_stream.read()
        response.media = {"items": [], "count": 0}
class Large:
    def on_get(self, request, response):
        response.data = b"x" * 600_000
app = falcon.App()
app.add_route("/small", Small())
app.add_route("/large", Large())
"""
OURS = """
import sys
from dkimctl.service.server.listening import Listening
from dkimctl.service.server.server import Server
from bare import app
Server(app, Listening("127.0.0.1", int(sys.argv[1])).sockets, 8).run()
"""
CHEROOT = """
import sys
from cheroot import wsgi
from bare import app
wsgi.Server(("127.0.0.1", int(sys.argv[1])), app, numthreads=8).start()
"""
SERVERS = {
    "ours": ["-c", OURS, "PORT"],
    "cheroot": ["-c", CHEROOT, "PORT"],
    "granian": ["-m", "granian", "--interface", "wsgi", "--blocking-threads", "8", "--no-ws",
                "--log-level", "error", "--port", "PORT", "bare:app"],
    "gunicorn": ["-m", "gunicorn", "--worker-class", "gthread", "--threads", "8", "--bind",
                 "127.0.0.1:PORT", "--log-level", "critical", "bare:app"],
}  # fmt: skip
KINDS = {
    "silent": attack.Kind(b""),
    "idle": attack.Kind(b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"),
    "trickling": attack.Kind(b"GET /small HTTP/1.1\r\nX: ", b"x"),
    "half bodies": attack.Kind(attack.half_body(path=b"/small")),
    "unread": attack.Kind(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" * 4, reads=False, lasts=5),
}


@contextlib.contextmanager
def serving(server: str, home: Path) -> Iterator[tuple[int, tuple[str, int]]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = ("127.0.0.1", free.getsockname()[1])
    (home / "bare.py").write_text(APP)
    (home / "tmp").mkdir()
    words = [word.replace("PORT", str(address[1])) for word in SERVERS[server]]
    search = os.pathsep.join([str(home), str(Path(__file__).parents[2])])
    environment = os.environ | {"TMPDIR": str(home / "tmp"), "PYTHONPATH": search}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *words], env=environment, cwd=home, stderr=log)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                socket.create_connection(address).close()
                break
            except OSError:
                pass
            time.sleep(0.1)
        else:
            raise AssertionError((home / "log").read_text())
        yield process.pid, address
    finally:
        process.kill()
        process.wait()
        time.sleep(1)  # for its children


def requests_per_second(address: tuple[str, int], seconds: float = 4) -> float:
    """Of four clients that keep their connections."""
    counts = [0] * 4
    ending = time.monotonic() + seconds

    def ask(number: int) -> None:
        with contextlib.closing(http.client.HTTPConnection(*address)) as connection:
            while time.monotonic() < ending:
                connection.request("GET", "/small")
                connection.getresponse().read()
                counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", nargs="*", metavar="SERVER", choices=[[], *SERVERS])
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    for server in options.servers or SERVERS:
        with tempfile.TemporaryDirectory() as home, serving(server, Path(home)) as (_, address):
            print(f"{server:10} {requests_per_second(address):6.0f} requests/s", flush=True)
        for name, kind in KINDS.items():
            with tempfile.TemporaryDirectory() as home, serving(server, Path(home)) as (pid, where):
                figures = attack.attack(
                    pid, where, kind, options.connections, options.seconds, Path(home, "tmp")
                )
                print(f"{server:10} {name:12} {figures}", flush=True)


if __name__ == "__main__":
    main()
