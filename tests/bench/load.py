"""Measure checking 100,000 entries, compared with PyYAML alone on the same file.

Run: python tests/bench/load.py [ENTRIES]

The floor reads the parser's events and drops them; the peer builds plain objects with
yaml.CSafeLoader, without checks. Above: what the other scripts share.
"""

from __future__ import annotations

import base64
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, Registration

URL = "http://127.0.0.1:9"  # nobody listens there
TOOL = str(Path(sys.executable).with_name("dkimctl"))
ZONE = "example.com"
APEX = (
    f"$ORIGIN {ZONE}.\n@ 3600 IN SOA ns hostmaster 1 7200 3600 1209600 3600\n"
    "@ 3600 IN NS ns\nns 3600 IN A 192.0.2.1\n"
)
# Of the DER of an RSA key of 2048 bits, what stands around the modulus.
START = bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")
END = bytes.fromhex("0203010001")
# Runs a command and prints its wall time in seconds and its peak memory in KiB.
MEASURE = """
import resource, subprocess, sys, time
started = time.perf_counter()
with open(sys.argv[1], "w") as output:
    subprocess.run(sys.argv[2:], check=True, stdout=output, stderr=subprocess.DEVNULL)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def arguments(*defaults: int) -> list[int]:
    """The numbers on the command line, or the defaults."""
    given = [int(word) for word in sys.argv[1:]]
    return [*given, *defaults[len(given) :]]


def environment(home: Path, url: str = URL) -> dict[str, str]:
    """With the ledger in `home`, a client at `url`, and cached byte code."""
    others = ("PYTHONDONTWRITEBYTECODE", "DKIMCTL_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "DKIMCTL_STATE_DIR": str(home),
        "DKIMCTL_AUTH_URL": url,
        "DKIMCTL_BASE_URL": url,
        "DKIMCTL_CLIENT_ID": "id",
        "DKIMCTL_CLIENT_SECRET": "a-secret-of-usual-length-0815",
    }


def open_ledger(home: Path) -> Ledger:
    return Ledger.open(home / "ledger.db", base_url=URL, client_id="id")


def measure(words: list[str], env: dict[str, str], output: str = os.devnull) -> tuple[float, float]:
    """Wall time in seconds and peak memory in MiB; stdout goes to the file `output`."""
    command = [sys.executable, "-c", MEASURE, output, *words]
    done = subprocess.run(command, env=env, check=True, capture_output=True)
    seconds, kib = map(float, done.stdout.split())
    return seconds, kib / 1024


@contextmanager
def running(*words: object) -> Iterator[str]:
    """The URL of a server; its log is in a file, as nobody reads it meanwhile."""
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen([*map(str, words)], stderr=log)
        try:
            while not (said := re.search(r"serving on (http://\S+)", Path(log.name).read_text())):
                assert process.poll() is None, Path(log.name).read_text()
                time.sleep(0.05)
            yield said[1]
        finally:
            process.terminate()
            process.wait()


def registrations(count: int) -> Iterator[Registration]:
    """Each with another key of 2048 bits."""
    draw = random.Random(1)
    for number in range(count):
        modulus = draw.getrandbits(2048) | 1 << 2047 | 1
        key = base64.b64encode(START + modulus.to_bytes(256) + END).decode()
        domain = f"d{number}.{ZONE}"
        record = DnsRecord(f"s1._domainkey.{domain}", "TXT", f"v=DKIM1; g=*; k=rsa; p={key}")
        yield Registration(
            domain, "s1", 2048, None, 0, False, record, None, code="201", message="created"
        )


FLOOR = """
import sys, yaml
for event in yaml.parse(open(sys.argv[1]), Loader=yaml.CSafeLoader):
    pass
"""
PEER = "import sys, yaml\nyaml.load(open(sys.argv[1]), Loader=yaml.CSafeLoader)\n"
SHAPES = {
    "names": "- d{}.example.com\n",
    "mappings": "- {{sign_domain: d{}.example.com, selector: s2026, key_len: 2048,"
    " start_date: 2027-07-01T00:00+09:00}}\n",
}


def main() -> None:
    (entries,) = arguments(100_000)
    with tempfile.TemporaryDirectory() as home:
        for shape, line in SHAPES.items():
            path = str(Path(home, f"{shape}.yaml"))
            Path(path).write_text("".join(line.format(number) for number in range(entries)))
            check = [TOOL, "register", "--sandbox", "--dry-run", path]
            print(f"{entries} {shape}, at {time.strftime('%H:%M:%S')}")
            for label, words in {
                "floor: events alone": [sys.executable, "-c", FLOOR, path],
                "peer: yaml.load": [sys.executable, "-c", PEER, path],
                "register --dry-run (json)": [*check, "--format", "json"],
                "register --dry-run (table)": check,
            }.items():
                seconds, mib = min(measure(words, environment(Path(home))) for _ in range(3))
                print(f"  {label:28} {seconds:6.2f} s {mib:7.0f} MiB")


if __name__ == "__main__":
    main()
