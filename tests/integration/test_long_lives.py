"""Two years of domains whose operators are late, forgetful and unlucky: no mail is lost by it.

That is, no mail that could be verified but for a deletion which the tool listed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from lives import SERVERS, ZONE, Life
from mail import Answers

DOMAINS = [f"d{number}.{ZONE}" for number in range(8)]
END = datetime(2029, 1, 1)
SERVER_FAILURES = 3  # each takes a second or two


class Operator:
    """Does by chance, and with a seed, what operators do."""

    def __init__(self, life: Life, seed: int) -> None:
        self._life = life
        self._random = Random(seed)
        self._files: list[tuple[datetime, str]] = []  # to register then
        self._backups: list[dict[str, Answers]] = []
        self._failures = 0

    def begin(self) -> None:
        """Each domain has a key, and every fourth another one for third parties."""
        start = "key_len: 1024, start_date: 2027-01-04T00:00+00:00"
        lines = [f"- {{sign_domain: {domain}, selector: s1, {start}}}\n" for domain in DOMAINS]
        lines += [
            f"- {{sign_domain: {domain}, selector: t1, default: 1, {start}}}\n"
            for domain in DOMAINS[::4]
        ]
        self._life.register("".join(lines))
        self._life.publish()
        self._life.check()

    def work(self) -> None:
        """Try for some days to remove old records, and then do some of the rest."""
        for _ in range(self._random.randint(1, 6)):
            self._life.until(self._life.now + timedelta(days=self._random.uniform(2, 4)))
            if self._happens(0.7):
                self._remove()
        self._register_files()
        for chance, task in (
            (0.15, self._back_up),
            (0.06, self._restore),
            (0.35, self._rotate),
            (0.4, self._switch),
            (0.5, self._publish),
            (0.4, self._check),
            (0.3, self._forget),
        ):
            if self._happens(chance):
                self._life.until(self._life.now + timedelta(minutes=1))
                task()

    def _rotate(self) -> None:
        days = self._random.randint(1, 5)
        words = ("--older-than", "90d", "--start-in", f"{days}d", "--key-len", "1024")
        specs = self._life.cli("rotate", *self._some(), *words).out
        lines = specs.splitlines(keepends=True)
        lines = [line for line in lines if "replaces:" not in line or self._happens(0.8)]
        specs = "".join(
            line if self._happens(0.8) else line.replace("enable: true", "enable: false")
            for line in lines
        )
        if self._happens(0.6):  # and diligently
            self._life.cli("register", "-", stdin=specs)
            self._publish()
            self._check()
        else:
            when = self._life.cli.now + timedelta(days=self._random.uniform(0, 8))
            self._files.append((when, specs))

    def _register_files(self) -> None:
        due = [specs for time, specs in self._files if time <= self._life.cli.now]
        self._files = [file for file in self._files if file[0] > self._life.cli.now]
        for specs in due:
            self._life.cli("register", "-", stdin=specs)  # refused if it is late

    def _switch(self) -> None:
        """Disable a few keys, enable most of those that were, and tell the ledger."""
        keys = [
            key
            for key in self._life.mail.signing_keys()
            if self._happens(0.03 if key.enabled else 0.6)
        ]
        for key in keys:
            self._life.at_service(key.key, enable=not key.enabled)
        if keys:
            self._life.refresh(*(key.key for key in keys))

    def _publish(self) -> None:
        done = self._life.cli("show-dns", *self._some(), "--format", "nsupdate")
        at = SERVERS if self._happens(0.85) else [self._random.choice(SERVERS)]
        self._life.update(done.out, at=at)

    def _back_up(self) -> None:
        keys = [key.key for key in self._life.mail.signing_keys()]
        self._backups.append({server: self._life.backup(keys, server) for server in SERVERS})

    def _restore(self) -> None:
        """Put one server or both back to what they were; newer names are lost as well."""
        if not self._backups:
            return
        backup = self._random.choice(self._backups[-4:])
        newer = dict.fromkeys(self._life.mail.names(), ())
        for server in SERVERS if self._happens(0.7) else [self._random.choice(SERVERS)]:
            self._life.restore(newer | dict(backup[server]), at=[server])

    def _check(self) -> None:
        self._life.cli("check-dns", *self._some())

    def _remove(self) -> None:
        words = ["--no-check"] if self._happens(0.2) else []
        words += ["--assume-successors"] if self._happens(0.3) else []
        if self._failures < SERVER_FAILURES and self._happens(0.03):
            self._failures += 1
            with self._life.down("ns2.test"):
                self._life.remove_retired(*self._some(), *words, at=SERVERS[:1])
        else:
            self._life.remove_retired(*self._some(), *words)

    def _forget(self) -> None:
        self._life.cli("check-dns")
        self._life.cli("ledger", "forget", "*")

    def _some(self) -> list[str]:
        """Some of the domains, or none, which means all."""
        return [] if self._happens(0.5) else self._random.sample(DOMAINS, len(DOMAINS) // 2)

    def _happens(self, chance: float) -> bool:
        return self._random.random() < chance


@pytest.mark.nightly
def test_two_years(life):
    """With this seed, a grace period of ten days harms, and so does one that forgets `enabled`."""
    operator = Operator(life, seed=5)
    operator.begin()
    while life.cli.now < END:
        operator.work()
    assert life.harmed() == []
    assert len(life.removed) > 20
    assert life.mail.lost  # for other reasons
