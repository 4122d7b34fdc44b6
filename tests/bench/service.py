"""Measure the service under load, each figure beside its floor in the same run.

Run: python tests/bench/service.py keys|answers|workers|growth [--database URL]
     [--small URL] [--rounds N] [--seconds N] [--size N]

All over HTTP on loopback, with wrk (Debian: wrk) as the client where it would be the limit
otherwise. The data is a new SQLite file, or an empty PostgreSQL database. Rounds are interleaved,
and the best of them counts, since others may use the machine.

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
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import insert, text

from dkimctl.service.clients import ClientCredentials, create_client
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import make_key
from dkimctl.service.location import Location, read_location
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


class Serving(NamedTuple):
    """A server that runs."""

    url: str
    pid: int

    def processor_seconds(self) -> float:
        """What its worker processes used so far."""
        total = 0
        for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(stat[11]) + int(stat[12])
        return total / os.sysconf("SC_CLK_TCK")


class Client:
    """A light client on one connection."""

    def __init__(self, server: Serving, authorization: str) -> None:
        address = server.url.removeprefix("http://")
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
    """Starts and ends server processes on the same data."""

    def __init__(self, location: Location, home: Path) -> None:
        self.location = location
        self.home = home
        self.store = open_store(location)
        self.client = create_client(self.store)
        self.basic = basic(self.client)

    def close(self) -> None:
        self.store.close()

    @contextlib.contextmanager
    def serving(self, *words: object) -> Iterator[Serving]:
        """`dkimctl serve`."""
        command = [TOOL, "serve", "--port", 0, *words]
        command += ["--data", data_of(self.location)]
        with running(command) as server:
            yield server

    @contextlib.contextmanager
    def child(self, *words: object) -> Iterator[Serving]:
        """This program as a server of an application of its own; see `serve_bare`."""
        with running([sys.executable, __file__, *words]) as server:
            yield server

    def bearer(self, server: Serving) -> str:
        """The Authorization header with a new token."""
        status, answer, _ = Client(server, self.basic).post(
            "/oauth2/token", FORM, "application/x-www-form-urlencoded"
        )
        assert status == 200, answer
        return f"Bearer {json.loads(answer)['access_token']}"


def basic(client: ClientCredentials) -> str:
    pair = f"{client.client_id}:{client.secret}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


@contextlib.contextmanager
def running(words: Sequence[object]) -> Iterator[Serving]:
    """A server, with its log in a file, as nobody reads it meanwhile."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen([*map(str, words)], stderr=log, env=environment)
        try:
            yield Serving(announced_url(process, Path(log.name)), process.pid)
        finally:
            process.terminate()
            process.wait()


def announced_url(process: subprocess.Popen[bytes], log: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"serving on (http://[0-9.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"the service did not start: {log.read_text()}")


class Wrk:
    """What wrk counted; `rate` is requests a second.

    `milliseconds` is how long a request took, and `processor` how many of them the server's
    processor, which other programs hardly change.
    """

    def __init__(self, server: Serving, path: str, script: str, seconds: float, home: Path) -> None:
        before = server.processor_seconds()
        lua = home / "wrk.lua"
        lua.write_text(script)
        words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "60s"]
        done = subprocess.run(
            [*words, "-s", str(lua), server.url + path], check=True, capture_output=True, text=True
        )
        assert "Non-2xx" not in done.stdout, done.stdout
        assert "Socket errors" not in done.stdout, done.stdout
        self.rate = float(re.search(r"Requests/sec: +([0-9.]+)", done.stdout)[1])
        count = int(re.search(r"([0-9]+) requests in", done.stdout)[1])
        self.milliseconds = CONNECTIONS / self.rate * 1000
        self.processor = (server.processor_seconds() - before) / count * 1000


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
    _serve(create_app(open_store(read_location(data)), make_key=lambda _bits: pair))


def _serve(app: Callable) -> None:
    from dkimctl.cli.commands.serve import listen
    from dkimctl.service.app import THREADS
    from dkimctl.service.server import Server

    listening = listen("127.0.0.1", 0)
    said = f"serving on http://127.0.0.1:{listening.getsockname()[1]}"
    Server(
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
    label: str, call: Call, server: Serving, service: Service, options: argparse.Namespace
) -> None:
    status, body, _ = Client(server, call.authorization).post(
        call.path, call.body, call.content_type
    )
    assert status == 200, body
    path = service.home / "answer"
    path.write_bytes(body)
    with service.child("bare", path, "application/json") as bare:
        rounds = [
            [
                Wrk(one, call.path, same(call), options.seconds, service.home)
                for one in (server, bare)
            ]
            for _ in range(options.rounds)
        ]
    print_ratios(label, [(ours.rate, floor.rate) for ours, floor in rounds], "bare Falcon")
    ours, floor = (min(one.processor for one in each) for each in zip(*rounds, strict=True))
    print(f"  processor: {ours:.2f} ms a request, bare {floor:.2f} ms: {floor / ours:.2f}")


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


def register_rate(service: Service, server: Serving, names: Iterator[str], requests: int) -> float:
    """How many registrations a second, with `requests` requests of 50."""
    bodies = [registration_body([next(names) for _ in range(BATCH)], BITS) for _ in range(requests)]
    bearer = service.bearer(server)
    shares = [bodies[first::CONNECTIONS] for first in range(CONNECTIONS)]

    def register(share: Sequence[str]) -> Counter[str]:
        client = Client(server, bearer)
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
    with (
        service.serving("--workers", 1) as one,
        service.serving("--workers", 2) as two,
    ):
        bearer = service.bearer(one)
        body = body_of(BATCH)
        assert Client(one, bearer).register(body) == {"201": BATCH}
        call = Call("/domain/dkim", bearer, "application/json", body)
        rounds = [
            tuple(
                Wrk(server, call.path, same(call), options.seconds, service.home).rate
                for server in (two, one)
            )
            for _ in range(options.rounds)
        ]
    print_ratios("two workers", rounds, "one")


def growth(service: Service, options: argparse.Namespace) -> None:
    other = read_location(options.small) if options.small else service.home / "small.db"
    with contextlib.closing(Service(other, service.home)) as small:
        sizes = {small: FEW, service: options.size}
        for one, size in sizes.items():
            fill(one, size)
        with (
            service.child("stub", data_of(service.location)) as large_server,
            small.child("stub", data_of(small.location)) as small_server,
        ):
            servers = {service: large_server, small: small_server}
            scripts = {one: growing(one, servers[one], sizes[one]) for one in servers}
            for label in ("50 new", "50 registered"):
                rounds = [
                    [
                        Wrk(servers[one], "/domain/dkim", next(scripts[one][label]),
                            options.seconds, service.home)
                        for one in servers
                    ]
                    for _ in range(options.rounds)
                ]  # fmt: skip
                print_growth(label, rounds, options.size)
    print(f"the data takes {data_size(service) / 2**20:.0f} MiB")


def growing(service: Service, server: Serving, size: int) -> dict[str, Iterator[str]]:
    """Scripts for one round after the other."""
    bearer = service.bearer(server)
    return {
        "50 new": (
            changing(bearer, name=f'"n{number}-"..number..".new.example"')
            for number in itertools.count()
        ),
        "50 registered": (
            changing(bearer, name=registered_name(size), seed=number)
            for number in itertools.count()
        ),
    }


def print_growth(label: str, rounds: Sequence[Sequence[Wrk]], size: int) -> None:
    for unit, times in (
        ("ms", [[one.milliseconds for one in pair] for pair in rounds]),
        ("ms of the processor", [[one.processor for one in pair] for pair in rounds]),
    ):
        many, few = (min(each) for each in zip(*times, strict=True))
        each = " ".join(f"{one / other:.2f}" for one, other in times)
        print(
            f"{label}: {many:.2f} {unit} with {size} registrations, {few:.2f} with {FEW}: "
            f"{many / few:.2f} times (each round: {each})"
        )


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


def data_of(location: Location) -> str:
    return str(location) if isinstance(location, Path) else location.text


def data_size(service: Service) -> int:
    """In bytes."""
    if isinstance(service.location, Path):
        return service.location.stat().st_size
    with service.store.reading() as connection:
        return connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()


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
    measurements = {
        "keys": keys, "answers": answers, "workers": workers, "growth": growth
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("measurement", choices=measurements)
    parser.add_argument("--database", help="URL of an empty PostgreSQL database")
    parser.add_argument("--small", help="growth: URL of another empty PostgreSQL database")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        location = read_location(options.database) if options.database else home / "service.db"
        print(f"{options.measurement}, at {time.strftime('%H:%M:%S')}")
        with contextlib.closing(Service(location, home)) as service:
            measurements[options.measurement](service, options)


if __name__ == "__main__":
    main()
