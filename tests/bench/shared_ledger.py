"""A team with one ledger in PostgreSQL: kill its commands, and stop the server, at random moments.

Run: python tests/bench/shared_ledger.py [KILLS [STOPS [DOMAINS [SEED]]]]

Two machines (homes) run `register` of the same file at a service with faults, then `rotate run`.
Of each, half of the KILLS (SIGKILL) and of the STOPS (as if the server crashed) come at random
moments. Then each command runs to its end, and the service's own data says whether anything was
doubled or lost. Exit 1 if so.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))  # also without pytest

import psycopg

import faulty_service
from audit import read_store
from dkimctl.service.clients import create_client
from dkimctl.service.database import open_store
from load import arguments, environment, running
from postgresql import PostgresServer, ledger_url, serving_postgresql

_CONFIG = "rotation: {max_age: 8d, lead: 7d, limit: 100000}\n"
_ENTRY = "- {{sign_domain: d{}.example.com, selector: s1, key_len: 1024}}\n"
# Nobody answers DNS, and that at once; only root can have it so.
_MOUNT = 'mount --bind resolv.conf /etc/resolv.conf && exec "$@"'
_WITHOUT_DNS = ["unshare", "-m", "sh", "-c", _MOUNT, "sh"] if os.geteuid() == 0 else []
_LONGEST = 3.0  # seconds after which a run is killed or its server stopped
_LIMIT = 1200.0  # seconds that a run may take


class Team:
    """Machines that share a ledger, and the service that they use."""

    def __init__(self, directory: Path, server: PostgresServer, domains: int) -> None:
        self.server = server
        self.url = ledger_url(server)
        self.status: Counter[int] = Counter()  # of the runs whose server was stopped
        self._directory = directory
        self._domains = domains
        (directory / "domains.yaml").write_text("".join(map(_ENTRY.format, range(domains))))
        (directory / "config.yaml").write_text(_CONFIG)
        (directory / "resolv.conf").write_text("nameserver 127.0.0.99\n")

    @contextmanager
    def served(self, **faults: float) -> Iterator[None]:
        data = self._directory / "service.db"
        with running(sys.executable, faulty_service.__file__, data, json.dumps(faults)) as url:
            with closing(open_store(data)) as store:
                client = create_client(store)
            self._account = {
                "DKIMCTL_AUTH_URL": url,
                "DKIMCTL_BASE_URL": url,
                "DKIMCTL_CLIENT_ID": client.client_id,
                "DKIMCTL_CLIENT_SECRET": client.secret,
                "DKIMCTL_LEDGER": self.url,
                "DKIMCTL_CONFIG": str(self._directory / "config.yaml"),
            }
            yield

    def start(self, machine: int, *words: str) -> subprocess.Popen[str]:
        """Start a command on a machine; its stderr goes to a file."""
        home = self._directory / f"home{machine}"
        home.mkdir(exist_ok=True)
        command = [*_WITHOUT_DNS, sys.executable, "-m", "dkimctl", *words]
        with (home / "errors").open("w") as errors:
            return subprocess.Popen(
                command, cwd=self._directory, text=True,
                env=environment(home) | self._account, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip

    def said(self, machine: int) -> str:
        return (self._directory / f"home{machine}" / "errors").read_text()

    def register(self, machine: int) -> subprocess.Popen[str]:
        return self.start(machine, "register", "domains.yaml", "--batch-size", "5")

    def rotate(self, machine: int) -> subprocess.Popen[str]:
        return self.start(machine, "rotate", "run", "--wait", "0s")

    def finish(self, *processes: subprocess.Popen[str]) -> list[int]:
        return [process.wait(_LIMIT) for process in processes]

    def disturb(self, run, kills: int, stops: int, draw: random.Random) -> None:
        """Start a run for each disturbance, and kill it, or stop the server, in its middle."""
        events = ["kill"] * kills + ["stop"] * stops
        draw.shuffle(events)
        for number, event in enumerate(events):
            process = run(number % 2)
            time.sleep(draw.uniform(0.2, _LONGEST))
            if event == "kill":
                process.kill()
                process.wait()
            else:
                self.server.stop(crash=True)
                self.status[process.wait(_LIMIT)] += 1
                said = self.said(number % 2)
                assert "Traceback" not in said, said
                self.server.start()

    def let_pass(self) -> None:
        """Make all keys old enough for a successor."""
        old = "2026-01-01T00:00:00+00:00"
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE dkimctl.registration SET regist_date = %s", (old,))
            connection.execute("UPDATE dkimctl.registration SET start_date = NULL")

    def problems(self, keys: int) -> list[str]:
        """What was doubled, lost, or is still open, with this number of keys of each domain."""
        store = read_store(self._directory / "service.db")
        with psycopg.connect(self.url) as connection:
            query = "SELECT sign_domain, selector, value FROM dkimctl.registration"
            ledger = connection.execute(query).fetchall()
            query = "SELECT entries FROM dkimctl.open_request"
            left = connection.execute(query).fetchall()
            query = "SELECT sign_domain, selector FROM dkimctl.event WHERE what = 'registered'"
            events = connection.execute(query).fetchall()
        each, told = Counter(domain for domain, _, _ in store), Counter(events)
        told.subtract(row[:2] for row in ledger)
        found = {
            "not exactly as many keys": {name: n for name, n in each.items() if n != keys},
            "not registered": self._domains - len(each),
            "not in the ledger": set(store) - set(ledger),
            "only in the ledger": set(ledger) - set(store),
            "open": left,
            "not one event": {key: n for key, n in told.items() if n},
        }
        return [f"{what}: {names}" for what, names in found.items() if names]


def rehearse(
    directory: Path, server: PostgresServer, *, kills: int, stops: int, domains: int, seed: int
) -> list[str]:
    """The problems after these disturbances."""
    team, draw = Team(directory, server, domains), random.Random(seed)
    with team.served(seed=seed, any=0.05, slow=0.2):
        for run, keys in ((team.register, 1), (team.rotate, 2)):
            team.disturb(run, kills // 2, stops // 2, draw)
            for _ in range(3):  # the service has faults
                team.finish(run(0))
                if not (problems := team.problems(keys)):
                    break
            print(f"{run.__name__}: exit codes without the server: {dict(team.status)}")
            if problems:
                return [run.__name__, *problems]
            team.let_pass()
    return []


def race(directory: Path, server: PostgresServer, domains: int) -> list[str]:
    """The problems after three `register` at once, then two `rotate run` at once."""
    team = Team(directory, server, domains)
    with team.served(seed=1, any=0.0, slow=0.0):
        statuses = team.finish(*map(team.register, range(3)))
        if problems := team.problems(1):
            return [f"register: {statuses}", *problems]
        team.let_pass()
        statuses += team.finish(*map(team.rotate, range(2)))
    waited = sum("waiting for another" in team.said(machine) for machine in range(3))
    problems = team.problems(2)
    return problems if waited else ["nobody has waited", *problems]


def main() -> None:
    kills, stops, domains, seed = arguments(60, 10, 1500, 1)

    def need(name: str) -> str:
        return shutil.which(name) or str(next(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))

    with serving_postgresql(need, fsync="on") as server:
        for check in (
            lambda home: race(home, server, 200),
            lambda home: rehearse(
                home, server, kills=kills, stops=stops, domains=domains, seed=seed
            ),
        ):
            with tempfile.TemporaryDirectory() as home:
                started = time.perf_counter()
                problems = check(Path(home))
                print(f"{time.perf_counter() - started:.0f} s: {problems or 'no problem'}")
                if problems:
                    sys.exit(1)


if __name__ == "__main__":
    main()
