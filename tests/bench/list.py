"""Measure `dkimctl list` and `overview` with 100,000 keys, beside a dump of the same rows as JSON.

Run: python tests/bench/list.py [KEYS]

Of eleven keys, one replaces another; half of the others were seen in DNS.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import key_of
from load import TOOL, arguments, environment, measure, open_ledger, registrations

FLOOR = """
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT * FROM registration LEFT JOIN history USING (account_id, sign_domain, selector)"
    " ORDER BY sign_domain, selector")
names = [column[0] for column in rows.description]
for row in rows:
    print(json.dumps(dict(zip(names, row))))
"""


def fill(ledger: Ledger, count: int) -> None:
    now = datetime.now(UTC)
    old = (now - timedelta(days=100)).isoformat(timespec="seconds")
    keys = [
        key._replace(enable=True, regist_date=old) for key in registrations(count - count // 11)
    ]
    newer = [
        key._replace(selector="s2", regist_date=now.isoformat(timespec="seconds"))
        for key in keys[::10]
    ]
    ledger.note_replacements({key.key: "s1" for key in newer})
    ledger.record([*keys, *newer])
    ledger.note_looks({key_of(key.sign_domain, "s1"): "published" for key in keys[::2]})


def main() -> None:
    (count,) = arguments(100_000)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with open_ledger(home) as ledger:
            fill(ledger, count)
        commands = {
            "floor: rows as JSON": [sys.executable, "-c", FLOOR, str(home / "ledger.db")],
            "list --format json": [TOOL, "list", "--format", "json"],
            "list --format csv": [TOOL, "list", "--format", "csv"],
            "list": [TOOL, "list"],
            "overview": ["sh", "-c", f"'{TOOL}' overview || test $? -eq 1"],  # 1: urgent keys
        }
        floor = None
        for name, words in commands.items():
            seconds, mib = measure(words, environment(home))
            floor = floor or seconds
            print(f"{name:22} {seconds:5.2f} s {seconds / floor:5.1f} x floor {mib:6.0f} MiB")


if __name__ == "__main__":
    main()
