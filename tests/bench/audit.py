"""What became of every domain: the service's store, the ledger and the output, compared.

Shared by crash.py and faulty.py. Reads the two files with SQL of its own, so that no defect
of the code that wrote them can hide itself.
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
    """A registration, as the service, the ledger and the output must have it alike."""

    sign_domain: str
    selector: str
    value: str


class Books(NamedTuple):
    """The ledger at one moment."""

    records: frozenset[Record]
    in_doubt: frozenset[str]  # domains that were sent, or about to be, and not answered

    def kept(self) -> set[str]:
        """The domains whose registrations it holds."""
        return {record.sign_domain for record in self.records}


def read_ledger(state: Path) -> Books:
    """The ledger in a state directory, while no process is at it.

    A copy is read: to open the file itself would do the recovery after a kill, which is for
    the next `register` to do.
    """
    with TemporaryDirectory() as copy:
        for path in (state / "ledger.db", state / "ledger.db-wal"):
            if path.exists():
                shutil.copy(path, copy)
        path = Path(copy, "ledger.db")
        records = _rows(path, "SELECT sign_domain, selector, value FROM registration")
        in_doubt = _rows(
            path, "SELECT json_extract(value, '$[0]') FROM sending, json_each(entries)"
        )
    return Books(frozenset(map(Record._make, records)), frozenset(name for (name,) in in_doubt))


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
    """What became of the domains, by the service's store, the ledger and a run's items."""

    outcomes: Counter[str]  # of the items
    asked_again: int  # registrations whose first answer never came (409)
    unknown: list[str]  # domains whose state nobody can tell
    unknown_registered: int  # those of them that the service has
    doubled: list[str]  # domains that the service has more than once
    lost: list[str]  # domains of which the items do not say what is so
    wrong: list[Record]  # records of the ledger that the service has not, or otherwise
    is_in_order: bool  # the items are one for each domain, in the file's order

    def findings(self) -> list[str]:
        """What should not be so, in words."""
        found = {"doubled": self.doubled, "lost": self.lost, "wrong in the ledger": self.wrong}
        texts = [f"{name}: {some}" for name, some in found.items() if some]
        return texts if self.is_in_order else [*texts, "items are missing, or in another order"]

    def summary(self) -> str:
        """How many items there are of each outcome, and more of some, in words."""
        texts = [f"{number} {outcome}" for outcome, number in self.outcomes.items()]
        if self.asked_again:
            texts.append(f"{self.asked_again} answered when asked again")
        if self.unknown:
            texts.append(f"{self.unknown_registered} of the unknown are registered")
        return ", ".join(texts)


def audit(
    domains: Sequence[str], items: Sequence[Item], store: Sequence[Record], ledger: Books
) -> Audit:
    """Compare a run's items with what it was asked for, and with what is there after it."""
    is_so = _judge(set(store), ledger)
    times = Counter(record.sign_domain for record in store)
    told = {item["sign_domain"] for item in items if is_so(item)}
    unknown = [item["sign_domain"] for item in items if item["outcome"] == "unknown"]
    return Audit(
        outcomes=Counter(item["outcome"] for item in items),
        asked_again=sum((item["result"] or {}).get("code") == "409" for item in items),
        unknown=unknown,
        unknown_registered=sum(domain in times for domain in unknown),
        doubled=[domain for domain, number in times.items() if number > 1],
        lost=[domain for domain in domains if domain not in told],
        wrong=sorted(ledger.records.difference(store)),
        is_in_order=[item["sign_domain"] for item in items] == domains,
    )


def unkept(items: Iterable[Item], ledger: Books) -> list[str]:
    """The domains whose registrations were printed, and are not in the ledger."""
    records = filter(None, map(record_of, items))
    return [record.sign_domain for record in records if record not in ledger.records]


def _judge(stored: set[Record], ledger: Books) -> Callable[[Item], bool]:
    """What tells whether an item is true, and the ledger knows what it must to go on."""
    sound, kept, in_doubt = stored & ledger.records, ledger.kept(), ledger.in_doubt
    registered = {record.sign_domain for record in stored}

    def is_so(item: Item) -> bool:
        domain = item["sign_domain"]
        match item["outcome"]:
            case "created" | "exists":
                return record_of(item) in sound
            case "unknown" | "failed":
                return domain in in_doubt and domain not in kept
            case "pending":
                return domain not in in_doubt | registered
        return False

    return is_so


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none where there is no file or no table yet."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return []
