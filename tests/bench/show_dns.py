"""Measure `dkimctl show-dns --format zone` with 100,000 records, beside named-checkzone.

Run: python tests/bench/show_dns.py [RECORDS [REPETITIONS]]

named-checkzone reads the same lines. All keys are different and have 2048 bits.
"""

from __future__ import annotations

import base64
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, Registration
from load import MEASURE

ZONE = "example.com"
APEX = (
    f"$ORIGIN {ZONE}.\n@ 3600 IN SOA ns hostmaster 1 7200 3600 1209600 3600\n"
    "@ 3600 IN NS ns\nns 3600 IN A 192.0.2.1\n"
)
START = bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")
END = bytes.fromhex("0203010001")


def registrations(count: int) -> Iterator[Registration]:
    draw = random.Random(1)
    for number in range(count):
        modulus = draw.getrandbits(2048) | 1 << 2047 | 1
        key = base64.b64encode(START + modulus.to_bytes(256) + END).decode()
        domain = f"d{number}.{ZONE}"
        record = DnsRecord(f"s1._domainkey.{domain}", "TXT", f"v=DKIM1; g=*; k=rsa; p={key}")
        yield Registration(
            domain, "s1", 2048, None, 0, False, record, None, code="201", message="created"
        )


def measure(
    words: list[str], env: dict[str, str], output: Path | None = None
) -> tuple[float, float]:
    """Wall time in seconds and peak memory in MiB; stdout goes to `output`."""
    script = MEASURE
    if output is not None:
        script = script.replace("stdout=subprocess.DEVNULL", f"stdout=open({str(output)!r}, 'w')")
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=env, check=True, capture_output=True, text=True
    )
    seconds, kib = map(float, done.stdout.split())
    return seconds, kib / 1024


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tool = str(Path(sys.executable).with_name("dkimctl"))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        urls = {f"DKIMCTL_{name}": "http://127.0.0.1:9" for name in ("AUTH_URL", "BASE_URL")}
        names = {"HOME": directory, "DKIMCTL_STATE_DIR": directory, "DKIMCTL_CLIENT_ID": "id"}
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, **urls, **names}
        path = home / "ledger.db"
        with Ledger.open(path, base_url=urls["DKIMCTL_BASE_URL"], client_id="id") as ledger:
            ledger.record(list(registrations(count)))
        lines, zone = home / "dkim.zone", home / "zone"
        zone.write_text(f"{APEX}$INCLUDE {lines}\n")
        print(f"{count} records of 2048 bits")
        for _ in range(repetitions):
            seconds, mib = measure([tool, "show-dns", "--format", "zone"], env, lines)
            checked, _ = measure(["named-checkzone", "-q", ZONE, str(zone)], env)
            print(
                f"  dkimctl {seconds:5.2f} s, {mib:3.0f} MiB; named-checkzone {checked:5.2f} s "
                f"({checked / seconds:.1f} x)"
            )


if __name__ == "__main__":
    main()
