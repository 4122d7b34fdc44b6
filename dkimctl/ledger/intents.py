"""Intents: entries of requests that were sent, or were about to be, and have no usable answer.

The table `open_request` has a row for each request; its IDs ascend in the order of sending. A
`store` is an open database of a ledger: see `SqliteStore` in `opening.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dkimctl.ledger.tables import damage_error, require_row_id
from dkimctl.models import DomainSpec, RegistrationKey, key_of


class Intent(NamedTuple):
    """One entry of an open request."""

    sign_domain: str
    selector: str | None  # None if the service chooses it
    sent_at: str  # UTC, ISO 8601 to the second, such as 2026-11-21T14:02:10+00:00

    @property
    def key(self) -> RegistrationKey:
        return key_of(self.sign_domain, self.selector)


def select_open_requests(store: Any, account_id: int) -> Iterator[tuple[int, list[Intent]]]:
    """The intents of each open request of an account, by its ID, oldest first."""
    query = "SELECT id, sent_at, entries FROM open_request WHERE account_id = ? ORDER BY id"
    for row_id, sent_at, entries in store.execute(query, (account_id,)):
        yield require_row_id(row_id), list(_decoded(entries, str(sent_at)))


def insert_requests(
    store: Any, account_id: int, sent_at: str, requests: Iterable[Iterable[DomainSpec]]
) -> Iterator[tuple[int, list[Intent]]]:
    """Insert a row for each request, within the caller's transaction; what was inserted."""
    insert = "INSERT INTO open_request (account_id, sent_at, entries) VALUES (?, ?, ?)"
    for specs in requests:
        intents = [Intent(spec.sign_domain, spec.selector, sent_at) for spec in specs]
        yield store.insert(insert, (account_id, sent_at, _encoded(intents))), intents


def update_requests(store: Any, remaining: Mapping[int, Sequence[Intent]]) -> None:
    """Store the remaining intents of requests, by ID, within the caller's transaction."""
    left = [(_encoded(intents), request_id) for request_id, intents in remaining.items() if intents]
    closed = [(request_id,) for request_id, intents in remaining.items() if not intents]
    store.executemany("UPDATE open_request SET entries = ? WHERE id = ?", left)
    store.executemany("DELETE FROM open_request WHERE id = ?", closed)


class OpenRequests:
    """The open requests of an account, in memory for 100,000 lookups. Names ignore case."""

    def __init__(self, requests: Iterable[tuple[int, list[Intent]]]) -> None:
        self._requests: dict[int, dict[RegistrationKey, Intent]] = {}
        self._by_domain: dict[str, dict[str, int]] = {}  # selector -> ID; oldest first
        self.add(requests)

    def of_domain(self, sign_domain: str) -> list[Intent]:
        """The intents of one signing domain, oldest first."""
        domain = sign_domain.lower()
        return [
            self._requests[request_id][RegistrationKey(domain, selector)]
            for selector, request_id in self._by_domain.get(domain, {}).items()
        ]

    def remaining_without(self, keys: Iterable[RegistrationKey]) -> dict[int, list[Intent]]:
        """What would remain of the requests that hold any of `keys`, perhaps repeated, by ID."""
        closed: dict[int, set[RegistrationKey]] = {}
        for key in keys:
            request_id = self._by_domain.get(key.sign_domain, {}).get(key.selector)
            if request_id is not None:
                closed.setdefault(request_id, set()).add(key)
        remaining: dict[int, list[Intent]] = {}
        for request_id, closed_keys in closed.items():
            intents = self._requests[request_id]
            remaining[request_id] = [
                intent for key, intent in intents.items() if key not in closed_keys
            ]
        return remaining

    def update(self, remaining: Mapping[int, Iterable[Intent]]) -> None:
        """Drop all but the remaining intents of these requests."""
        for request_id, intents in remaining.items():
            left = {intent.key: intent for intent in intents}
            for key in self._requests.pop(request_id).keys() - left.keys():
                selectors = self._by_domain[key.sign_domain]
                del selectors[key.selector]
                if not selectors:
                    del self._by_domain[key.sign_domain]
            if left:
                self._requests[request_id] = left

    def add(self, requests: Iterable[tuple[int, list[Intent]]]) -> None:
        """Add newer requests, whose entries are in no other."""
        for request_id, intents in requests:
            self._requests[request_id] = {intent.key: intent for intent in intents}
            for key in self._requests[request_id]:
                self._by_domain.setdefault(key.sign_domain, {})[key.selector] = request_id


def _encoded(intents: Iterable[Intent]) -> str:
    return json.dumps([intent[:2] for intent in intents])


def _decoded(entries: Any, sent_at: str) -> Iterator[Intent]:
    """The intents of a row. Raises sqlite3.DatabaseError for any other content."""
    try:
        for entry in json.loads(entries):
            match entry:
                case [str() as domain, (str() | None) as selector]:
                    yield Intent(domain, selector, sent_at)
                case _:
                    raise ValueError("an entry is not a signing domain and a selector")
    except (TypeError, ValueError, RecursionError) as error:
        raise damage_error(f"an open request in it cannot be read: {error}") from error
