"""Measure `dkimctl show-dns --format zone` with 100,000 records, beside named-checkzone.

Run: python tests/bench/show_dns.py [RECORDS [REPETITIONS]]

named-checkzone reads the same lines. All keys are different and have 2048 bits.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from load import APEX, TOOL, ZONE, arguments, environment, measure, open_ledger, registrations


def main() -> None:
    count, repetitions = arguments(100_000, 5)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        env = environment(home)
        with open_ledger(home) as ledger:
            ledger.record(list(registrations(count)))
        lines, zone = home / "dkim.zone", home / "zone"
        zone.write_text(f"{APEX}$INCLUDE {lines}\n")
        print(f"{count} records of 2048 bits")
        for _ in range(repetitions):
            seconds, mib = measure([TOOL, "show-dns", "--format", "zone"], env, str(lines))
            checked, _ = measure(["named-checkzone", "-q", ZONE, str(zone)], env)
            print(
                f"  dkimctl {seconds:5.2f} s, {mib:3.0f} MiB; named-checkzone {checked:5.2f} s "
                f"({checked / seconds:.1f} x)"
            )


if __name__ == "__main__":
    main()
