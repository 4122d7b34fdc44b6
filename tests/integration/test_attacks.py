"""What `dkimctl serve` still does while many connections stand that give nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import attack

COUNT = 300
WAIT = 10.0  # seconds; without the bounds 30, with them far below 1 where the machine is free
MEMORY = 300.0  # MiB

if not sys.platform.startswith("linux"):
    pytest.skip("needs /proc", allow_module_level=True)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", [name for name in attack.KINDS if name != "keep-alive"])
def test_newcomers_are_answered(tmp_path: Path, name: str, workers: str) -> None:
    with attack.serving(tmp_path, "--workers", workers) as (pid, address):
        kind = attack.KINDS[name](attack.issue_token(tmp_path, address))
        figures = attack.attack(pid, address, kind, COUNT, 4)
    assert figures.newcomer < WAIT
    assert figures.memory < MEMORY
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_clients_that_keep_their_connections_are_answered(tmp_path: Path, workers: str) -> None:
    with attack.serving(tmp_path, "--workers", workers) as (pid, address):
        kind = attack.KINDS["keep-alive"]("")
        figures = attack.attack(pid, address, kind, COUNT, 4)
    assert figures.answers > COUNT
    assert (figures.unanswered, figures.closed, figures.standing) == (0, 0, COUNT)
