"""`dkimctl schema`, and files of `dkimctl init` that name their schema."""

from __future__ import annotations

from documents import ROOT

URLS = ("--auth-url", "https://auth.example.com", "--base-url", "https://api.example.com")
PACKAGES = {"specs": "specs", "config": "settings"}


def test_it_prints_each_schema_and_the_files_of_init_name_them(cli):
    files = {"config": "config.yaml", "specs": "domains.yaml"}
    words = ("--config", files["config"], "--output", files["specs"], "--dns", "hand", *URLS)
    assert cli("init", *words, "--client-id", "me", "--domain", "example.com").status == 0
    for schema, package in PACKAGES.items():
        done = cli("schema", schema)
        stored = (ROOT / "dkimctl" / package / "schema.json").read_text(encoding="utf-8")
        assert (done.status, done.out, done.err) == (0, stored, "")
        first, _, _ = (cli.home / files[schema]).read_text().partition("\n")
        assert first.startswith("# yaml-language-server: $schema=https://")
        assert first.endswith(f"/dkimctl/{package}/schema.json")
    assert cli("register", "--dry-run", "--config", "config.yaml", "domains.yaml").status == 0


def test_what_has_no_schema_is_a_usage_error(cli):
    for words in (["spec"], []):
        done = cli("schema", *words)
        assert (done.status, done.out) == (2, "")
