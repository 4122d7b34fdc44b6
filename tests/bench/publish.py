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

import pickle
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dkimctl.formats.dns_tools import txt_data
from dkimctl.models import DnsRecord
from load import APEX, TOOL, arguments, environment, measure, open_ledger, registrations

sys.path.append(str(Path(__file__).parents[1] / "support"))
from dns_servers import SECRET, key_file, serving

SIZE = 60_000  # bytes of records in an update
CONFIG = "dns: [{{provider: rfc2136, server: '127.0.0.1:{port}', key_file: key}}]\n"
UPDATES_ALONE = f"""
import pickle, sys
from unittest.mock import MagicMock
from dkimctl.models import Secret
from dkimctl.publishing.plan import Action, Change, NameState, apply_plan
from dkimctl.publishing.rfc2136 import Rfc2136Target
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.addresses import Address
file, port = sys.argv[1:]
tsig = TsigKey("dkim", "hmac-sha256", Secret({SECRET!r}))
target = Rfc2136Target("named", Address("127.0.0.1", int(port)), 3600, lambda: tsig)
changes = [
    Change(key, Action.CREATE, NameState(), key.record.value, 3600, target, "example.com")
    for key in pickle.load(open(file, "rb"))
]
applied = []
apply_plan(changes, applied.append, MagicMock(), print)
assert len(applied) == len(changes), len(applied)
assert not any(result.error for result in applied)
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


def compare(home: Path, count: int) -> dict[str, tuple[float, float]]:
    """Seconds and MiB of each command, with a new named each."""
    home.mkdir()
    registered = [key._replace(enable=True) for key in registrations(count)]
    records = [key.record for key in registered if key.record is not None]
    with open_ledger(home) as ledger:
        ledger.record(registered)
    (home / "registrations").write_bytes(pickle.dumps(registered))
    (home / "names").write_text("".join(f"{record.fqdn} TXT\n" for record in records))
    (home / "empty.yaml").write_text("domains: []\n")
    key = str(key_file(home / "key"))
    env = environment(home) | {"DKIMCTL_CONFIG": str(home / "config.yaml")}
    publish = [TOOL, "publish", "--yes"]
    commands = {
        "start": [*publish, str(home / "empty.yaml")],
        "updates alone": [sys.executable, "-c", UPDATES_ALONE, str(home / "registrations"), "PORT"],
        "dkimctl": publish,
        "dig -f": ["dig", "@127.0.0.1", "-p", "PORT", "-k", key, "-f", str(home / "names")],
        "nsupdate": ["nsupdate", "-k", key, str(home / "script")],
    }
    results = {}
    for name, words in commands.items():
        (home / "zone").write_text(APEX)
        (home / "zone.jnl").unlink(missing_ok=True)
        with serving("named", home / "zone", home, lambda program: program) as server:
            (home / "config.yaml").write_text(CONFIG.format(port=server.port))
            (home / "script").write_text("".join(script(records, server.port)))
            command = [word.replace("PORT", str(server.port)) for word in words]
            results[name] = measure(command, env)
            if name not in ("start", "dig -f"):
                for record in records[:: max(len(records) // 10, 1)]:
                    assert server.ask(record.fqdn) == [record.value.encode()], record.fqdn
    return results


def main() -> None:
    count, repetitions = arguments(10_000, 5)
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
