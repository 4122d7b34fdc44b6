"""What must hold at any time in the life of keys: no mail is lost, no key is too old or left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import dkim

from dkimctl.models import RegistrationKey
from dkimctl.settings.rotation import RotationSettings
from machines import Seen
from mail import Key, Mail, name, signed, signers

LATEST = timedelta(days=5)  # that a message is verified after it was sent
_NEVER = datetime.max.replace(tzinfo=UTC)
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


class Letter(NamedTuple):
    """A signed message."""

    sent: datetime
    key: RegistrationKey
    text: bytes


class Run(NamedTuple):
    """One run of the rotation: whether it had work, was killed, or had no primary server.

    It ended after so many `seconds` of real time. `jumped`: its clock was wrong.
    """

    time: datetime
    is_due: bool = False
    killed: bool = False
    without_dns: bool = False
    seconds: float = 0.0
    jumped: bool = False


@dataclass
class Figures:
    sent: int = 0
    verified: int = 0
    lost: int = 0
    checks: int = 0  # of one domain at one time
    replaced: int = 0  # keys that have been replaced and removed
    oldest: timedelta = timedelta()  # the age of a key that signed


class Judge:
    """Judges what `look` gets: DNS, the ledger, and the keys in the service's data file.

    `problems` has what was wrong, and when that was first so. Each letter is signed by itself; with
    `turns`, each domain gets a new one in so many days, and sends the same meanwhile.
    """

    def __init__(self, store: Path, policy: RotationSettings, turns: int = 1) -> None:
        self.problems: dict[str, datetime] = {}
        self.late: set[str] = set()  # domains whose keys may sign for too long
        self.runs: list[Run] = []
        self.figures = Figures()
        self._policy = policy
        self._service = Mail(store)
        self._turns = turns
        self._keys: Sequence[Key] = ()
        self._of_domain: dict[str, list[Key]] = {}
        self._seen: Seen | None = None
        self._letters: list[Letter] = []  # that were verified
        self._new: list[Letter] = []  # not yet
        self._lost: set[Letter] = set()
        self._accepts = cache(_accepts)
        # That a letter verifies follows from its text and the record alone.
        self._signed, self._verifies = cache(signed), cache(_verifies)

    def names(self) -> list[str]:
        """The names of all keys that the service has."""
        self._keys = self._service.signing_keys()
        self._of_domain = {}
        for key in self._keys:
            self._of_domain.setdefault(key.key.sign_domain, []).append(key)
        return [name(key.key) for key in self._keys]

    def mail_names(self, now: datetime) -> set[str]:
        """The names of the keys of the letters to verify."""
        return {name(letter.key) for letter in (*self._recent(now), *self._new)}

    def keys_of(self, domain: str) -> list[Key]:
        """Those that the service has, in the order in which they were made."""
        return sorted(self._of_domain.get(domain, ()), key=lambda key: key.made)

    def look(self, now: datetime, seen: Seen) -> None:
        """Judge what was seen after a change, or before the next one.

        After a change, all mail of the last days is verified; otherwise what was sent since.
        """
        self._letters = self._recent(now)
        is_changed = self._seen is None or seen.differs(self._seen)
        self._seen = seen
        self._verify(now, self._letters + self._new if is_changed else self._new)
        self._letters += self._new
        self._new = []
        for key in self._keys:
            self._judge_places(now, key)
        self.figures.replaced = sum(
            self._end(key) <= now and not self._places(key) for key in self._keys
        )

    def unchanged(self, now: datetime, seen: Seen) -> None:
        """Between runs nothing changes, so that the last look tells what was there at each hour.

        But what a killed run has sent may take effect after that look.
        """
        was_killed = bool(self.runs) and self.runs[-1].killed
        if self._seen is not None and seen.differs(self._seen) and not was_killed:
            self.report(now, "DNS or the ledger has changed, but there was no run")

    def times(self, begin: datetime, end: datetime) -> list[datetime]:
        """When other keys begin to sign between two looks, just before each, and the end."""
        starts = {key.start for key in self._keys if begin < key.start < end}
        return sorted({*starts, *(start - _MINUTE for start in starts), end})

    def check(self, now: datetime) -> None:
        """The keys that sign at this time, according to the last look, are published."""
        assert self._seen
        for key in signers(self._keys, now):
            self.figures.checks += 1
            values = [has[name(key.key)] for has in self._seen.servers.values()]
            if not all(self._accepts(key, each) for each in values):
                self.report(now, f"{name(key.key)} signs, and is not at all servers")
            age, due = now - key.made, key.made + self._policy.max_age - self._policy.lead
            limit = self._policy.max_age + self._missed(due, lambda run: run.without_dns)
            self.figures.oldest = max(age, self.figures.oldest)
            if age > limit and key.key.sign_domain not in self.late:
                self.report(now, f"{name(key.key)} signs for too long")

    def send(self, now: datetime, domain: str) -> None:
        """Sign a letter of a domain."""
        turn = list(self._of_domain).index(domain) + now.toordinal()
        text = f"Sent {now:%F %T}." if turn % self._turns == 0 else "Sent again."
        for key in signers(self._of_domain[domain], now):
            self._new.append(Letter(now, key.key, self._signed(key, text)))
            self.figures.sent += 1

    def is_due(self, now: datetime) -> bool:
        """Whether there is something to do: a key to register or publish, or a record to remove."""
        return any(self._is_due(key, now) for key in self._keys)

    def report(self, now: datetime, problem: str) -> None:
        """Take note of a problem."""
        self.problems.setdefault(problem, now)

    def _is_due(self, key: Key, now: datetime) -> bool:
        assert self._seen
        if self._end(key) <= now:
            return bool(self._places(key))
        is_published = self._places(key).issuperset(self._seen.servers)
        due = key.made + self._policy.max_age - self._policy.lead
        is_old = not self._successor(key) and due <= now
        return is_old or not is_published

    def _judge_places(self, now: datetime, key: Key) -> None:
        """It is in DNS while it signs, and for the grace period, and then no more."""
        assert self._seen
        end, places = self._end(key), self._places(key)
        if key.start <= now < end and not places.issuperset(self._seen.servers):
            self.report(
                now, f"{name(key.key)} is not at all servers, but it signs, or did recently"
            )
        # A run asks the service about keys that it has removed. Killed then, it leaves the answers
        # in the ledger, and the next one closes these keys again.
        is_left = places == {"ledger"} and self.runs[-1].killed if self.runs else False
        if places and now >= end and not is_left:
            end = self._begun_again(end)
            missed = self._missed(end, lambda run: run.without_dns)
            if now > end + _DAY + missed:
                where = ", ".join(sorted(places))
                self.report(now, f"{name(key.key)} is still there: {where}")

    def _places(self, key: Key) -> set[str]:
        """The servers that have its record, and the ledger."""
        assert self._seen
        has_it = {server for server, has in self._seen.servers.items() if has[name(key.key)]}
        return has_it | ({"ledger"} if key.key in self._seen.ledger else set())

    def _recent(self, now: datetime) -> list[Letter]:
        return [letter for letter in self._letters if now - letter.sent <= LATEST]

    def _verify(self, now: datetime, letters: Sequence[Letter]) -> None:
        assert self._seen
        for letter in letters:
            if not self._verifies(letter.text, self._seen.resolver[name(letter.key)]):
                self._lost.add(letter)
                self.report(now, f"lost: mail of {letter.sent:%F}, signed by {name(letter.key)}")
        self.figures.verified += len(letters)
        self.figures.lost = len(self._lost)

    def _end(self, key: Key) -> datetime:
        """The end of the grace period of a key."""
        successor = self._successor(key)
        return successor.start + self._policy.grace if successor else _NEVER

    def _successor(self, old: Key) -> Key | None:
        of_domain = self._of_domain[old.key.sign_domain]
        later = (key for key in of_domain if key.start > old.start)
        return min(later, key=lambda key: key.start, default=None)

    def _begun_again(self, end: datetime) -> datetime:
        """The end of a grace period, if it began again in a whole run after a wrong clock."""
        for number, run in enumerate(self.runs):
            if run.jumped and run.time <= end + self._missed(end, lambda run: run.without_dns):
                later = (
                    each.time
                    for each in self.runs[number:]
                    if not (each.jumped or each.killed or each.without_dns)
                )
                end = max(end, next(later, run.time) + self._policy.grace)
        return end

    def _missed(self, due: datetime, is_missed: Callable[[Run], bool]) -> timedelta:
        """The days that are lost from `due` on, since runs were killed, or missed otherwise."""
        days = timedelta()
        for run in self.runs[bisect_left(self.runs, (due,)) :]:
            if not (run.killed or run.jumped or is_missed(run)):
                break
            days += _DAY
        return days


def _accepts(key: Key, values: Sequence[bytes]) -> bool:
    """Whether mail that is signed with a key verifies with these TXT values."""
    return _verifies(signed(key), values)


def _verifies(text: bytes, values: Sequence[bytes]) -> bool:
    value = values[0] if len(values) == 1 else None
    return bool(dkim.verify(text, dnsfunc=lambda name, timeout=5: value))
