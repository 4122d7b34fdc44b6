"""A test that is skipped says why, and what to do."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

import needs


def test_a_missing_program_skips_or_fails(monkeypatch):
    monkeypatch.setattr(needs, "which", lambda name: None)
    monkeypatch.delenv("DKIMCTL_REQUIRE_TOOLS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="named is not installed"):
        needs.program("named")
    monkeypatch.setenv("DKIMCTL_REQUIRE_TOOLS", "1")
    with pytest.raises(pytest.fail.Exception, match=r"CONTRIBUTING\.md"):
        needs.program("moto_server")


def test_servers_are_found_with_the_path_of_an_ordinary_user(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/usr/bin:/sbin")
    monkeypatch.setattr(needs, "_POSTGRESQL", tmp_path)
    (tmp_path / "15" / "bin").mkdir(parents=True)
    needs.extend_path()
    path = f"/usr/bin:/sbin:/usr/local/sbin:/usr/sbin:{tmp_path}/15/bin"
    assert needs.os.environ["PATH"].partition(":")[2] == path


@pytest.mark.parametrize("name", ["crontab", "loginctl", "systemctl"])
def test_a_test_never_reaches_the_schedulers_of_the_machine(name):
    assert Path(which(name) or "").parent == Path(needs.__file__).parent / "system"
