"""`dkimctl schema`, and files of `dkimctl init` that name their schema."""

from __future__ import annotations

import pytest

from dkimctl.cli.commands.schema import Schema, modeline
from documents import ROOT


@pytest.mark.parametrize(
    ("schema", "package"), [(Schema.SPECS, "specs"), (Schema.CONFIG, "settings")]
)
def test_it_prints_each_schema(cli, schema, package):
    done = cli("schema", schema)
    stored = (ROOT / "dkimctl" / package / "schema.json").read_text(encoding="utf-8")
    assert (done.status, done.out, done.err) == (0, stored, "")


@pytest.mark.parametrize("words", [["spec"], []])
def test_what_has_no_schema_is_a_usage_error(cli, words):
    done = cli("schema", *words)
    assert (done.status, done.out) == (2, "")


def test_what_described_outputs_is_said_to_be_removed(cli):
    done = cli("schema", "output", "list")
    assert (done.status, done.out) == (2, "")
    assert "docs/ci.md describes the JSON that commands print" in done.err


def test_the_files_of_init_name_their_schema(cli):
    urls = ["--auth-url", "https://auth.example.com", "--base-url", "https://api.example.com"]
    words = ["--client-id", "me", "--domain", "example.com", "--dns", "hand"]
    done = cli("init", "--config", "config.yaml", "--output", "domains.yaml", *urls, *words)
    assert done.status == 0, done.err
    for name, schema in (("config.yaml", Schema.CONFIG), ("domains.yaml", Schema.SPECS)):
        assert (cli.home / name).read_text().startswith(modeline(schema))
    assert cli("register", "--dry-run", "--config", "config.yaml", "domains.yaml").status == 0
