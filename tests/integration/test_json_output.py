"""The JSON of commands, field by field: docs/ci.md describes it, tests/fixtures/output has it.

With DKIMCTL_RENEW=1 in the environment, the stored files are written anew.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from documents import PAGES, ROOT
from lives import PRIMARY

STORED = ROOT / "tests" / "fixtures" / "output"
CONFIG = "dns: [{{provider: rfc2136, server: {server}, key_file: {key_file}, profiles: [sandbox]}}]"
SPECS = """\
- {sign_domain: a.example.com, selector: s1, key_len: 2048}
- {sign_domain: b.example.com, selector: s1, key_len: 1024, enable: false}
"""
# What differs from run to run, and what stands for it in the stored files.
CHANGING = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)": "TIME",
    r"\bp=[A-Za-z0-9+/=]+": "p=KEY",
    r"/\S*/(tsig\.key)": r"\1",
}
# In this order: each command finds what those before it have left.
COMMANDS = [
    ("register", ["register", "specs.yaml"], 0),
    ("rotate-run", ["rotate", "run", "--dry-run"], 1),
    ("publish", ["publish", "a.example.com", "--yes", "--wait", "10s"], 0),
    ("check-dns", ["check-dns"], 1),
    ("list", ["list"], 0),
]


def same_each_time(value: object) -> object:
    if isinstance(value, list):
        return [same_each_time(item) for item in value]
    if isinstance(value, dict):
        return {key: same_each_time(item) for key, item in value.items()}
    if isinstance(value, str):
        for pattern, text in CHANGING.items():
            value = re.sub(pattern, text, value)
    return value


def fields(value: object) -> set[str]:
    """The names of all fields; those of `summary` are words of other lists."""
    if isinstance(value, list):
        return set().union(*map(fields, value))
    if isinstance(value, dict):
        below = [item for key, item in value.items() if key != "summary"]
        return {*value}.union(*map(fields, below))
    return set()


def test_json_is_what_is_stored_field_by_field(cli, life):
    cli = life.network.inside(cli)
    cli.environment["DKIMCTL_PROFILE"] = "sandbox"
    key_file = cli.home / "tsig.key"
    key_file.write_text(life.network.key_file.read_text())
    key_file.chmod(0o600)
    cli.write("config.yaml", CONFIG.format(server=PRIMARY, key_file=key_file))
    cli.environment["DKIMCTL_CONFIG"] = "config.yaml"
    cli.write("specs.yaml", SPECS)
    for name, words, status in COMMANDS:
        done = cli(*words, "--format", "json")
        assert done.status == status, done
        printed = {"stdout": done.json, "stderr": json.loads(done.err.splitlines()[-1])}
        path = STORED / f"{name}.json"
        if os.environ.get("DKIMCTL_RENEW"):
            path.write_text(json.dumps(same_each_time(printed), indent=2) + "\n")
        assert same_each_time(printed) == json.loads(path.read_text(encoding="utf-8")), name


@pytest.mark.parametrize("path", sorted(STORED.iterdir()), ids=lambda path: path.stem)
def test_every_field_is_described(path):
    described = set(re.findall(r"`(\w+)`", PAGES["ci.md"]))
    printed = json.loads(path.read_text(encoding="utf-8"))
    assert fields([printed["stdout"], printed["stderr"]]) <= described
