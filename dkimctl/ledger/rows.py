"""Many rows in few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

# Every statement gives up the interpreter's lock, and waits for threads before it has it again:
# a row each made a run of 8 threads a fifth slower. More would pass the 999 values of old SQLite.
_ROWS_OF_STATEMENT = 50


def execute_rows(
    connection: sqlite3.Connection, sql: str, rows: Sequence[Sequence[object]]
) -> None:
    """Run `sql`, in which {rows} stands for the rows that VALUES takes."""
    for start in range(0, len(rows), _ROWS_OF_STATEMENT):
        some = rows[start : start + _ROWS_OF_STATEMENT]
        row = f"({', '.join('?' * len(some[0]))})"
        values = [value for row_values in some for value in row_values]
        connection.execute(sql.format(rows=", ".join([row] * len(some))), values)
