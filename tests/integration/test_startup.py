"""Commands import only what they need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("httpx", "msgspec", "rich", "keyring", "cryptography", "falcon", "sqlalchemy", "idna",
         "click", "pydantic", "asyncio", "email")  # fmt: skip
IDLE = {"filelock", "dns"}
IMPORTED = """
import sys
sys.argv = sys.argv[1:]
from dkimctl.__main__ import main
try:
    main()
finally:
    names = {name.partition(".")[0] for name in sys.modules}
    sys.stderr.write("imported " + " ".join(sorted(names)))
"""


@pytest.fixture
def imported(cli):
    """The packages that a command line imports."""

    def imported(*words: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", IMPORTED, "dkimctl", *words],
            cwd=cli.home, env=cli.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return set(done.stderr.rpartition("imported ")[2].split())

    return imported


def test_the_version_imports_no_library(imported):
    assert not {"typer", "dataclasses", "yaml", *HEAVY} & imported("--version")


def test_a_plan_and_a_second_run_import_only_yaml(cli, imported):
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, key_len: 2048}\n")
    cli("register", "--sandbox", "one.yaml")
    second = imported("register", "--sandbox", "one.yaml", "--format", "zone")
    assert not {*HEAVY, *IDLE} & second
    plan = imported("register", "--sandbox", "--dry-run", "one.yaml")
    assert not {"hashlib", "dataclasses", *HEAVY, *IDLE} & plan
    plan = imported("register", "--sandbox", "--dry-run", "one.yaml", "--format", "json")
    assert not set(HEAVY) & plan


@pytest.mark.parametrize(
    "words",
    ["show-dns", "rotate --older-than 0d", "rotate --retired --format nsupdate",
     "list --sort-by due", "overview", ""],
)  # fmt: skip
def test_what_reads_the_ledger_imports_no_heavy_library(cli, imported, words):
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, enable: false}\n")
    assert cli("register", "--sandbox", "one.yaml").status == 0
    assert not {"yaml", "jinja2", *HEAVY} & imported(*words.split(), "--sandbox")


@pytest.mark.parametrize("words", ["", "schema specs"])
def test_without_an_account_no_heavy_library_is_imported(imported, words):
    assert not {"yaml", *HEAVY} & imported(*words.split())
