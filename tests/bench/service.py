"""Measure the service under load, each figure beside its floor in the same run.

Run: python tests/bench/service.py keys|answers|workers|growth [--rounds N] [--seconds N]
     [--size N]

All over HTTP on loopback with a new SQLite file, and with wrk (Debian: wrk) as the client where it
would be the limit otherwise. Rounds are interleaved, and the best of them counts, since others may
use the machine.

keys: registrations of 2048 bits beside a bare loop of `cryptography` on all processors.
answers: tokens, and 409s of 1 and 50 pairs, beside the same bytes from a bare Falcon application
    on the same server.
workers: 409s of 50 pairs, with two processes beside one.
growth: requests of 50, with `--size` registrations in the database beside 1,000.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import insert

from dkimctl.service.clients import ClientCredentials, create_client
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import make_key
from dkimctl.service.schema import registrations

TOOL = str(Path(sys.executable).with_name("dkimctl"))
CONNECTIONS = 4  # fewer than may wait for keys
BATCH = 50
FEW = 1000  # registrations in a small database
BITS = 2048
FORM = "grant_type=client_credentials"
# Sends the same request again and again; `body` may make another one each time.
LUA = """
wrk.method = "POST"
wrk.headers["Authorization"] = %(authorization)s
wrk.headers["Content-Type"] = %(content_type)s
%(body)s
"""
SAME_BODY = "wrk.body = %s"
NEW_BODY = """
math.randomseed(%(seed)d)
local number = 0
request = function()
  local entries = {}
  for position = 1, %(batch)d do
    number = number + 1
    entries[position] = string.format(%(entry)s, %(name)s)
  end
  return wrk.format(nil, nil, nil, '{"domains":[' .. table.concat(entries, ",") .. "]}")
end
"""


class Call(NamedTuple):
    """A request to POST again and again."""

    path: str
    authorization: str
    content_type: str
    body: str


def registration_body(names: Sequence[str], key_len: int = 1024) -> str:
    entries = [{"sign_domain": name, "selector": "s1", "key_len": key_len} for name in names]
    return json.dumps({"domains": entries})


class Client:
    """A light client on one connection."""

    def __init__(self, url: str, authorization: str) -> None:
        address = url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._authorization = authorization

    def post(self, path: str, body: str, content_type: str = "application/json") -> tuple:
        """The status, the body, and what Retry-After says."""
        headers = {"Authorization": self._authorization, "Content-Type": content_type}
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), int(answer.headers.get("Retry-After") or 0)

    def register(self, body: str) -> Counter[str]:
        """How many items had which code. A 429 is sent again when it says."""
        while True:
            status, answer, seconds = self.post("/domain/dkim", body)
            if status == 200:
                items = json.loads(answer)["items"]
                return Counter(item["result"]["code"] for item in items)
            assert status == 429, (status, answer)
            time.sleep(seconds)


class Service:
    """Starts and ends server processes on the same data, a file in `home`."""

    def __init__(self, home: Path, name: str = "service.db") -> None:
        self.data = home / name
        self.home = home
        self.store = open_store(self.data)
        self.client = create_client(self.store)
        self.basic = basic(self.client)

    def close(self) -> None:
        self.store.close()

    def serving(self, *words: object) -> AbstractContextManager[str]:
        """`dkimctl serve`; gives its URL."""
        return running([TOOL, "serve", "--port", 0, *words, "--data", self.data])

    def child(self, *words: object) -> AbstractContextManager[str]:
        """This program as a server of an application of its own; see `serve_bare`."""
        return running([sys.executable, __file__, *words])

    def bearer(self, url: str) -> str:
        """The Authorization header with a new token."""
        status, answer, _ = Client(url, self.basic).post(
            "/oauth2/token", FORM, "application/x-www-form-urlencoded"
        )
        assert status == 200, answer
        return f"Bearer {json.loads(answer)['access_token']}"


def basic(client: ClientCredentials) -> str:
    pair = f"{client.client_id}:{client.secret}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


@contextlib.contextmanager
def running(words: Sequence[object]) -> Iterator[str]:
    """A server, with its log in a file, as nobody reads it meanwhile."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen([*map(str, words)], stderr=log, env=environment)
        try:
            yield announced_url(process, Path(log.name))
        finally:
            process.terminate()
            process.wait()


def announced_url(process: subprocess.Popen[bytes], log: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"serving on (http://[0-9.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"the service did not start: {log.read_text()}")


def wrk(url: str, path: str, script: str, seconds: float, home: Path) -> float:
    """Requests a second, of a script in Lua."""
    (home / "wrk.lua").write_text(script)
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "60s"]
    words += ["-s", str(home / "wrk.lua"), url + path]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    return float(re.search(r"Requests/sec: +([0-9.]+)", said)[1])


def same(call: Call) -> str:
    return _lua(call.authorization, call.content_type, SAME_BODY % json.dumps(call.body))


def changing(authorization: str, *, name: str, seed: int = 1) -> str:
    """A script that registers other names each time: `name` is Lua, with `number`."""
    entry = '{"sign_domain":"%s","selector":"s1","key_len":2048}'
    body = NEW_BODY % {"batch": BATCH, "entry": json.dumps(entry), "name": name, "seed": seed}
    return _lua(authorization, "application/json", body)


def _lua(authorization: str, content_type: str, body: str) -> str:
    values = {"authorization": json.dumps(authorization), "content_type": json.dumps(content_type)}
    return LUA % {**values, "body": body}


# Applications of this program's own.


def serve_bare(answer: str, content_type: str) -> None:
    """The bytes in the file `answer`, for every POST, by a bare Falcon application."""
    import falcon

    data = Path(answer).read_bytes()

    class Resource:
        def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
            response.data = data
            response.content_type = content_type

    app = falcon.App()
    app.add_route("/oauth2/token", Resource())
    app.add_route("/domain/dkim", Resource())
    _serve(app)


def serve_stub(data: str) -> None:
    """The service with keys that take no time."""
    from dkimctl.service.app import create_app

    pair = make_key(BITS)
    _serve(create_app(open_store(Path(data)), make_key=lambda _bits: pair))


def _serve(app: Callable) -> None:
    from dkimctl.cli.commands.serve import listen
    from dkimctl.service.app import THREADS
    from dkimctl.service.server import HttpServer

    listening = listen("127.0.0.1", 0)
    said = f"serving on http://127.0.0.1:{listening.getsockname()[1]}"
    HttpServer(
        listening, lambda: app, workers=1, threads=THREADS,
        ready=lambda: print(said, file=sys.stderr, flush=True),
    ).run()  # fmt: skip


# Measurements.


def answers(service: Service, options: argparse.Namespace) -> None:
    with service.serving() as server:
        bearer = service.bearer(server)
        for entries in (1, BATCH):
            assert Client(server, bearer).register(body_of(entries)) == {"201": entries}
        calls = {
            "tokens": Call("/oauth2/token", service.basic, "application/x-www-form-urlencoded",
                           FORM),
            "409s, 1 pair": Call("/domain/dkim", bearer, "application/json", body_of(1)),
            "409s, 50 pairs": Call("/domain/dkim", bearer, "application/json", body_of(BATCH)),
        }  # fmt: skip
        for label, call in calls.items():
            compare(label, call, server, service, options)


def body_of(entries: int) -> str:
    return registration_body([f"d{number}.of-{entries}.example" for number in range(entries)])


def compare(
    label: str, call: Call, url: str, service: Service, options: argparse.Namespace
) -> None:
    status, body, _ = Client(url, call.authorization).post(call.path, call.body, call.content_type)
    assert status == 200, body
    path = service.home / "answer"
    path.write_bytes(body)
    with service.child("bare", path, "application/json") as bare:
        rounds = alternate([url, bare], call, service, options)
    print_ratios(label, rounds, "bare Falcon")


def alternate(
    urls: Sequence[str], call: Call, service: Service, options: argparse.Namespace
) -> list[list[float]]:
    return [
        [wrk(url, call.path, same(call), options.seconds, service.home) for url in urls]
        for _ in range(options.rounds)
    ]


def keys(service: Service, options: argparse.Namespace) -> None:
    cores = os.cpu_count() or 1
    requests = max(1, round(options.seconds * cores * 25 / BATCH / CONNECTIONS)) * CONNECTIONS
    names = new_names()
    with service.serving() as server, ProcessPoolExecutor(cores) as processes:
        list(processes.map(_make_keys, [0.1] * cores))  # they have started
        rounds = []
        for _ in range(options.rounds):
            bare = sum(processes.map(_make_keys, [options.seconds] * cores))
            rounds.append((register_rate(service, server, names, requests), bare))
    print_ratios("2048-bit keys", rounds, "bare loop")


def register_rate(service: Service, url: str, names: Iterator[str], requests: int) -> float:
    """How many registrations a second, with `requests` requests of 50."""
    bodies = [registration_body([next(names) for _ in range(BATCH)], BITS) for _ in range(requests)]
    bearer = service.bearer(url)
    shares = [bodies[first::CONNECTIONS] for first in range(CONNECTIONS)]

    def register(share: Sequence[str]) -> Counter[str]:
        client = Client(url, bearer)
        return sum(map(client.register, share), Counter())

    started = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        codes = sum(threads.map(register, shares), Counter())
    assert codes == {"201": requests * BATCH}, codes
    return requests * BATCH / (time.perf_counter() - started)


def _make_keys(seconds: float) -> float:
    """How many keys a second `cryptography` makes, in one process."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    count, started = 0, time.perf_counter()
    while time.perf_counter() < started + seconds:
        rsa.generate_private_key(public_exponent=65537, key_size=BITS)
        count += 1
    return count / (time.perf_counter() - started)


def new_names() -> Iterator[str]:
    return (f"d{number}.new.example" for number in itertools.count())


def workers(service: Service, options: argparse.Namespace) -> None:
    with service.serving("--workers", 1) as one, service.serving("--workers", 2) as two:
        bearer = service.bearer(one)
        body = body_of(BATCH)
        assert Client(one, bearer).register(body) == {"201": BATCH}
        call = Call("/domain/dkim", bearer, "application/json", body)
        rounds = alternate([two, one], call, service, options)
    print_ratios("two workers", rounds, "one")


def growth(service: Service, options: argparse.Namespace) -> None:
    with contextlib.closing(Service(service.home, "small.db")) as small:
        sizes = {small: FEW, service: options.size}
        for one, size in sizes.items():
            fill(one, size)
        with small.child("stub", small.data) as few, service.child("stub", service.data) as large:
            urls = dict(zip(sizes, (few, large), strict=True))
            bearers = {one: one.bearer(url) for one, url in urls.items()}
            for label, name in {
                "50 new": lambda number, _: f'"n{number}-"..number..".new.example"',
                "50 registered": lambda _, size: registered_name(size),
            }.items():
                rounds = []
                for number in range(options.rounds):
                    scripts = {
                        one: changing(bearers[one], name=name(number, size), seed=number)
                        for one, size in sizes.items()
                    }
                    rounds.append(
                        [
                            wrk(urls[one], "/domain/dkim", scripts[one], options.seconds, one.home)
                            for one in sizes
                        ]
                    )
                print_ratios(f"{label}, {FEW} registrations", rounds, f"{options.size}:")
    print(f"the data takes {service.data.stat().st_size / 2**20:.0f} MiB")


def fill(service: Service, size: int) -> None:
    """Add registrations of the client, all with the same key."""
    pair = make_key(BITS)
    row = {
        "selector": "s1", "client_id": service.client.client_id, "key_len": BITS,
        "start_date": "2026-01-01T00:00+00:00", "default": 0, "enable": True, "value": pair.value,
        "regist_date": "2026-01-01T00:00:00+00:00",
        "private_key": service.store.seal(pair.private_key),
    }  # fmt: skip
    for start in range(0, size, 10_000):
        numbers = range(start, min(start + 10_000, size))
        with service.store.writing(durable=False) as connection:
            connection.execute(
                insert(registrations), [{**row, "sign_domain": scattered(one)} for one in numbers]
            )


def scattered(number: int) -> str:
    """A name; consecutive numbers are not beside each other in an index. Also in Lua, below."""
    return f"d{number * 7919 % 1_000_003}-{number}.example"


def registered_name(size: int) -> str:
    return f'(function() local n = math.random(0, {size - 1}) \
 return "d"..(n * 7919 % 1000003).."-"..n..".example" end)()'


def print_ratios(label: str, rounds: Sequence[Sequence[float]], floor: str) -> None:
    """Of the best rounds, and then of each."""
    ours, bare = (max(rates) for rates in zip(*rounds, strict=True))
    each = " ".join(f"{one / other:.2f}" for one, other in rounds)
    print(f"{label}: {ours:.0f}/s, {floor} {bare:.0f}/s: {ours / bare:.2f} (each round: {each})")


def main() -> None:
    if sys.argv[1:2] == ["bare"]:
        serve_bare(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["stub"]:
        serve_stub(*sys.argv[2:])
        return
    measurements = {one.__name__: one for one in (keys, answers, workers, growth)}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("measurement", choices=measurements)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(f"{options.measurement}, at {time.strftime('%H:%M:%S')}")
        with contextlib.closing(Service(Path(directory))) as service:
            measurements[options.measurement](service, options)


if __name__ == "__main__":
    main()
