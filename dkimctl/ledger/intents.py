"""Requests that were sent, or were about to be, and have no usable answer."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from dkimctl.ledger.faults import corrupt, sound_id

Pair = tuple[str, str | None]  # (signing domain, selector or None)
_Folded = tuple[str, str]  # the same in lower case, "" for None


class Intent(NamedTuple):
    """One entry of such a sending. `selector` is None where the service was to choose it.

    `sent_at` is UTC, ISO 8601 to the second, such as 2026-11-21T14:02:10+00:00.
    """

    sign_domain: str
    selector: str | None
    sent_at: str


class Sending(NamedTuple):
    """Entries of one request that have no answer. The IDs keep the order of sending."""

    id: int
    sent_at: str
    pairs: Sequence[Pair]


_SELECT = "SELECT id, sent_at, entries FROM sending WHERE account_id = ? ORDER BY id"
_BEGIN = "INSERT INTO sending (account_id, sent_at, entries) VALUES (?, ?, ?)"
_CHANGE = "UPDATE sending SET entries = ? WHERE id = ?"
_END = "DELETE FROM sending WHERE id = ?"


def select_sendings(connection: sqlite3.Connection, account_id: int) -> Iterator[Sending]:
    """All of an account that are open, oldest first."""
    for sending_id, sent_at, entries in connection.execute(_SELECT, (account_id,)):
        yield Sending(sound_id(sending_id), str(sent_at), _decoded(entries))


def add_sendings(
    connection: sqlite3.Connection,
    account_id: int,
    sent_at: str,
    requests: Iterable[Sequence[Pair]],
) -> list[Sending]:
    """Add one for each request, within the caller's transaction."""
    added = []
    for pairs in requests:
        done = connection.execute(_BEGIN, (account_id, sent_at, json.dumps(pairs)))
        added.append(Sending(done.lastrowid or 0, sent_at, pairs))
    return added


def change_sendings(connection: sqlite3.Connection, left: Mapping[int, Sequence[Pair]]) -> None:
    """Set what is `left` of some, by their IDs, within the caller's transaction."""
    for sending_id, pairs in left.items():
        if pairs:
            connection.execute(_CHANGE, (json.dumps(pairs), sending_id))
        else:
            connection.execute(_END, (sending_id,))


def intents_of(sending: Sending) -> list[Intent]:
    return [Intent(*pair, sending.sent_at) for pair in sending.pairs]


class OpenSendings:
    """The open sendings of an account in memory, to be asked 100,000 times.

    Names are compared without regard to case.
    """

    def __init__(self, sendings: Iterable[Sending]) -> None:
        self._sent_at: dict[int, str] = {}
        self._pairs: dict[int, dict[_Folded, Pair]] = {}
        self._of_domain: dict[str, dict[str, int]] = {}  # selector -> ID; oldest first
        self.begin(sendings)

    def of_domain(self, sign_domain: str) -> list[Intent]:
        """The intents of one signing domain, oldest first."""
        domain = sign_domain.lower()
        if domain not in self._of_domain:
            return []
        return [
            Intent(*self._pairs[sending_id][domain, selector], self._sent_at[sending_id])
            for selector, sending_id in self._of_domain[domain].items()
        ]

    def without(self, pairs: Iterable[Pair]) -> dict[int, list[Pair]]:
        """What would be left of the sendings that hold any of `pairs`, by their IDs.

        `pairs` may repeat itself.
        """
        closed: dict[int, set[_Folded]] = {}
        for sign_domain, selector in pairs:
            domain = sign_domain.lower()
            selectors = self._of_domain.get(domain)
            if selectors is None:
                continue
            folded = (selector or "").lower()
            if folded in selectors:
                closed.setdefault(selectors[folded], set()).add((domain, folded))
        return {sending_id: self._left(sending_id, keys) for sending_id, keys in closed.items()}

    def change(self, left: Mapping[int, Iterable[Pair]]) -> None:
        """Keep of these sendings only what is left of each."""
        for sending_id, pairs in left.items():
            kept = {_folded(pair): pair for pair in pairs}
            for key in self._pairs[sending_id]:
                if key not in kept:
                    self._forget(*key)
            self._pairs[sending_id] = kept
            if not kept:
                del self._pairs[sending_id], self._sent_at[sending_id]

    def begin(self, sendings: Iterable[Sending]) -> None:
        """Add the youngest, whose entries are in no other."""
        for sending in sendings:
            pairs = {_folded(pair): pair for pair in sending.pairs}
            self._pairs[sending.id], self._sent_at[sending.id] = pairs, sending.sent_at
            for domain, selector in pairs:
                self._of_domain.setdefault(domain, {})[selector] = sending.id

    def _forget(self, domain: str, selector: str) -> None:
        selectors = self._of_domain[domain]
        if len(selectors) == 1:
            del self._of_domain[domain]
        else:
            del selectors[selector]

    def _left(self, sending_id: int, closed: Set[_Folded]) -> list[Pair]:
        pairs = self._pairs[sending_id]
        if len(closed) == len(pairs):  # mostly: an answer to the whole request
            return []
        return [pair for key, pair in pairs.items() if key not in closed]


def utc(seconds: float) -> str:
    """The time of a Sending; `seconds` since the epoch."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))


def _folded(pair: Pair) -> _Folded:
    return pair[0].lower(), (pair[1] or "").lower()


def _decoded(entries: Any) -> list[Pair]:
    """The pairs of a row, whatever somebody else may have put into it."""
    try:
        return [_pair(entry) for entry in json.loads(entries)]
    except (TypeError, ValueError, RecursionError) as error:
        raise corrupt(f"a sending in it cannot be read: {error}") from error


def _pair(entry: object) -> Pair:
    match entry:
        case [str() as domain, (str() | None) as selector]:
            return domain, selector
    raise ValueError("an entry is no signing domain and selector")
