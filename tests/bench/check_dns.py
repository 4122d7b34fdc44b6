"""Measure `dkimctl check-dns` with one server, compared with dig.

Run: python tests/bench/check_dns.py [RECORDS [REPETITIONS]]

Both query an nsd on loopback for the same TXT records of 2048-bit keys, and are timed as commands,
from start to end. The last lines are about memory, and about names without records, of which nsd by
default answers 200 a second over UDP.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from dkimctl.formats.renderer import txt_data
from dkimctl.ledger.ledger import Ledger
from show_dns import APEX, measure, registrations

sys.path.append(str(Path(__file__).parents[1] / "support"))
from dns_servers import serving

BASE_URL = "http://127.0.0.1:9"


def prepare(home: Path, count: int) -> None:
    """A ledger, a zone and a list of names with this many records."""
    registered = list(registrations(count))
    home.mkdir()
    with Ledger.open(home / "ledger.db", base_url=BASE_URL, client_id="id") as ledger:
        ledger.record(registered)
    records = [one.record for one in registered if one.record is not None]
    lines = [f"{record.fqdn}. 3600 IN TXT {txt_data(record.value)}\n" for record in records]
    (home / "zone").write_text(APEX + "".join(lines))
    (home / "names").write_text("".join(f"{record.fqdn} TXT\n" for record in records))


def compare(home: Path, env: dict[str, str], count: int, repetitions: int) -> None:
    prepare(home, count)
    env = {**env, "DKIMCTL_STATE_DIR": str(home)}
    tool = str(Path(sys.executable).with_name("dkimctl"))
    with serving("nsd", home / "zone", home, lambda name: name) as server:
        check = [tool, "check-dns", "--server", str(server), "--format", "jsonl"]
        measure(check, env)  # the first run records the publications in the ledger
        dig = ["dig", f"@{server.host}", "-p", str(server.port), "-f", str(home / "names")]
        for _ in range(repetitions):
            seconds, mib = measure(check, env)
            digging, _ = measure(dig, env)
            print(
                f"  {count} records: dkimctl {seconds:.2f} s, {count / seconds:,.0f}/s, {mib:.0f} "
                f"MiB; dig -f {count / digging:,.0f}/s (dkimctl {digging / seconds:.2f} x)"
            )


def compare_missing(home: Path, env: dict[str, str], count: int) -> None:
    prepare(home, count)
    (home / "zone").write_text(APEX)
    env = {**env, "DKIMCTL_STATE_DIR": str(home)}
    tool = str(Path(sys.executable).with_name("dkimctl"))
    with serving("nsd", home / "zone", home, lambda name: name) as server:
        words = [tool, "check-dns", "--server", str(server), "--format", "jsonl"]
        # The exit code is 1; `measure` takes only 0.
        seconds, _ = measure(["sh", "-c", '"$@" || test $? = 1', "sh", *words], env)
        print(f"  {count} missing names: dkimctl {seconds:.2f} s")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        urls = {f"DKIMCTL_{name}": BASE_URL for name in ("AUTH_URL", "BASE_URL")}
        names = {"HOME": directory, "DKIMCTL_CLIENT_ID": "id"}
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, **urls, **names}
        compare(Path(directory) / "some", env, count, repetitions)
        print("  and ten times as many:")
        compare(Path(directory) / "many", env, 10 * count, 1)
        compare_missing(Path(directory) / "missing", env, 2 * count)


if __name__ == "__main__":
    main()
