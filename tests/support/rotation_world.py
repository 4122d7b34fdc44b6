"""A ledger, a service and a DNS provider in files, so that a run can be killed at any effect.

Time is what the test says. An effect is a change of one of the three: before and after each of
them `World.hook` is called.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dkimctl.client.wire import Reply
from dkimctl.dns.messages import Answer
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.zones import Zone
from dkimctl.errors import DkimctlError
from dkimctl.ledger.account_lock import account_lock
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import (
    DmarcReport,
    DnsRecord,
    DomainSpec,
    Registration,
    ReportedMail,
    key_of,
)
from dkimctl.names import Selection
from dkimctl.publishing.plan import Access, Change, NameState
from dkimctl.registration.limits import Limits
from dkimctl.rotation.due import Report, RunPolicy, Tools
from dkimctl.rotation.run import RotationRun
from dkimctl.settings.rotation import Policies, RotationSettings

ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}
START = datetime(2027, 1, 1, 10, tzinfo=UTC)
_CREATED = ("201", "created")


class World:
    """What a run works with. `key` is the p= of all records, which differ in their notes (n=).

    `service_error` is raised; `silent` names get no answer from DNS; `is_covered`: the target has
    the zones.
    """

    def __init__(self, directory: Path, key: str, now: datetime = START) -> None:
        self.directory = directory
        self.key = key
        self.now = now
        self.service_error: DkimctlError | None = None
        self.service_now: datetime | None = None  # by the clock of the service
        self.tells_time = True
        self.answers: dict[str, Registration] = {}  # by selector, instead of the usual ones
        self.silent: set[str] = set()
        self.asked: set[str] = set()  # names that DNS was asked about
        self.stale: dict[str, str] = {}  # records that servers have, and the provider has not
        self.is_covered = True
        self.reports = 0
        self.effects = 0
        self.kill_at: int | None = None
        self.lock = threading.RLock()
        self.warnings: list[str] = []
        self._opened = contextlib.ExitStack()  # ledgers that a run reads

    def close(self) -> None:
        """Close the ledgers, as a session does at its end."""
        self._opened.close()

    def run(self, *words: str, is_dry: bool = False, **settings: Any) -> Report:
        selection = Selection([] if words else None, globs=words)
        policy = RunPolicy(Policies([RotationSettings(**settings)]), 0.0, is_dry)
        with contextlib.closing(self):
            return RotationRun(selection, policy, self.tools()).execute()

    def pass_time(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    def register(self, *domains: str, selector: str = "s1", **fields: Any) -> None:
        """Register keys, and have the ledger know of them."""
        specs = [DomainSpec(domain, selector, **({"key_len": 2048} | fields)) for domain in domains]
        with self.open_ledger(for_writing=True) as ledger:
            ledger.record(self.send(specs).items)

    def report(self, selector: str, *, passed: int = 0, failed: int = 0, domain: str = "a.example",
               ago: int = 0) -> None:  # fmt: skip
        """Have a receiver report of mail with a key, so many days ago."""
        mail = ReportedMail(Counter({"192.0.2.0/24": passed}), Counter({"198.51.100.0/24": failed}))
        self.reports += 1
        day = (self.now - timedelta(days=ago)).date()
        report = DmarcReport("mx", str(self.reports), day, {key_of(domain, selector): mail}, 0, 0)
        with self.open_ledger(for_writing=True) as ledger:
            ledger.note_reports([report])

    def tools(self) -> Tools:
        return Tools(
            open_ledger=self.open_ledger,
            lock_account=lambda: account_lock(
                self.directory, **ACCOUNT, on_wait=lambda holder: None
            ),
            connect=lambda: self.send,
            limits=Limits(max_wait=0.0),
            open_targets=lambda: [Provider(self)],
            open_source=lambda: Dns(self),
            warn=self.warnings.append,
            stopping=lambda stop: contextlib.nullcontext(),
            observing=lambda total: contextlib.nullcontext(_Observer()),
            watching=lambda wanted: contextlib.nullcontext(_Progress()),
            clock=lambda: self.now,
            ask_time=self.ask_time,
        )

    def ask_time(self) -> datetime | None:
        if self.service_error is not None:
            raise self.service_error
        return (self.service_now or self.now) if self.tells_time else None

    def open_ledger(self, *, for_writing: bool) -> Ledger:
        path = self.directory / "ledger.db"
        if not for_writing:
            existing = self._opened.enter_context(Ledger.open_existing(path, **ACCOUNT))
            existing._clock = self.now.timestamp
            return existing
        ledger = _Ledger.open(path, **ACCOUNT, clock=self.now.timestamp)
        ledger.world = self
        return ledger

    def send(self, specs: Sequence[DomainSpec]) -> Reply:
        """What the service answers (interface 4.2)."""
        with self.lock:
            if self.service_error is not None:
                raise self.service_error
            with self.effect():
                registered = self.read("service")
                items = tuple(self._answer(spec, registered) for spec in specs)
                self.write("service", registered)
            return Reply(items)

    @property
    def records(self) -> dict[str, str]:
        """The TXT values in DNS, by name."""
        return self.read("dns")

    def keys(self) -> set[str]:
        """What the ledger has, as "selector domain"."""
        with self.open_ledger(for_writing=False) as ledger:
            return {f"{one.selector} {one.sign_domain}" for one in ledger.all()}

    def closed(self) -> set[str]:
        with self.open_ledger(for_writing=False) as ledger:
            return {f"{one.selector} {one.sign_domain}" for one in ledger.closed_keys()}

    @contextlib.contextmanager
    def effect(self) -> Iterator[None]:
        """Die before or after a change, if it is the one to die at."""
        self._maybe_die()
        yield
        self._maybe_die()

    def read(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.directory / f"{name}.json").read_text())
        except FileNotFoundError:
            return {}

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        new = self.directory / f"{name}.new"
        new.write_text(json.dumps(content))
        new.replace(self.directory / f"{name}.json")

    def _maybe_die(self) -> None:
        self.effects += 1
        if self.effects == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _answer(self, spec: DomainSpec, registered: dict[str, Any]) -> Registration:
        if spec.selector in self.answers:
            return self.answers[spec.selector]._replace(
                sign_domain=spec.sign_domain, selector=spec.selector
            )
        name = f"{spec.selector} {spec.sign_domain}"
        code, message = ("409", "exists") if name in registered else _CREATED
        now = (self.service_now or self.now).isoformat(timespec="seconds")
        one = registered.setdefault(name, {
            "fqdn": f"{spec.selector}._domainkey.{spec.sign_domain}",
            "value": f"v=DKIM1; k=rsa; n={spec.selector}; p={self.key}",
            "start_date": spec.start_date or now, "regist_date": now,
            "default": spec.default or 0, "enable": spec.enable is not False,
        })  # fmt: skip
        return Registration(
            spec.sign_domain, spec.selector, 2048, one["start_date"], one["default"],
            one["enable"], DnsRecord(one["fqdn"], "TXT", one["value"]), one["regist_date"],
            code, message,
        )  # fmt: skip


class _Ledger(Ledger):
    """Its transactions are effects."""

    world: World

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.world.effect(), super()._transaction():
            yield


class Provider:
    """A DNS provider with a zone for each domain, which is the name without its first labels."""

    label, ttl, zones = "the provider", 60, ()

    def __init__(self, world: World) -> None:
        self._world = world

    def find_zones(self, names: Sequence[str]) -> dict[str, str | None]:
        return {name: _zone(name) if self._world.is_covered else None for name in names}

    def read(self, zone: str, names: Sequence[str]) -> dict[str, NameState]:
        records = self._world.records
        return {
            name: NameState((records[name],), 60) if name in records else NameState()
            for name in names
        }

    def find_shadowed(self, zone: str, names: Sequence[str]) -> dict[str, None]:
        return {}

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Change]:
        for change in changes:
            with self._world.lock, self._world.effect():
                records = self._world.records
                records.pop(change.fqdn, None)
                if change.value is not None:
                    records[change.fqdn] = change.value
                self._world.write("dns", records)
            yield change.made()

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        return Access(True, None)


class Dns:
    """Two servers that have what the provider has."""

    is_given = False

    def __init__(self, world: World) -> None:
        self._world = world
        self._records = world.records
        self.answers_beside: dict[Any, Any] = {}
        self.dropped: dict[Any, Any] = {}

    async def zone_with(self, name: str) -> Zone:
        servers = [NameServer(f"ns{n}.test", frozenset({f"ns{n}.test"}), self) for n in (1, 2)]
        return Zone(_zone(name), servers)

    async def unresolved(self, questions: Sequence[Any]) -> list[None]:
        return [None] * len(questions)

    async def prefetch(self, questions: Sequence[Any]) -> None:
        """Nothing: each is asked later."""

    def forget(self) -> None:
        self._records = self._world.records

    async def ask(self, question: Any) -> Answer:
        name = question.name.to_text(omit_final_dot=True)
        self._world.asked.add(name)
        if name in self._world.silent:
            raise NoAnswer("it does not answer")
        value = self._records.get(name) or self._world.stale.get(name)
        values = () if value is None else (value.encode(),)
        return Answer(0, True, False, values, zone="" if values else _zone(name))


class _Observer:
    settled = waiting = ending = tick = staticmethod(lambda *_: None)


class _Progress:
    checked = pause = staticmethod(lambda *_: None)


def _zone(name: str) -> str:
    return name.rpartition("_domainkey.")[2]


def run_until(directory: str, key: str, now: datetime, kill_at: int | None) -> None:
    """A run in a process of its own, which is killed at an effect."""
    world = World(Path(directory), key, now)
    world.kill_at = kill_at
    world.run()
