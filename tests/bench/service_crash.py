"""Kill the service under load: what it answered with 201 is in the database, once.

Run: python tests/bench/service_crash.py [--kills 60] [--pairs 500] [--database URL]

A worker of `serve --workers 2` gets SIGKILL every now and then, while clients register. Then 16
clients register the same pairs at once. With a new SQLite file, or an empty PostgreSQL database.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from sqlalchemy import select

from dkimctl.service.clients import create_client, issue_token
from dkimctl.service.database import open_store
from dkimctl.service.location import Location, read_location
from dkimctl.service.schema import registrations

sys.path.append(str(Path(__file__).parents[1] / "support"))  # also without pytest

from processes import Cli, ServeProcess, wait_for

SELECTOR = "s1"
BITS = 1024  # quick to make
_TIMEOUT = 60.0  # seconds for one answer
_PAUSE = 0.05  # seconds after a failure

Items = list[dict[str, Any]]


class Caller:
    """A client with a token, on one connection at a time."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT)

    def register(self, names: Iterable[str]) -> Items:
        """The items of the answer; none if it is not 200, or there was none."""
        entries = [{"sign_domain": name, "selector": SELECTOR, "key_len": BITS} for name in names]
        try:
            self._connection.request(
                "POST", "/domain/dkim", json.dumps({"domains": entries}), self._headers
            )
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return []
        items: Items = json.loads(body)["items"] if answer.status == 200 else []
        return items

    def close(self) -> None:
        self._connection.close()


class Load:
    """Clients that register new names until the end of the block, each again until it is there.

    `created` has the values of what was answered with 201, `registered` those of any answer.
    `twice` are the names that were answered with 201 twice. `failures` counts the requests without
    an answer, and with one that leaves a name open.
    """

    def __init__(self, url: str, location: Location, clients: int = 6, batch: int = 5) -> None:
        self.created: dict[str, str] = {}
        self.registered: dict[str, set[str]] = {}
        self.twice: list[str] = []
        self.failures = 0
        self._url = url
        self._batch = batch
        self._tokens = new_tokens(location, clients)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(clients)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int) -> None:
        """Until so many more are created."""
        wanted = len(self.created) + count
        wait_for(lambda: len(self.created) >= wanted)

    def wait_for_failure(self) -> None:
        failures = self.failures
        wait_for(lambda: self.failures > failures)

    def _run(self, number: int) -> None:
        with closing(Caller(self._url, self._tokens[number])) as caller:
            for first in itertools.count(0, self._batch):
                waiting = {f"d{first + n}.of-{number}.example" for n in range(self._batch)}
                while waiting:
                    if self._ended.is_set():
                        return
                    answered = [
                        item for item in caller.register(waiting) if "setting_values" in item
                    ]
                    with self._lock:
                        for item in answered:
                            self._note(item)
                        waiting -= {item["sign_domain"] for item in answered}
                        self.failures += bool(waiting)
                    if waiting:
                        time.sleep(_PAUSE)

    def _note(self, item: dict[str, Any]) -> None:
        name, value = item["sign_domain"], item["setting_values"]["value"]
        self.registered.setdefault(name, set()).add(value)
        if item["result"]["code"] == "201":
            if name in self.created:
                self.twice.append(name)
            self.created[name] = value


def new_tokens(location: Location, count: int) -> list[str]:
    """Tokens of as many new clients."""
    with closing(open_store(location)) as store:
        return [
            issue_token(store, create_client(store).client_id, time.time()) for _ in range(count)
        ]


def stored(location: Location) -> Sequence[Any]:
    """Name, value and private key of all registrations."""
    columns = registrations.c
    query = select(columns.sign_domain, columns.value, columns.private_key)
    with closing(open_store(location)) as store, store.reading() as connection:
        return connection.execute(query).all()


def problems(load: Load, location: Location) -> list[str]:
    """What is wrong in the database, after `load`."""
    rows = stored(location)
    values = {row.sign_domain: row.value for row in rows}
    wrong = [f"{name} was answered with 201 twice" for name in load.twice]
    wrong += [f"{name} is missing" for name in load.created if name not in values]
    wrong += [
        f"{name} has another value than was answered"
        for name, answered in load.registered.items()
        if answered != {values.get(name)}
    ]
    wrong += ["a key has two registrations"] * (len(rows) - len({*values.values()}))
    wrong += [
        f"{row.sign_domain} has another private key"
        for row in rows
        if not _is_pair(row.value, row.private_key)
    ]
    return wrong


def _is_pair(value: str, pem: bytes) -> bool:
    public = load_pem_private_key(pem, password=None).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return value.endswith(f"; p={base64.b64encode(der).decode()}")


def kill_workers(pid: int, load: Load, kills: int, seed: int) -> None:
    """SIGKILL workers of the service with this process ID, at random moments under load."""
    rng = random.Random(seed)
    for _ in range(kills):
        load.wait_for(1)
        time.sleep(rng.uniform(0, 0.3))
        while not (children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            time.sleep(_PAUSE)  # all were killed, and are being replaced
        os.kill(int(rng.choice(children)), signal.SIGKILL)
    load.wait_for(1)


def race(url: str, location: Location, names: Sequence[str]) -> list[Items]:
    """What the clients are answered that register `names` at once, each in another order."""
    clients = 16
    start = threading.Barrier(clients)

    def register(client: int, token: str) -> Items:
        shuffled = random.Random(client).sample(names, len(names))
        items: Items = []
        with closing(Caller(url, token)) as caller:
            start.wait()
            for first in range(0, len(names), 50):
                some = shuffled[first : first + 50]
                while not (answered := caller.register(some)):
                    time.sleep(_PAUSE)
                items += answered
        return items

    with ThreadPoolExecutor(clients) as threads:
        return list(threads.map(register, range(clients), new_tokens(location, clients)))


def race_problems(answers: Sequence[Items], names: Sequence[str], location: Location) -> list[str]:
    """What is wrong with what the clients were answered."""
    codes = [Counter(item["result"]["code"] for item in items) for items in answers]
    created = {
        item["sign_domain"]: item["setting_values"]["value"]
        for items in answers
        for item in items
        if item["result"]["code"] == "201"
    }
    count = sum(code["201"] for code in codes)
    wrong = [] if count == len(names) else [f"{count} are created of {len(names)}"]
    wrong += [f"codes {dict(code)}" for code in codes if code["201"] + code["409"] != len(names)]
    if {row.sign_domain: row.value for row in stored(location)} != created:
        wrong.append("the database has something else than was answered")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill the service under load.")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", help="URL of an empty PostgreSQL database")
    options = parser.parse_args()
    names = [f"d{number}.race.example" for number in range(options.pairs)]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        location = read_location(options.database) if options.database else home / "service.db"
        data = location if isinstance(location, Path) else location.text
        with closing(ServeProcess(Cli(home), "--workers", 2, "--data", data)) as service:
            answers = race(service.url, location, names)
            print(f"race for {len(names)}: problems {race_problems(answers, names, location)}")
            with Load(service.url, location) as load:
                kill_workers(service.pid, load, options.kills, options.seed)
        print(
            f"{options.kills} kills: {len(load.created)} created, {load.failures} requests failed, "
            f"problems {problems(load, location)}"
        )


if __name__ == "__main__":
    main()
