"""What `dkimctl serve` still does while many connections stand that give nothing."""

from __future__ import annotations

import sys

import pytest

import attack
from processes import ServeProcess

COUNT = 300
WAIT = 10.0  # seconds; without the bounds 30, with them far below 1 where the machine is free
MEMORY = 300.0  # MiB

if not sys.platform.startswith("linux"):
    pytest.skip("needs /proc", allow_module_level=True)


@pytest.fixture(params=["1", "2"])
def service(request, cli):
    service = ServeProcess(cli, "--workers", request.param)
    yield service
    service.stop()
    assert "Traceback" not in service.said


@pytest.mark.parametrize("name", [name for name in attack.KINDS if name != "keep-alive"])
def test_newcomers_are_answered(service: ServeProcess, name: str) -> None:
    figures = attack.attack(service, name, COUNT, 4)
    assert figures.newcomer < WAIT
    assert figures.memory < MEMORY


def test_clients_that_keep_their_connections_are_answered(service: ServeProcess) -> None:
    figures = attack.attack(service, "keep-alive", COUNT, 4)
    assert figures.answers > COUNT
    assert (figures.unanswered, figures.closed, figures.standing) == (0, 0, COUNT)
