"""Registered domains by their first characters, for completion in a shell."""

from __future__ import annotations

from pathlib import Path

from dkimctl.errors import LedgerError
from dkimctl.ledger.opening import ledger_fault
from dkimctl.ledger.registrations import IS_OURS
from dkimctl.system.databases import peeking
from dkimctl.system.ownership import refuse

_MATCHING = f"""
SELECT DISTINCT sign_domain FROM registration JOIN account ON account.id = account_id
WHERE base_url = ?1 AND client_id = ?2 AND sign_domain >= ?3 AND sign_domain < ?4 AND {IS_OURS}
ORDER BY sign_domain"""  # noqa: S608 - a constant
_AFTER_ALL = "\U0010ffff"


def domains_with_prefix(
    path: Path, base_url: str, client_id: str, prefix: str, limit: int
) -> list[str]:
    """At most `limit` signing domains of an account that begin with `prefix`, sorted.

    If there are more, the last is among them: then what all of these have in common at the start,
    which a shell adds to the line, is what all domains have in common. Nothing is created, and
    nothing waited for. Raises LedgerError, OSError and sqlite3.Error.
    """
    refuse(ledger_fault(path), LedgerError)
    values = (base_url, client_id, prefix, prefix + _AFTER_ALL)
    with peeking(path) as connection:
        first = connection.execute(f"{_MATCHING} LIMIT {limit}", values).fetchall()
        last = connection.execute(f"{_MATCHING} DESC LIMIT 1", values).fetchall()
    if len(first) == limit:
        first[-1:] = last
    return [domain for (domain,) in first]
