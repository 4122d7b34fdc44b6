"""Intents: entries of requests that were sent, or were about to be, and have no usable answer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dkimctl.ledger.tables import damage_error, require_row_id
from dkimctl.models import DomainSpec, Registration, RegistrationKey, key_of


class Intent(NamedTuple):
    """One entry of an open request."""

    sign_domain: str
    selector: str | None  # None if the service chooses it
    sent_at: str  # UTC, ISO 8601 to the second, such as 2026-11-21T14:02:10+00:00

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


class OpenRequest(NamedTuple):
    """The entries of one request without an answer: a row of the table `open_request`."""

    id: int  # ascending in the order of sending
    sent_at: str
    specs: Sequence[DomainSpec]  # with only the signing domain and the selector

    @property
    def intents(self) -> list[Intent]:
        return [Intent(spec.sign_domain, spec.selector, self.sent_at) for spec in self.specs]


def select_open_requests(connection: sqlite3.Connection, account_id: int) -> Iterator[OpenRequest]:
    """All open requests of an account, oldest first."""
    query = "SELECT id, sent_at, entries FROM open_request WHERE account_id = ? ORDER BY id"
    for row_id, sent_at, entries in connection.execute(query, (account_id,)):
        yield OpenRequest(require_row_id(row_id), str(sent_at), _decoded(entries))


def insert_requests(
    connection: sqlite3.Connection,
    account_id: int,
    sent_at: str,
    requests: Iterable[Sequence[DomainSpec]],
) -> list[OpenRequest]:
    """Insert a row for each request, within the caller's transaction."""
    insert = "INSERT INTO open_request (account_id, sent_at, entries) VALUES (?, ?, ?)"
    inserted = []
    for specs in requests:
        cursor = connection.execute(insert, (account_id, sent_at, _encoded(specs)))
        inserted.append(OpenRequest(cursor.lastrowid or 0, sent_at, specs))
    return inserted


def update_requests(
    connection: sqlite3.Connection, remaining: Mapping[int, Sequence[DomainSpec]]
) -> None:
    """Store the remaining entries of requests, by ID, within the caller's transaction."""
    for request_id, specs in remaining.items():
        if specs:
            update = "UPDATE open_request SET entries = ? WHERE id = ?"
            connection.execute(update, (_encoded(specs), request_id))
        else:
            connection.execute("DELETE FROM open_request WHERE id = ?", (request_id,))


def closed_by(answers: Iterable[Registration]) -> Iterator[RegistrationKey]:
    """The keys whose intents these answers close."""
    for registration in answers:
        yield registration.key
        # One of another account does not answer a request that let the service choose a selector.
        if not registration.is_taken:
            yield key_of(registration.sign_domain, None)


class OpenRequests:
    """The open requests of an account, in memory for 100,000 lookups. Names ignore case."""

    def __init__(self, requests: Iterable[OpenRequest]) -> None:
        self._sent_at: dict[int, str] = {}
        self._specs: dict[int, dict[RegistrationKey, DomainSpec]] = {}
        self._by_domain: dict[str, dict[str, int]] = {}  # selector -> ID; oldest first
        self.add(requests)

    def of_domain(self, sign_domain: str) -> list[Intent]:
        """The intents of one signing domain, oldest first."""
        domain, intents = sign_domain.lower(), []
        for selector, request_id in self._by_domain.get(domain, {}).items():
            spec = self._specs[request_id][RegistrationKey(domain, selector)]
            intents.append(Intent(spec.sign_domain, spec.selector, self._sent_at[request_id]))
        return intents

    def remaining_without(self, keys: Iterable[RegistrationKey]) -> dict[int, list[DomainSpec]]:
        """What would remain of the requests that hold any of `keys`, perhaps repeated, by ID."""
        closed: dict[int, set[RegistrationKey]] = {}
        for key in keys:
            request_id = self._by_domain.get(key.sign_domain, {}).get(key.selector)
            if request_id is not None:
                closed.setdefault(request_id, set()).add(key)
        remaining: dict[int, list[DomainSpec]] = {}
        for request_id, closed_keys in closed.items():
            specs = self._specs[request_id]
            is_answered = len(closed_keys) == len(specs)  # the usual case: the whole request
            left = () if is_answered else specs.items()
            remaining[request_id] = [spec for key, spec in left if key not in closed_keys]
        return remaining

    def update(self, remaining: Mapping[int, Iterable[DomainSpec]]) -> None:
        """Drop all but the remaining entries of these requests."""
        for request_id, specs in remaining.items():
            left = {spec.key: spec for spec in specs}
            for key in self._specs[request_id].keys() - left.keys():
                selectors = self._by_domain[key.sign_domain]
                del selectors[key.selector]
                if not selectors:
                    del self._by_domain[key.sign_domain]
            self._specs[request_id] = left
            if not left:
                del self._specs[request_id], self._sent_at[request_id]

    def add(self, requests: Iterable[OpenRequest]) -> None:
        """Add newer requests, whose entries are in no other."""
        for request in requests:
            specs = {spec.key: spec for spec in request.specs}
            self._specs[request.id], self._sent_at[request.id] = specs, request.sent_at
            for key in specs:
                self._by_domain.setdefault(key.sign_domain, {})[key.selector] = request.id


def _encoded(specs: Iterable[DomainSpec]) -> str:
    return json.dumps([(spec.sign_domain, spec.selector) for spec in specs])


def _decoded(entries: Any) -> list[DomainSpec]:
    """The entries of a row. Raises sqlite3.DatabaseError for any other content."""
    specs = []
    try:
        for entry in json.loads(entries):
            match entry:
                case [str() as domain, (str() | None) as selector]:
                    specs.append(DomainSpec(domain, selector))
                case _:
                    raise ValueError("an entry is not a signing domain and a selector")
    except (TypeError, ValueError, RecursionError) as error:
        raise damage_error(f"an open request in it cannot be read: {error}") from error
    return specs
