"""Mail that a correct signer signs every day, and that is verified until it is 13 days old."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import dkim

from dkimctl.models import RegistrationKey

LATEST = timedelta(days=13)  # that a message is verified after it was signed
Answers = Mapping[str, Sequence[bytes]]  # the TXT values by name

_ROWS = 'SELECT sign_domain, selector, start_date, regist_date, "default", private_key, enable'
_BODY = b"From: sender@%s\nTo: someone@example.net\nSubject: signed\n\n%s\n"


class Message(NamedTuple):
    """A message, and the key that it is signed with."""

    sent: datetime
    key: RegistrationKey


class Key(NamedTuple):
    """A key as the service has it."""

    key: RegistrationKey
    start: datetime
    made: datetime
    default: int
    private_key: bytes
    enabled: bool

    def begins(self, is_literal: bool) -> datetime:
        """Its start_date, or at least its registration."""
        return self.start if is_literal else max(self.start, self.made)


class Mail:
    """All mail that is signed with the keys of a service's data file, `store`.

    `lost` has the messages that a verifier could not verify, and when that was first so.
    """

    def __init__(self, store: Path) -> None:
        self.lost: dict[Message, datetime] = {}
        self.store = store
        self._recent: list[Message] = []
        self._signed: dict[RegistrationKey, bytes] = {}
        self._verifies = cache(self._verify)  # the content of messages makes no difference

    def send(self, now: datetime) -> None:
        """Sign a message for each domain, and each value of `default`."""
        for key in signers(self.signing_keys(), now):
            if key.key not in self._signed:
                self._signed[key.key] = signed(key)
            self._recent.append(Message(now, key.key))

    def receive(self, now: datetime, answers: Answers) -> None:
        """Verify what is at most 13 days old with these answers of DNS."""
        self._recent = [one for one in self._recent if now - one.sent <= LATEST]
        for message in self.unverifiable(answers):
            self.lost.setdefault(message, now)

    def unverifiable(self, answers: Answers) -> list[Message]:
        """The recent messages that cannot be verified with these answers."""
        return [one for one in self._recent if not self._verifies(one.key, answers[name(one.key)])]

    def recent_names(self) -> set[str]:
        """The names of the keys of recent mail."""
        return {name(message.key) for message in self._recent}

    def _verify(self, key: RegistrationKey, values: Sequence[bytes]) -> bool:
        assert len(values) <= 1
        value = values[0] if values else None
        return bool(dkim.verify(self._signed[key], dnsfunc=lambda name, timeout=5: value))

    def signing_keys(self) -> list[Key]:
        """The keys that the service has; none before it is used."""
        if not self.store.exists():
            return []
        with contextlib.closing(sqlite3.connect(self.store)) as connection:
            rows = connection.execute(f"{_ROWS} FROM registrations").fetchall()
        return [
            Key(RegistrationKey(domain, selector), _time(start), _time(made), *rest)
            for domain, selector, start, made, *rest in rows
        ]


def name(key: RegistrationKey) -> str:
    """The name of the key's record."""
    return f"{key.selector}._domainkey.{key.sign_domain}"


def signers(keys: Iterable[Key], now: datetime) -> list[Key]:
    """Those of the keys that sign at a time: enabled, begun, and of these the latest to begin.

    Where a start_date is before the registration, the interface does not say which of them makes a
    key the latest. So mail may be signed with both.
    """
    current: dict[tuple[str, int, bool], Key] = {}
    begun = [key for key in keys if key.enabled and key.start <= now]
    for is_literal in (True, False):
        for key in sorted(begun, key=lambda key: (key.begins(is_literal), key.made)):
            current[key.key.sign_domain, key.default, is_literal] = key
    return list(dict.fromkeys(current.values()))


def signed(key: Key, text: str = "Verify this.") -> bytes:
    """A message with a text in ASCII, signed with the key."""
    body = _BODY % (key.key.sign_domain.encode(), text.encode())
    names = [part.encode() for part in (key.key.selector, key.key.sign_domain)]
    return bytes(dkim.sign(body, *names, key.private_key)) + body


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
