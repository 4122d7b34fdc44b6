"""Measure publishing 10,000 records into one zone by updates, compared with nsupdate.

Run: python tests/bench/publish.py [RECORDS [REPETITIONS]]

A named on loopback gets the same records, signed with the same key, into an empty zone each time.
"dkimctl" is `dkimctl publish --yes`: it reads the ledger, finds the zone, reads each name, plans,
shows the plan, makes the changes, and reads each name again. "updates alone" makes given changes.
nsupdate gets a finished script of updates as large as a message may be, with the prerequisites that
ours have. `dig -f` reads the same names. "start" is `dkimctl publish` with a
selection that matches nothing. Everything is timed as a command, from start to end.
"""

from __future__ import annotations

import os
import pickle
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dkimctl.formats.renderer import txt_data
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, Registration
from show_dns import APEX, measure, registrations

sys.path.append(str(Path(__file__).parents[1] / "support"))
from dns_servers import SECRET, Server, key_file, serving

SIZE = 60_000  # bytes of records in an update
URL = "http://127.0.0.1:9"
CONFIG = "dns: [{{provider: rfc2136, server: '127.0.0.1:{port}', key_file: key}}]\n"
UPDATES_ALONE = """
import pickle, sys
from dkimctl.models import Secret
from dkimctl.publishing.plan import apply_plan
from dkimctl.publishing.plan import Action, Change, NameState
from dkimctl.publishing.rfc2136 import Rfc2136Target
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.addresses import Address
file, port, secret = sys.argv[1:]
key = TsigKey("dkim", "hmac-sha256", Secret(secret))
target = Rfc2136Target("named", Address("127.0.0.1", int(port)), 3600, lambda: key)
changes = [
    Change(one, Action.CREATE, NameState(), one.record.value, 3600, target, "example.com")
    for one in pickle.load(open(file, "rb"))
]
applied = []
apply_plan(changes, applied.append)
assert len(applied) == len(changes), len(applied)
assert not any(one.error for one in applied)
"""


def script(records: list[DnsRecord], port: int) -> Iterator[str]:
    """The input of nsupdate."""
    yield f"server 127.0.0.1 {port}\nzone example.com.\n"
    size = 0
    for record in records:
        yield f"prereq nxrrset {record.fqdn}. TXT\nprereq nxrrset {record.fqdn}. CNAME\n"
        yield f"update add {record.fqdn}. 3600 TXT {txt_data(record.value)}\n"
        size += len(record.value) + 3 * (len(record.fqdn) + 12)
        if size > SIZE:
            yield "send\n"
            size = 0
    yield "send\n"


def check(server: Server, records: list[DnsRecord]) -> None:
    for record in records[:: max(len(records) // 10, 1)]:
        assert server.ask(record.fqdn) == [record.value.encode()], record.fqdn


def commands(home: Path, port: int) -> dict[str, list[str]]:
    """What to time, each with a new named."""
    publish = [str(Path(sys.executable).with_name("dkimctl")), "publish", "--yes"]
    dig = ["dig", "@127.0.0.1", "-p", str(port), "-k", str(home / "key")]
    alone = [sys.executable, "-c", UPDATES_ALONE, str(home / "registrations"), str(port), SECRET]
    return {
        "start": [*publish, str(home / "empty.yaml")],
        "updates alone": alone,
        "dkimctl": publish,
        "dig -f": [*dig, "-f", str(home / "names")],
        "nsupdate": ["nsupdate", "-k", str(home / "key"), str(home / "script")],
    }


def prepare(home: Path, registered: list[Registration]) -> list[DnsRecord]:
    """Write what does not depend on the port; returns the records."""
    home.mkdir()
    records = [one.record for one in registered if one.record is not None]
    with Ledger.open(home / "ledger.db", base_url=URL, client_id="id") as ledger:
        ledger.record(registered)
    (home / "registrations").write_bytes(pickle.dumps(registered))
    (home / "names").write_text("".join(f"{record.fqdn} TXT\n" for record in records))
    (home / "empty.yaml").write_text("domains: []\n")
    key_file(home / "key")
    return records


def compare(home: Path, count: int) -> dict[str, tuple[float, float]]:
    """Seconds and MiB of each command, with a new named each."""
    records = prepare(home, [one._replace(enable=True) for one in registrations(count)])
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "HOME": str(home),
        "DKIMCTL_STATE_DIR": str(home),
        "DKIMCTL_CONFIG": str(home / "config.yaml"),
        "DKIMCTL_AUTH_URL": URL,
        "DKIMCTL_BASE_URL": URL,
        "DKIMCTL_CLIENT_ID": "id",
    }
    results = {}
    for name in commands(home, 0):
        (home / "zone").write_text(APEX)
        (home / "zone.jnl").unlink(missing_ok=True)
        with serving("named", home / "zone", home, lambda program: program) as server:
            (home / "config.yaml").write_text(CONFIG.format(port=server.port))
            (home / "script").write_text("".join(script(records, server.port)))
            results[name] = measure(commands(home, server.port)[name], env)
            if name not in ("start", "dig -f"):
                check(server, records)
    return results


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        runs = [compare(Path(directory) / str(run), count) for run in range(repetitions)]
    seconds = {name: statistics.median(run[name][0] for run in runs) for name in runs[0]}
    memory = max(run["dkimctl"][1] for run in runs)
    print(f"  {count} records, medians of {repetitions} runs:")
    for name, median in seconds.items():
        print(f"  {name}: {median:.2f} s")
    alone, whole = seconds["updates alone"], seconds["dkimctl"]
    both = seconds["dig -f"] + seconds["nsupdate"]
    print(f"  updates alone / nsupdate: {alone / seconds['nsupdate']:.2f}")
    print(f"  dkimctl / nsupdate: {whole / seconds['nsupdate']:.2f}")
    print(f"  dkimctl / dig -f and nsupdate: {whole / both:.2f}")
    print(f"  memory of dkimctl: {memory:.0f} MiB")


if __name__ == "__main__":
    main()
