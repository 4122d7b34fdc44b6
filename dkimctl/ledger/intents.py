"""Requests that were sent, or were about to be, and have no usable answer."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from dkimctl.ledger.errors import damage_error, require_row_id
from dkimctl.models.registration import DomainSpec, RegistrationKey, key_of


class Intent(NamedTuple):
    """One entry of such a sending. `selector` is None where the service was to choose it.

    `sent_at` is UTC, ISO 8601 to the second, such as 2026-11-21T14:02:10+00:00.
    """

    sign_domain: str
    selector: str | None
    sent_at: str

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


class Sending(NamedTuple):
    """Entries of one request that have no answer. The IDs keep the order of sending.

    Of `specs` only the signing domain and the selector are kept.
    """

    id: int
    sent_at: str
    specs: Sequence[DomainSpec]


_SELECT = "SELECT id, sent_at, entries FROM sending WHERE account_id = ? ORDER BY id"
_BEGIN = "INSERT INTO sending (account_id, sent_at, entries) VALUES (?, ?, ?)"
_CHANGE = "UPDATE sending SET entries = ? WHERE id = ?"
_END = "DELETE FROM sending WHERE id = ?"


def select_sendings(connection: sqlite3.Connection, account_id: int) -> Iterator[Sending]:
    """All of an account that are open, oldest first."""
    for sending_id, sent_at, entries in connection.execute(_SELECT, (account_id,)):
        yield Sending(require_row_id(sending_id), str(sent_at), _decoded(entries))


def add_sendings(
    connection: sqlite3.Connection,
    account_id: int,
    sent_at: str,
    requests: Iterable[Sequence[DomainSpec]],
) -> list[Sending]:
    """Add one for each request, within the caller's transaction."""
    added = []
    for specs in requests:
        done = connection.execute(_BEGIN, (account_id, sent_at, _encoded(specs)))
        added.append(Sending(done.lastrowid or 0, sent_at, specs))
    return added


def change_sendings(
    connection: sqlite3.Connection, left: Mapping[int, Sequence[DomainSpec]]
) -> None:
    """Set what is `left` of some, by their IDs, within the caller's transaction."""
    for sending_id, specs in left.items():
        if specs:
            connection.execute(_CHANGE, (_encoded(specs), sending_id))
        else:
            connection.execute(_END, (sending_id,))


def intents_of(sending: Sending) -> list[Intent]:
    return [_intent(spec, sending.sent_at) for spec in sending.specs]


class OpenSendings:
    """The open sendings of an account in memory, to be asked 100,000 times.

    Names are compared without regard to case.
    """

    def __init__(self, sendings: Iterable[Sending]) -> None:
        self._sent_at: dict[int, str] = {}
        self._specs: dict[int, dict[RegistrationKey, DomainSpec]] = {}
        self._of_domain: dict[str, dict[str, int]] = {}  # selector -> ID; oldest first
        self.begin(sendings)

    def of_domain(self, sign_domain: str) -> list[Intent]:
        """The intents of one signing domain, oldest first."""
        domain = sign_domain.lower()
        if domain not in self._of_domain:
            return []
        return [
            _intent(
                self._specs[sending_id][RegistrationKey(domain, selector)],
                self._sent_at[sending_id],
            )
            for selector, sending_id in self._of_domain[domain].items()
        ]

    def without(self, keys: Iterable[RegistrationKey]) -> dict[int, list[DomainSpec]]:
        """What would be left of the sendings that hold any of `keys`, by their IDs.

        `keys` may repeat itself.
        """
        closed: dict[int, set[RegistrationKey]] = {}
        for key in keys:
            selectors = self._of_domain.get(key.sign_domain)
            if selectors is not None and key.selector in selectors:
                closed.setdefault(selectors[key.selector], set()).add(key)
        return {sending_id: self._left(sending_id, keys) for sending_id, keys in closed.items()}

    def change(self, left: Mapping[int, Iterable[DomainSpec]]) -> None:
        """Keep of these sendings only what is left of each."""
        for sending_id, specs in left.items():
            kept = {spec.key: spec for spec in specs}
            for key in self._specs[sending_id]:
                if key not in kept:
                    self._forget(key)
            self._specs[sending_id] = kept
            if not kept:
                del self._specs[sending_id], self._sent_at[sending_id]

    def begin(self, sendings: Iterable[Sending]) -> None:
        """Add the youngest, whose entries are in no other."""
        for sending in sendings:
            specs = {spec.key: spec for spec in sending.specs}
            self._specs[sending.id], self._sent_at[sending.id] = specs, sending.sent_at
            for domain, selector in specs:
                self._of_domain.setdefault(domain, {})[selector] = sending.id

    def _forget(self, key: RegistrationKey) -> None:
        selectors = self._of_domain[key.sign_domain]
        if len(selectors) == 1:
            del self._of_domain[key.sign_domain]
        else:
            del selectors[key.selector]

    def _left(self, sending_id: int, closed: Set[RegistrationKey]) -> list[DomainSpec]:
        specs = self._specs[sending_id]
        if len(closed) == len(specs):  # mostly: an answer to the whole request
            return []
        return [spec for key, spec in specs.items() if key not in closed]


def utc(seconds: float) -> str:
    """The time of a Sending; `seconds` since the epoch."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))


def _intent(spec: DomainSpec, sent_at: str) -> Intent:
    return Intent(spec.sign_domain, spec.selector, sent_at)


def _encoded(specs: Iterable[DomainSpec]) -> str:
    return json.dumps([(spec.sign_domain, spec.selector) for spec in specs])


def _decoded(entries: Any) -> list[DomainSpec]:
    """The entries of a row, whatever somebody else may have put into it."""
    try:
        return [_spec(entry) for entry in json.loads(entries)]
    except (TypeError, ValueError, RecursionError) as error:
        raise damage_error(f"a sending in it cannot be read: {error}") from error


def _spec(entry: object) -> DomainSpec:
    match entry:
        case [str() as domain, (str() | None) as selector]:
            return DomainSpec(domain, selector)
    raise ValueError("an entry is no signing domain and selector")
