"""Measure `dkimctl check-dns` with one server, compared with dig.

Run: python tests/bench/check_dns.py [RECORDS [REPETITIONS]]

Both query an nsd on loopback for the same TXT records of 2048-bit keys, and are timed as commands,
from start to end. The last lines are about memory, and about names without records, of which nsd by
default answers 200 a second over UDP.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dkimctl.formats.dns_tools import txt_data
from load import APEX, TOOL, arguments, environment, measure, open_ledger, registrations

sys.path.append(str(Path(__file__).parents[1] / "support"))
from dns_servers import serving


def compare(home: Path, count: int, repetitions: int) -> None:
    """Without repetitions: of names that have no records."""
    home.mkdir()
    registered = list(registrations(count))
    with open_ledger(home) as ledger:
        ledger.record(registered)
    records = [key.record for key in registered if key.record is not None]
    lines = [f"{record.fqdn}. 3600 IN TXT {txt_data(record.value)}\n" for record in records]
    (home / "zone").write_text(APEX + "".join(lines) * bool(repetitions))
    (home / "names").write_text("".join(f"{record.fqdn} TXT\n" for record in records))
    env = environment(home)
    with serving("nsd", home / "zone", home, lambda name: name) as server:
        check = [TOOL, "check-dns", "--server", str(server), "--format", "jsonl"]
        if not repetitions:
            # The exit code is 1; `measure` takes only 0.
            seconds, _ = measure(["sh", "-c", '"$@" || test $? = 1', "sh", *check], env)
            print(f"  {count} missing names: dkimctl {seconds:.2f} s")
            return
        measure(check, env)  # the first run records the publications in the ledger
        dig = ["dig", f"@{server.host}", "-p", str(server.port), "-f", str(home / "names")]
        for _ in range(repetitions):
            seconds, mib = measure(check, env)
            digging, _ = measure(dig, env)
            print(
                f"  {count} records: dkimctl {seconds:.2f} s, {count / seconds:,.0f}/s, {mib:.0f} "
                f"MiB; dig -f {count / digging:,.0f}/s (dkimctl {digging / seconds:.2f} x)"
            )


def main() -> None:
    count, repetitions = arguments(10_000, 5)
    with tempfile.TemporaryDirectory() as directory:
        compare(Path(directory) / "some", count, repetitions)
        print("  and ten times as many:")
        compare(Path(directory) / "many", 10 * count, 1)
        compare(Path(directory) / "missing", 2 * count, 0)


if __name__ == "__main__":
    main()
