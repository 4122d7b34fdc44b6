"""The machines of an operator on one clock: name servers, a resolver, the service, `dkimctl`.

The operator's zones are at a primary, which takes signed updates, and at two secondaries, which it
notifies. Those of customers, if there are any, are at a server that takes no updates. The root and
a top-level domain delegate to all of them.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from commands import CommandServer, Done
from dated import FAKETIME
from delegation import Host, Zone
from dkimctl.models import RegistrationKey, key_of
from mail import Answers
from network import Network, ask, running, transfer, txt_values
from processes import Cli, ServeProcess, login_words

PRIMARY, SECONDARIES = "127.0.0.2", ("127.0.0.3", "127.0.0.4")
OURS = ("ns1.test", "ns2.test", "ns3.test")
THEIRS, _THEIR_ADDRESS = "ns.customers.test", "127.0.0.5"
_ZONES = [*(f"d{number:02}.test" for number in range(17)), "shop.d01.test"]
DOMAINS = [*_ZONES, "mail.d00.test", "news.d00.test"]
_RESOLVER = "cache-max-ttl: {ttl}\n  cache-max-negative-ttl: 0"
_SYNC = 10.0  # seconds of real time until secondaries must have what the primary has
_CONFIG = """
default_profile: operator
profiles: {{operator: {{credential_store: file, defaults: {{key_len: 2048}}}}}}
dns:
  - {{provider: rfc2136, server: {server}{key_file}, zones: {zones}, ttl: {ttl}}}
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


class Domains(NamedTuple):
    """Whose mail the operator signs, and where the zones are.

    Zones of the operator have the hosts OURS, those of customers the host THEIRS. `home_of` gives
    the name at which our servers have the record of a key, by that of the key; `config` is more of
    the config file. The first keys are made for `group` domains at a time, `step` apart; without
    `selector`, it is not said which they get.
    """

    names: Sequence[str]
    zones: Sequence[Zone]
    group: int
    step: timedelta
    selector: str = "first"
    config: str = ""
    prepare: Callable[[Machines], None] = lambda machines: None  # before the first key is made
    home_of: Callable[[str], str] = str
    ttl: int = 60  # of key records
    resolver_ttl: int = 0  # of what the resolver remembers, at most

    @property
    def secondaries(self) -> Sequence[str]:
        """Their addresses."""
        return SECONDARIES if self.zones_at(OURS[1]) else ()

    def zones_at(self, host: str) -> list[str]:
        return [zone.name for zone in self.zones if host in zone.hosts]


OWN = Domains(DOMAINS, [Zone(name, OURS) for name in _ZONES], group=2, step=timedelta(days=15))


class Seen(NamedTuple):
    """What each running server has, by address, and the resolver; and the keys in the ledger.

    The resolver was asked for some names only.
    """

    servers: Mapping[str, Answers]
    resolver: Answers
    ledger: frozenset[RegistrationKey]

    def has(self, servers: Mapping[str, Answers], resolved: Collection[str]) -> bool:
        """Whether the servers had the same, and the resolver was asked for all these names."""
        had = self.servers
        return set(resolved) <= self.resolver.keys() and all(
            has == {name: had[server].get(name, ()) for name in has} if server in had else False
            for server, has in servers.items()
        )

    def differs(self, other: Seen) -> bool:
        known = other.resolver
        is_same = all(known.get(name, has) == has for name, has in self.resolver.items())
        return (self.servers, self.ledger) != (other.servers, other.ledger) or not is_same


@contextlib.contextmanager
def starting(
    directory: Path,
    clock: MovingClock,
    need: Callable[[str], str],
    domains: Domains,
    *,
    signed_updates: bool = True,
) -> Iterator[Machines]:
    """All machines run until the block ends."""
    servers = [PRIMARY, *domains.secondaries]
    hosts = [Host(THEIRS, (_THEIR_ADDRESS,), "named")] if domains.zones_at(THEIRS) else []
    hosts += [
        Host(name, (address,), "named", secondary_of=PRIMARY)
        for name, address in zip(OURS, servers, strict=False)
    ]
    hosts[-len(servers)] = Host(
        OURS[0], (PRIMARY,), "named",
        updates=True, signed_updates=signed_updates, secondaries=domains.secondaries,
        environment=clock.environment,
    )  # fmt: skip
    resolver = _RESOLVER.format(ttl=domains.resolver_ttl)
    options = {"validates": False, "resolver_options": resolver}
    with (
        running(directory, need, hosts=hosts, zones=domains.zones, **options) as network,
        contextlib.ExitStack() as stack,
    ):
        yield Machines(network, clock, directory, stack, domains, signed_updates)


class Machines:
    """`dkimctl` is logged in at the service; `store` is the service's data file."""

    def __init__(
        self,
        network: Network,
        clock: MovingClock,
        directory: Path,
        stack: contextlib.ExitStack,
        domains: Domains,
        signed_updates: bool,
    ) -> None:
        home = directory / "home"
        self.domains = domains
        self._network = network
        self._theirs = directory / THEIRS
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
        self._config = _CONFIG.format(
            server=PRIMARY, key_file=key_file, zones=json.dumps(domains.zones_at(OURS[0])),
            ttl=domains.ttl, notices=self._notices,
        )  # fmt: skip
        self.configure(domains.config)
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

    def configure(self, more: str) -> None:
        """Write the config file, which ends with this."""
        (self._home / "config.yaml").write_text(self._config + more)

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
        self._network.stop(OURS[0])
        self.primary_runs = False

    def start_primary(self) -> None:
        self._network.start_host(OURS[0])
        self._network.restart_resolver()  # the old one remembers for long that it was down
        self.primary_runs = True

    def add_to_their_zones(self, lines: Mapping[str, str]) -> None:
        """The customers add lines to their zone files, by zone."""
        for zone, more in lines.items():
            file = self._theirs / f"{zone}.zone"
            known = file.read_text()
            new = (line for line in more.splitlines(keepends=True) if line not in known)
            file.write_text(known + "".join(new))
        self._network.stop(THEIRS)
        self._network.start_host(THEIRS)

    def their_zones(self) -> dict[str, object]:
        """All files of the customers' server, by name, and a transfer of all its zones."""
        files = {path.name: path.read_bytes() for path in self._theirs.iterdir()}
        zones = self.domains.zones_at(THEIRS)
        return files | {"": transfer(self._network, zones, _THEIR_ADDRESS)}

    def look(
        self, names: Sequence[str], resolved: Collection[str], last: Seen | None = None
    ) -> Seen:
        """What all servers that run have at these names, and the resolver at some of them.

        When all have the same; if they still differ after some seconds, what they have then. If the
        servers have what they had in a look just before, the resolver is not asked again.
        """
        deadline = time.monotonic() + _SYNC
        homes = {name: self.domains.home_of(name) for name in names}
        zones = self.domains.zones_at(OURS[0])
        servers = [PRIMARY] * self.primary_runs + [*self.domains.secondaries]
        while True:
            with ThreadPoolExecutor() as pool:
                transfers = pool.map(lambda at: transfer(self._network, zones, at), servers)
                has = map(txt_values, transfers)
                answers = [{name: each.get(homes[name], ()) for name in names} for each in has]
            has_now = dict(zip(servers, answers, strict=True))
            is_known = last is not None and last.has(has_now, resolved)
            answered = last.resolver if is_known else ask(self._network, sorted(resolved))
            seen = Seen(has_now, answered, self._ledger())
            known = seen.resolver.items()
            is_same = all(each == answers[0] for each in answers)
            if is_same and all(answers[0][name] == values for name, values in known):
                return seen
            if time.monotonic() > deadline:
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
