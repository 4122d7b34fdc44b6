"""Requests that were sent, or were about to be, and have no usable answer."""

import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from dkimctl.ledger.rows import execute_rows

Pair = tuple[str, str | None]  # (signing domain, selector or None)


class Intent(NamedTuple):
    """One entry of such a request. `selector` is None where the service was to choose it.

    `sent_at` is UTC, ISO 8601 to the second, such as 2026-11-21T14:02:10+00:00.
    """

    sign_domain: str
    selector: str | None
    sent_at: str


_SELECT = "SELECT sign_domain, selector, sent_at FROM intent WHERE account_id = ? ORDER BY id"
# CROSS JOIN has SQLite look up each pair, however many intents there are.
_CLOSE = """
DELETE FROM intent WHERE id IN (
  SELECT intent.id FROM (VALUES {rows}) AS pair CROSS JOIN intent
  ON intent.account_id = column1 AND intent.sign_domain = column2 AND intent.selector = column3
)
"""
# A replacement and not an upsert: the id keeps the order of sending, whatever the clock does.
_BEGIN = "INSERT OR REPLACE INTO intent (account_id, sign_domain, selector, sent_at) VALUES {rows}"


def select_intents(connection: sqlite3.Connection, account_id: int) -> list[Intent]:
    """All open ones of an account, oldest first."""
    found = connection.execute(_SELECT, (account_id,))
    return [Intent(str(domain), str(selector) or None, str(at)) for domain, selector, at in found]


def change_intents(
    connection: sqlite3.Connection,
    account_id: int,
    closed: Iterable[Pair],
    begun: Iterable[Intent],
) -> None:
    """Close some, then begin some; within the caller's transaction."""
    pairs = [(account_id, domain, selector or "") for domain, selector in closed]
    execute_rows(connection, _CLOSE, pairs)
    intents = [(account_id, domain, selector or "", at) for domain, selector, at in begun]
    execute_rows(connection, _BEGIN, intents)


class OpenIntents:
    """The open intents of an account in memory, to be asked 100,000 times.

    Names are compared as the file compares them: ASCII letters without regard to case, which
    is what `lower` does to bytes.
    """

    def __init__(self, intents: Iterable[Intent]) -> None:
        self._by_domain: dict[bytes, dict[bytes, Intent]] = {}
        self.begin(intents)

    def of_domain(self, sign_domain: str) -> list[Intent]:
        """Those of one signing domain, oldest first."""
        if not self._by_domain:
            return []
        return list(self._by_domain.get(sign_domain.encode().lower(), {}).values())

    def which(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Those of `pairs` that are open."""
        found = []
        for pair in pairs:
            of_domain = self._by_domain.get(pair[0].encode().lower())
            if of_domain and (pair[1] or "").encode().lower() in of_domain:
                found.append(pair)
        return found

    def close(self, pairs: Iterable[Pair]) -> None:
        for sign_domain, selector in pairs:
            domain = sign_domain.encode().lower()
            if of_domain := self._by_domain.get(domain):
                of_domain.pop((selector or "").encode().lower(), None)
                if not of_domain:
                    del self._by_domain[domain]

    def begin(self, intents: Iterable[Intent]) -> None:
        """Add these, each as the youngest, in place of one of the same pair."""
        for intent in intents:
            of_domain = self._by_domain.setdefault(intent.sign_domain.encode().lower(), {})
            selector = (intent.selector or "").encode().lower()
            of_domain.pop(selector, None)
            of_domain[selector] = intent


def utc(seconds: float) -> str:
    """The time of an Intent; `seconds` since the epoch."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))
