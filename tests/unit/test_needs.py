"""The line about skipped tests says how many, why, and what to do."""

from __future__ import annotations

import re

import pytest

import needs
from documents import ROOT


def test_missing_programs_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(needs, "which", lambda name: name not in ("named", "dig") and name)
    reasons = ["Skipped: named is not installed"] * 3 + ["Skipped: only on Windows"]
    assert needs.summary(reasons) == (
        "skipped: 3 for missing programs (on Debian: sudo apt install bind9 bind9-dnsutils), "
        "1 for other reasons (pytest -rs names them)"
    )


def test_a_missing_program_of_pypi_is_named_with_its_command(monkeypatch):
    missing = ("moto_server", "schemathesis")
    monkeypatch.setattr(needs, "which", lambda name: name not in missing and name)
    assert needs.summary(["Skipped: moto_server is not installed"]) == (
        "skipped: 1 for missing programs "
        "(pipx install 'moto[route53,server]'; pipx install schemathesis)"
    )


def test_a_missing_namespace_has_a_remedy():
    assert needs.summary([f"Skipped: {needs.NO_NAMESPACE}: EPERM"]) == (
        "skipped: 1 for a missing namespace (run as root, or allow user namespaces)"
    )


def test_nothing_is_said_if_nothing_was_skipped():
    assert needs.summary([]) == ""


def test_a_missing_program_skips_or_fails(monkeypatch):
    monkeypatch.delenv("DKIMCTL_REQUIRE_TOOLS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        needs.program("no-such-program")
    monkeypatch.setenv("DKIMCTL_REQUIRE_TOOLS", "1")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        needs.program("no-such-program")


def test_servers_are_found_with_the_path_of_an_ordinary_user(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/usr/bin:/sbin")
    monkeypatch.setattr(needs, "_POSTGRESQL", tmp_path)
    (tmp_path / "15" / "bin").mkdir(parents=True)
    needs.extend_path()
    path = f"/usr/bin:/sbin:/usr/local/sbin:/usr/sbin:{tmp_path}/15/bin"
    assert needs.os.environ["PATH"] == path


def test_ci_installs_all_packages_that_have_the_programs():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    packages = re.search(r'^packages="([^"]*)"', script, re.MULTILINE)[1].split()
    assert needs.PACKAGES.keys() == {*packages} - {"python3-venv"}
