"""Compare the service's store, the ledger and the output for every domain.

Shared by crash.py and faulty.py. Reads the two files with its own SQL, so that a defect of the code
that wrote them cannot hide itself.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

Item = Mapping[str, Any]  # as `--format json` prints it


class Record(NamedTuple):
    """A registration, which must be the same in the service, the ledger and the output."""

    sign_domain: str
    selector: str
    value: str


class LedgerState(NamedTuple):
    """The ledger at one moment."""

    records: frozenset[Record]
    in_doubt: frozenset[str]  # domains with an open intent: sent or about to be, not answered

    def domains(self) -> set[str]:
        """The registered domains."""
        return {record.sign_domain for record in self.records}


def read_ledger(state: Path) -> LedgerState:
    """The ledger in a state directory, while no process uses it.

    Reads a copy, since opening the file would recover it after a kill, which is the task of the
    next `register`.
    """
    with TemporaryDirectory() as copy:
        for path in (state / "ledger.db", state / "ledger.db-wal"):
            if path.exists():
                shutil.copy(path, copy)
        path = Path(copy, "ledger.db")
        records = _rows(path, "SELECT sign_domain, selector, value FROM registration")
        in_doubt = _rows(
            path, "SELECT json_extract(value, '$[0]') FROM open_request, json_each(entries)"
        )
    return LedgerState(
        frozenset(map(Record._make, records)), frozenset(name for (name,) in in_doubt)
    )


def read_store(path: Path) -> list[Record]:
    """The registrations in the service's data file."""
    query = "SELECT sign_domain, selector, value FROM registrations"
    return list(map(Record._make, _rows(path, query)))


def record_of(item: Item) -> Record | None:
    """The record of an item that the service answered with its data."""
    if "setting_values" not in item:
        return None
    return Record(item["sign_domain"], item["selector"], item["setting_values"]["value"])


class Audit(NamedTuple):
    """The state of the domains, from the service's store, the ledger and a run's items."""

    outcomes: Counter[str]  # of the items
    asked_again: int  # registrations whose first answer was lost (409)
    unknown: list[str]  # domains with the outcome unknown
    unknown_registered: int  # of them, registered at the service
    duplicated: list[str]  # domains registered more than once
    lost: list[str]  # domains without a true item
    wrong: list[Record]  # records of the ledger that differ from the service's
    is_in_order: bool  # one item per domain, in the file's order

    def problems(self) -> list[str]:
        """Describe every error."""
        kinds = {
            "duplicated": self.duplicated,
            "lost": self.lost,
            "wrong in the ledger": self.wrong,
        }
        texts = [f"{name}: {domains}" for name, domains in kinds.items() if domains]
        return texts if self.is_in_order else [*texts, "items are missing or out of order"]

    def summary(self) -> str:
        """The number of items by outcome, with details on some."""
        texts = [f"{number} {outcome}" for outcome, number in self.outcomes.items()]
        if self.asked_again:
            texts.append(f"{self.asked_again} answered on a retry")
        if self.unknown:
            texts.append(f"{self.unknown_registered} of the unknown are registered")
        return ", ".join(texts)


def audit(
    domains: Sequence[str], items: Sequence[Item], store: Sequence[Record], ledger: LedgerState
) -> Audit:
    """Compare a run's items with the domains, the store and the ledger after it."""
    is_true = _truth(set(store), ledger)
    times = Counter(record.sign_domain for record in store)
    truthful = {item["sign_domain"] for item in items if is_true(item)}
    unknown = [item["sign_domain"] for item in items if item["outcome"] == "unknown"]
    return Audit(
        outcomes=Counter(item["outcome"] for item in items),
        asked_again=sum((item["result"] or {}).get("code") == "409" for item in items),
        unknown=unknown,
        unknown_registered=sum(domain in times for domain in unknown),
        duplicated=[domain for domain, number in times.items() if number > 1],
        lost=[domain for domain in domains if domain not in truthful],
        wrong=sorted(ledger.records.difference(store)),
        is_in_order=[item["sign_domain"] for item in items] == domains,
    )


def missing_in_ledger(items: Iterable[Item], ledger: LedgerState) -> list[str]:
    """The domains whose registrations were printed but are not in the ledger."""
    records = filter(None, map(record_of, items))
    return [record.sign_domain for record in records if record not in ledger.records]


def _truth(stored: set[Record], ledger: LedgerState) -> Callable[[Item], bool]:
    """A predicate: whether an item is true, and the ledger has what the next run needs."""
    sound, recorded, in_doubt = stored & ledger.records, ledger.domains(), ledger.in_doubt
    registered = {record.sign_domain for record in stored}

    def is_true(item: Item) -> bool:
        domain = item["sign_domain"]
        match item["outcome"]:
            case "created" | "exists":
                return record_of(item) in sound
            case "unknown" | "failed":
                return domain in in_doubt and domain not in recorded
            case "pending":
                return domain not in in_doubt | registered
        return False

    return is_true


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
