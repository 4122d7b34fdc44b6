"""Measure `dkimctl list` and `overview` with 100,000 keys, beside a dump of the same rows as JSON.

Run: python tests/bench/list.py [KEYS]

Of eleven keys, one replaces another; half of the others were seen in DNS.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import key_of
from load import measure
from show_dns import registrations

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
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    tool = str(Path(sys.executable).with_name("dkimctl"))
    with tempfile.TemporaryDirectory() as home:
        urls = {f"DKIMCTL_{name}": "http://127.0.0.1:9" for name in ("AUTH_URL", "BASE_URL")}
        names = {"HOME": home, "DKIMCTL_STATE_DIR": home, "DKIMCTL_CLIENT_ID": "id"}
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        path = Path(home, "ledger.db")
        url = urls["DKIMCTL_BASE_URL"]
        with Ledger.open(path, base_url=url, client_id="id") as ledger:
            fill(ledger, count)
        commands = {
            "floor: rows as JSON": [sys.executable, "-c", FLOOR, str(path)],
            "list --format json": [tool, "list", "--format", "json"],
            "list --format csv": [tool, "list", "--format", "csv"],
            "list": [tool, "list"],
            "overview": ["sh", "-c", f"'{tool}' overview || test $? -eq 1"],  # 1: urgent keys
        }
        floor = None
        for name, words in commands.items():
            seconds, mib = measure(words, env={**kept, **urls, **names})
            floor = floor or seconds
            print(f"{name:22} {seconds:5.2f} s {seconds / floor:5.1f} x floor {mib:6.0f} MiB")


if __name__ == "__main__":
    main()
