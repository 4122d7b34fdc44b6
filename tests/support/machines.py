"""The machines of an operator on one clock: name servers, a resolver, the service, `dkimctl`.

The zones of DOMAINS are at a primary, which takes signed updates, and at two secondaries, which it
notifies; the root and a top-level domain delegate to all three.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from commands import CommandServer, Done
from dated import FAKETIME
from delegation import Host, Zone
from dkimctl.models import RegistrationKey, key_of
from mail import Answers
from network import Network, ask, running
from processes import Cli, ServeProcess, login_words

PRIMARY, SECONDARIES = "127.0.0.2", ("127.0.0.3", "127.0.0.4")
_HOSTS = ("ns1.test", "ns2.test", "ns3.test")
_ZONES = [*(f"d{number:02}.test" for number in range(17)), "shop.d01.test"]
DOMAINS = [*_ZONES, "mail.d00.test", "news.d00.test"]
_RESOLVER = "cache-max-ttl: 0\n  cache-max-negative-ttl: 0"  # it remembers nothing
_SYNC = 10.0  # seconds of real time until secondaries must have what the primary has
_CONFIG = """
default_profile: operator
profiles: {{operator: {{credential_store: file, defaults: {{key_len: 2048}}}}}}
dns:
  - {{provider: rfc2136, server: {server}{key_file}, ttl: 60}}
notify: {{command: [sh, -c, 'cat >"$0/$(date +%s%N)"', "{notices}"], recheck: 1s}}
"""


class MovingClock:
    """A clock that several programs share, and that a test moves.

    libfaketime reads its offset from the real time in a file, each time that a program asks for
    the time; between two moves, time passes as always. The monotonic clock is the real one.
    `environment` has the variables with which a program has this clock.
    """

    def __init__(self, file: Path, need: Callable[[str], str]) -> None:
        self._file = file
        # named's malloc (jemalloc) asks for the time before libfaketime is ready; with libc loaded
        # before jemalloc, libfaketime uses another one.
        self.environment = FAKETIME | {
            "LD_PRELOAD": f"{_library(need('faketime'))} libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
        }

    def move(self, then: datetime) -> None:
        """Make it this time (UTC) now."""
        offset = (then - datetime.now(UTC)).total_seconds()
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset:+.3f}\n")
        new.rename(self._file)

    @property
    def offset(self) -> float:
        """How far it is ahead of the real time, in seconds."""
        return float(self._file.read_text())


class Seen(NamedTuple):
    """What each running server has, by address, and the resolver; and the keys in the ledger."""

    servers: Mapping[str, Answers]
    resolver: Answers
    ledger: frozenset[RegistrationKey]


@contextlib.contextmanager
def starting(
    directory: Path, clock: MovingClock, need: Callable[[str], str], *, signed_updates: bool = True
) -> Iterator[Machines]:
    """All machines run until the block ends."""
    primary = Host(
        _HOSTS[0], (PRIMARY,), "named",
        updates=True, signed_updates=signed_updates, secondaries=SECONDARIES,
        environment=clock.environment,
    )  # fmt: skip
    others = [
        Host(name, (address,), "named", secondary_of=PRIMARY)
        for name, address in zip(_HOSTS[1:], SECONDARIES, strict=True)
    ]
    options = {"validates": False, "resolver_options": _RESOLVER}
    zones = [Zone(name, _HOSTS) for name in _ZONES]
    with (
        running(directory, need, hosts=[primary, *others], zones=zones, **options) as network,
        contextlib.ExitStack() as stack,
    ):
        yield Machines(network, clock, directory / "home", stack, signed_updates)


class Machines:
    """`dkimctl` is logged in at the service; `store` is the service's data file."""

    def __init__(
        self,
        network: Network,
        clock: MovingClock,
        home: Path,
        stack: contextlib.ExitStack,
        signed_updates: bool,
    ) -> None:
        self._network = network
        self._time = clock
        self._clock = [f"{name}={value}" for name, value in clock.environment.items()]
        self._home = home
        self._notices = home / "notices"
        self._notices.mkdir(parents=True)
        self.primary_runs = True
        self.ahead = timedelta()  # of the clock of all others: that of `dkimctl` alone
        cli = Cli(home)
        cli.prefix = [*network.prefix(home), *self._clock]
        service = ServeProcess(cli)
        stack.callback(service.stop)
        self.store = home / "service.db"
        self._commands = CommandServer(cli.environment, cli.prefix)
        stack.callback(self._commands.close)
        self._environment = cli.environment | {"DKIMCTL_CONFIG": str(home / "config.yaml")}
        key_file = f', key_file: "{network.key_file}"' if signed_updates else ""
        config = _CONFIG.format(server=PRIMARY, key_file=key_file, notices=self._notices)
        cli.write("config.yaml", config)
        account = service.create_client()
        done = self.dkimctl(*login_words(account), stdin=account["DKIMCTL_CLIENT_SECRET"] + "\n")
        assert done.status == 0, done.err

    def dkimctl(self, *words: object, stdin: str = "", at_start: str = "") -> Done:
        """Run a command, which first runs the Python code `at_start`."""
        environment = self._environment | {"AT_START": at_start}
        if self.ahead:
            file = self._home / "clock"
            file.write_text(f"{self._time.offset + self.ahead.total_seconds():+.3f}\n")
            environment["FAKETIME_TIMESTAMP_FILE"] = str(file)
        return self._commands.run(words, stdin.encode(), self._home, environment)

    def update(self, script: str) -> None:
        """Have the primary take the updates of a script for nsupdate."""
        words = ["env", *self._clock, "nsupdate", "-k", str(self._network.key_file)]
        done = self._network.run(*words, stdin=f"server {PRIMARY}\n{script}")
        assert (done.returncode, done.stderr) == (0, ""), script

    def take_notices(self) -> list[str]:
        """What `notify` was given since the last time."""
        files = sorted(self._notices.iterdir())
        told = [file.read_text() for file in files]
        for file in files:
            file.unlink()
        return told

    def stop_primary(self) -> None:
        self._network.stop(_HOSTS[0])
        self.primary_runs = False

    def start_primary(self) -> None:
        self._network.start_host(_HOSTS[0])
        self._network.restart_resolver()  # the old one remembers for long that it was down
        self.primary_runs = True

    def look(self, names: Sequence[str]) -> Seen:
        """Ask all servers that run, and the resolver, when they have the same.

        If they still differ after some seconds, what they have then.
        """
        deadline = time.monotonic() + _SYNC
        while True:
            servers = [PRIMARY] * self.primary_runs + [*SECONDARIES]
            questions = [(f"@{server}",) for server in servers] + [()]
            with ThreadPoolExecutor() as pool:
                *answers, resolved = pool.map(
                    lambda words: ask(self._network, names, *words), questions
                )
            seen = Seen(dict(zip(servers, answers, strict=True)), resolved, self._ledger())
            if all(one == resolved for one in answers) or time.monotonic() > deadline:
                return seen
            time.sleep(0.05)

    def _ledger(self) -> frozenset[RegistrationKey]:
        [path] = self._home.rglob("ledger.db")
        with contextlib.closing(sqlite3.connect(path)) as ledger:
            rows = ledger.execute("SELECT sign_domain, selector FROM registration").fetchall()
        return frozenset(key_of(*row) for row in rows)


def _library(faketime: str) -> str:
    """The path of libfaketime for programs with threads."""
    command = [faketime, "-m", "-f", "+0", "printenv", "LD_PRELOAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
