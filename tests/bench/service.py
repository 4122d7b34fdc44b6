"""Measure the service under load, each figure beside its floor in the same run.

Run: python tests/bench/service.py keys|answers|workers|growth [--rounds N] [--seconds N]
     [--size N]

All over HTTP on loopback with a new SQLite file, and with wrk (Debian: wrk) as the client. Rounds
are interleaved, and the best of them counts, since others may use the machine.

keys: registrations of 2048 bits beside a bare loop of `cryptography` on all processors.
answers: tokens, and 409s of 1 and 50 pairs, beside the same bytes from a bare Falcon application
    on the same server.
workers: 409s of 50 pairs, with two processes beside one.
growth: requests of 50, with `--size` registrations in the database beside 1,000.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import insert

from dkimctl.service.clients import create_client, issue_token
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import make_key
from dkimctl.service.schema import registrations
from load import TOOL, running

CONNECTIONS = 4  # fewer than may wait for keys
BATCH = 50
FEW = 1000  # registrations in a small database
BITS = 2048
CHILD = (sys.executable, __file__)  # as a server of an application of its own; see `main`
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
LUA = """
wrk.method = "POST"
wrk.headers["Authorization"] = %(authorization)s
wrk.headers["Content-Type"] = %(content_type)s
%(body)s
"""
# Registers other names in each request: `%(name)s` is Lua, with `number`.
NEW_BODY = """
math.randomseed(os.time())
local number = 0
request = function()
  local entries = {}
  for position = 1, %(batch)d do
    number = number + 1
    entries[position] = string.format(
      '{"sign_domain":"%%s","selector":"s1","key_len":2048}', %(name)s)
  end
  return wrk.format(nil, nil, nil, '{"domains":[' .. table.concat(entries, ",") .. "]}")
end
"""
NEW = '"n"..os.time().."-"..number..".new.example"'


class Call(NamedTuple):
    """A request to POST again and again; `body` is Lua that says what is sent."""

    path: str
    authorization: str
    content_type: str
    body: str


class Service:
    """The data of a service, in a file in `home`, with one client."""

    def __init__(self, home: Path, name: str = "service.db") -> None:
        self.home, self.data = home, home / name
        with closing(open_store(self.data)) as store:
            self.client = create_client(store)
            self.bearer = f"Bearer {issue_token(store, self.client.client_id, time.time())}"
        pair = f"{self.client.client_id}:{self.client.secret}".encode()
        self.basic = f"Basic {base64.b64encode(pair).decode()}"

    def fill(self, size: int) -> None:
        """Add registrations, all with the same key."""
        pair = make_key(BITS)
        row = {
            "selector": "s1", "client_id": self.client.client_id, "key_len": BITS,
            "start_date": "2026-01-01T00:00+00:00", "default": 0, "enable": True,
            "value": pair.value, "regist_date": "2026-01-01T00:00:00+00:00",
            "private_key": pair.private_key,
        }  # fmt: skip
        with closing(open_store(self.data)) as store:
            for start in range(0, size, 10_000):
                numbers = range(start, min(start + 10_000, size))
                rows = [{**row, "sign_domain": scattered(number)} for number in numbers]
                with store.writing(durable=False) as connection:
                    connection.execute(insert(registrations), rows)

    def serving(self, *words: object):
        """`dkimctl serve`; gives its URL."""
        return running(TOOL, "serve", "--port", 0, *words, "--data", self.data)

    def registered(self, count: int) -> Call:
        """Registers the first names again."""
        names = [{"sign_domain": scattered(n), "selector": "s1"} for n in range(count)]
        body = json.dumps({"domains": names})
        return Call("/domain/dkim", self.bearer, JSON, f"wrk.body = {json.dumps(body)}")

    def changing(self, name: str, batch: int = BATCH) -> Call:
        """Registers other names each time."""
        return Call("/domain/dkim", self.bearer, JSON, NEW_BODY % {"batch": batch, "name": name})


def scattered(number: int) -> str:
    """A name; consecutive numbers are not beside each other in an index. Also in Lua, in growth."""
    return f"d{number * 7919 % 1_000_003}-{number}.example"


def rate(url: str, call: Call, seconds: float) -> float:
    """Requests a second."""
    values = {"authorization": json.dumps(call.authorization), "body": call.body}
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA % {**values, "content_type": json.dumps(call.content_type)})
        script.flush()
        words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "--timeout", "60s"]
        words += ["-s", script.name, url + call.path]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    return float(re.search(r"Requests/sec: +([0-9.]+)", said)[1])


def serve(app: Callable) -> None:
    from dkimctl.service.server import HttpServer, listen

    listening = listen("127.0.0.1", 0)
    said = f"serving on http://127.0.0.1:{listening.getsockname()[1]}\n"
    ready = lambda: print(said, file=sys.stderr, flush=True)  # noqa: E731
    HttpServer(listening, lambda: app, workers=1, threads=256, ready=ready).run()


def serve_bare(answer: str) -> None:
    """The bytes in the file `answer`, for every POST, by a bare Falcon application."""
    import falcon

    class Resource:
        def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
            response.data = data

    data, app = Path(answer).read_bytes(), falcon.App()
    for path in ("/oauth2/token", "/domain/dkim"):
        app.add_route(path, Resource())
    serve(app)


def serve_stub(data: str) -> None:
    """The service with keys that take no time."""
    from dkimctl.service.app import create_app

    pair = make_key(BITS)
    serve(create_app(open_store(Path(data)), make_key=lambda _bits: pair))


# Measurements.


def keys(service: Service, options: argparse.Namespace) -> None:
    cores = os.cpu_count() or 1
    with service.serving() as url, ProcessPoolExecutor(cores) as processes:
        list(processes.map(make_keys, [0.1] * cores))  # they have started
        rounds = []
        for _ in range(options.rounds):
            bare = sum(processes.map(make_keys, [options.seconds] * cores))
            rounds.append((5 * rate(url, service.changing(NEW, 5), options.seconds), bare))
    print_ratios("2048-bit keys", rounds, "bare loop")


def make_keys(seconds: float) -> float:
    """How many keys a second `cryptography` makes, in one process."""
    count, started = 0, time.perf_counter()
    while time.perf_counter() < started + seconds:
        make_key(BITS)
        count += 1
    return count / (time.perf_counter() - started)


def answers(service: Service, options: argparse.Namespace) -> None:
    service.fill(BATCH)
    form = Call("/oauth2/token", service.basic, FORM, 'wrk.body = "grant_type=client_credentials"')
    calls = {"tokens": form}
    calls |= {f"409s of {count}": service.registered(count) for count in (1, BATCH)}
    for label, call in calls.items():
        headers = {"Authorization": call.authorization, "Content-Type": call.content_type}
        body = json.loads(call.body.removeprefix("wrk.body = ")).encode()
        with service.serving() as url:
            request = urllib.request.Request(url + call.path, body, headers)
            with urllib.request.urlopen(request) as answer:
                (service.home / "answer").write_bytes(answer.read())
            with running(*CHILD, "bare", service.home / "answer") as bare:
                compare(label, [(url, call), (bare, call)], "bare Falcon", options)


def workers(service: Service, options: argparse.Namespace) -> None:
    service.fill(BATCH)
    call = service.registered(BATCH)
    with service.serving("--workers", 1) as single, service.serving("--workers", 2) as double:
        compare("two workers", [(double, call), (single, call)], "one", options)


def growth(service: Service, options: argparse.Namespace) -> None:
    small = Service(service.home, "small.db")
    sizes = {small: FEW, service: options.size}
    for each, size in sizes.items():
        each.fill(size)
    with running(*CHILD, "stub", small.data) as few, running(*CHILD, "stub", service.data) as many:
        for label, name in {
            "50 new": lambda _: NEW,
            "50 registered": lambda size: (
                f"(function() local n = math.random(0, {size - 1}) "
                'return "d"..(n * 7919 % 1000003).."-"..n..".example" end)()'
            ),
        }.items():
            calls = [each.changing(name(size)) for each, size in sizes.items()]
            pairs = list(zip((few, many), calls, strict=True))
            compare(f"{label}, {FEW} registrations", pairs, f"{options.size}:", options)
    print(f"the data takes {service.data.stat().st_size / 2**20:.0f} MiB")


def compare(
    label: str, calls: Sequence[tuple[str, Call]], floor: str, options: argparse.Namespace
) -> None:
    rounds = [
        [rate(url, call, options.seconds) for url, call in calls] for _ in range(options.rounds)
    ]
    print_ratios(label, rounds, floor)


def print_ratios(label: str, rounds: Sequence[Sequence[float]], floor: str) -> None:
    """Of the best rounds, and then of each."""
    ours, bare = (max(rates) for rates in zip(*rounds, strict=True))
    each = " ".join(f"{rate / other:.2f}" for rate, other in rounds)
    print(f"{label}: {ours:.0f}/s, {floor} {bare:.0f}/s: {ours / bare:.2f} (each round: {each})")


def main() -> None:
    servers = {"bare": serve_bare, "stub": serve_stub}
    if sys.argv[1:2] and sys.argv[1] in servers:
        servers[sys.argv[1]](sys.argv[2])
        return
    measurements = {each.__name__: each for each in (keys, answers, workers, growth)}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("measurement", choices=measurements)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(f"{options.measurement}, at {time.strftime('%H:%M:%S')}")
        measurements[options.measurement](Service(Path(directory)), options)


if __name__ == "__main__":
    main()
