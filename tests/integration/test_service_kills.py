"""Killed, without its database, or with a full disk, the service loses and doubles nothing.

The long form is tests/bench/service_crash.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import service_crash
from dkimctl.service.location import Location
from postgresql import serving_postgresql
from processes import Cli, ServeProcess
from service_crash import Load, kill_workers, problems

if not sys.platform.startswith("linux"):
    pytest.skip("needs workers, and /proc", allow_module_level=True)

KILLS = 6


@contextmanager
def serving(cli: Cli, location: Location, *words: object) -> Iterator[ServeProcess]:
    data = location if isinstance(location, Path) else location.text
    service = ServeProcess(cli, "--data", data, *words)
    try:
        yield service
    finally:
        service.stop()
    assert "Traceback" not in service.said


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, cli) -> Location:
    if request.param == "sqlite":
        return cli.home / "service.db"
    return request.getfixturevalue("postgresql_database")


def test_clients_that_register_the_same_at_once_get_each_once(cli, location):
    names = [f"d{number}.example" for number in range(40)]
    with serving(cli, location, "--workers", 2) as service:
        answers = service_crash.race(service.url, location, names)
    assert service_crash.race_problems(answers, names, location) == []


def test_workers_that_are_killed_lose_nothing(cli, location):
    with serving(cli, location, "--workers", 2) as service, Load(service.url, location) as load:
        kill_workers(service.pid, load, KILLS, seed=1)
    assert load.failures > 0
    assert problems(load, location) == []


def test_a_database_that_restarts_and_crashes_loses_nothing(cli, needs_tool):
    with serving_postgresql(needs_tool, fsync="on") as server:
        location = server.create_database("service")
        with serving(cli, location, "--workers", 2) as service, Load(service.url, location) as load:
            for crash in (False, True):
                load.wait_for(20)
                server.stop(crash=crash)
                load.wait_for_failure()
                server.start()
            load.wait_for(20)
        assert problems(load, location) == []


def test_a_disk_that_is_full_for_a_while_loses_nothing(cli, small_disk):
    location = small_disk.path / "data" / "service.db"
    location.parent.mkdir(mode=0o700)
    with serving(cli, location) as service, Load(service.url, location) as load:
        load.wait_for(20)
        small_disk.fill(leaving=100_000)
        load.wait_for_failure()
        time.sleep(1)
        small_disk.relieve()
        load.wait_for(20)
    assert problems(load, location) == []
