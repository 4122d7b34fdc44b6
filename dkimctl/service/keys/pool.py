"""Key pairs made ahead, in the database, where all processes of a service share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import delete, func, insert, select
from sqlalchemy.sql.dml import ReturningDelete

from dkimctl.service.database.schema import key_pool
from dkimctl.service.database.store import Store
from dkimctl.service.keys.pairs import KeyPair
from dkimctl.service.keys.passphrase import require_same_passphrase


def depth(store: Store) -> Counter[int]:
    """How many pairs there are, by length in bits."""
    count = select(key_pool.c.key_len, func.count().label("number")).group_by(key_pool.c.key_len)
    with store.reading() as connection:
        return Counter({row.key_len: row.number for row in connection.execute(count)})


def put(store: Store, pairs: Iterable[tuple[int, KeyPair]]) -> None:
    """Add pairs, each with its length in bits. Private keys are encrypted if the store does."""
    rows = [
        {"key_len": key_len, "value": pair.value, "private_key": store.seal(pair.private_key)}
        for key_len, pair in pairs
    ]
    if rows:
        with store.writing(durable=False) as connection:
            require_same_passphrase(store, connection)
            connection.execute(insert(key_pool), rows)


def take(store: Store, wanted: Counter[int]) -> dict[int, list[KeyPair]]:
    """Remove as many pairs of each length as are wanted, or as there are.

    No other request gets them, whatever becomes of this one. Private keys are as in the database.
    """
    taken = {}
    with store.writing(durable=False) as connection:
        for key_len, count in wanted.items():
            rows = connection.execute(_take(key_len, count))
            taken[key_len] = [KeyPair(row.value, row.private_key) for row in rows]
    return taken


def _take(key_len: int, count: int) -> ReturningDelete[tuple[str, bytes]]:
    # Those that another process is about to take are left to it. A CTE is run once: as a plain
    # subquery, PostgreSQL may run it again and delete more.
    first = (
        select(key_pool.c.key_id)
        .where(key_pool.c.key_len == key_len)
        .order_by(key_pool.c.key_id)
        .limit(count)
        .with_for_update(skip_locked=True)
        .cte("first")
    )
    return (
        delete(key_pool)
        .where(key_pool.c.key_id.in_(select(first.c.key_id)))
        .returning(key_pool.c.value, key_pool.c.private_key)
    )
