"""Compare the service's store, the ledger and the output for every domain.

Shared by crash.py and faulty.py. Reads the two files with its own SQL, so that a defect of the code
that wrote them cannot hide itself.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

Item = Mapping[str, Any]  # as `--format json` prints it
Record = tuple[str, str, str]  # domain, selector and value of a registration


class LedgerState(NamedTuple):
    """The ledger at one moment."""

    records: frozenset[Record]
    in_doubt: frozenset[str]  # domains with an open intent: sent or about to be, not answered

    def domains(self) -> set[str]:
        return {domain for domain, _, _ in self.records}


def read_ledger(state: Path) -> LedgerState:
    """The ledger in a state directory, while no process uses it.

    Asserts that it has an event of each registration, and no other. Reads a copy, since opening
    the file would recover it after a kill, which is the task of the next `register`.
    """
    with TemporaryDirectory() as copy:
        for path in (state / "ledger.db", state / "ledger.db-wal"):
            if path.exists():
                shutil.copy(path, copy)
        path = Path(copy, "ledger.db")
        records = _rows(path, "SELECT sign_domain, selector, value FROM registration")
        events = _rows(path, "SELECT sign_domain, selector FROM event WHERE what = 'registered'")
        assert sorted(events) == sorted(record[:2] for record in records), "events disagree"
        in_doubt = _rows(
            path, "SELECT json_extract(value, '$[0]') FROM open_request, json_each(entries)"
        )
    return LedgerState(frozenset(records), frozenset(name for (name,) in in_doubt))


def read_store(path: Path) -> list[Record]:
    """The registrations in the service's data file."""
    return _rows(path, "SELECT sign_domain, selector, value FROM registrations")


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none if the file or the table does not exist yet."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return []


def record_of(item: Item) -> Record | None:
    """The record of an item that the service answered with its data."""
    if "setting_values" not in item:
        return None
    return (item["sign_domain"], item["selector"], item["setting_values"]["value"])


class Audit(NamedTuple):
    """The state of the domains after a run."""

    outcomes: Counter[str]  # of the items
    asked_again: int  # registrations whose first answer was lost (409)
    unknown: list[str]  # domains with the outcome unknown
    unknown_registered: int  # of them, registered at the service
    problems: list[str]

    def __str__(self) -> str:
        texts = [f"{number} {outcome}" for outcome, number in self.outcomes.items()]
        texts.append(f"{self.asked_again} answered on a retry")
        return ", ".join([*texts, f"{self.unknown_registered} of the unknown are registered"])


def audit(
    domains: Sequence[str], items: Sequence[Item], store: Sequence[Record], ledger: LedgerState
) -> Audit:
    """Compare a run's items with the domains, the store and the ledger after it."""
    registered = Counter(domain for domain, _, _ in store)
    sound, recorded = ledger.records.intersection(store), ledger.domains()

    def is_true(item: Item) -> bool:
        """Whether it says what is so, and the ledger has what the next run needs."""
        domain = item["sign_domain"]
        match item["outcome"]:
            case "created" | "exists":
                return record_of(item) in sound
            case "unknown" | "failed":
                return domain in ledger.in_doubt and domain not in recorded
            case "pending":
                return domain not in ledger.in_doubt and domain not in registered
        return False

    named = [item["sign_domain"] for item in items]
    found = {
        "duplicated": [domain for domain, number in registered.items() if number > 1],
        "lost": sorted(set(domains).difference(i["sign_domain"] for i in items if is_true(i))),
        "wrong in the ledger": sorted(ledger.records.difference(store)),
        "missing or out of order": [] if named == domains else named,
    }
    unknown = [item["sign_domain"] for item in items if item["outcome"] == "unknown"]
    return Audit(
        outcomes=Counter(item["outcome"] for item in items),
        asked_again=sum((item["result"] or {}).get("code") == "409" for item in items),
        unknown=unknown,
        unknown_registered=sum(domain in registered for domain in unknown),
        problems=[f"{problem}: {names}" for problem, names in found.items() if names],
    )
