"""Parts of `doctor` by themselves: requirements, the clock, resolvers, and the order of checks."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from dkimctl.addresses import Address
from dkimctl.cli.commands.doctor import Probe, examine
from dkimctl.cli.doctor_checks import (
    Health,
    Remark,
    Requirement,
    clock_finding,
    library_problems,
    parse_requirement,
    resolver_findings,
)
from dkimctl.cli.report import Reporter
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError
from dkimctl.settings.values import CHECKS
from dns_servers import serving


@pytest.fixture
def session():
    flags = dict.fromkeys((*CHECKS, "profile", "config"))
    return Session({**flags, "sandbox": True, "verbose": False, "quiet": False}, Reporter())


@pytest.mark.parametrize(
    ("line", "requirement"),
    [("typer<0.29,>=0.28", Requirement("typer", "<0.29,>=0.28", "")),
     ("httpx>=0.28", Requirement("httpx", ">=0.28", "")),
     ("falcon>=4.0; extra == 'service'", Requirement("falcon", ">=4.0", "service")),
     ('psycopg[binary]>=3.2; extra == "postgres"', Requirement("psycopg", ">=3.2", "postgres")),
     ("pytest>=8; extra == 'test'", None), ("???", None)],
)  # fmt: skip
def test_a_requirement_is_read(line, requirement):
    assert parse_requirement(line) == requirement


@pytest.mark.parametrize(
    ("installed", "bounds", "extra", "state"),
    [("0.28.1", ">=0.28,<0.29", "", None), ("0.29", ">=0.28,<0.29", "", Health.WRONG),
     ("0.29.0rc1", ">=0.28,<0.29", "", Health.WRONG), ("0.27", ">=0.28", "", Health.WRONG),
     ("4", ">=4.0", "", None), ("3.9", ">=4.0", "service", Health.WARNING),
     (None, ">=4.0", "service", None), (None, ">=4.0", "", Health.WRONG)],
)  # fmt: skip
def test_a_library_is_too_old_too_new_or_missing(installed, bounds, extra, state):
    found = [*library_problems([Requirement("x", bounds, extra)], {"x": installed})]
    assert [one.state for one in found] == ([] if state is None else [state])


@pytest.mark.parametrize(
    ("sent_at", "state"),
    [(1000, Health.OK), (1005, Health.OK), (998, Health.OK), (1040, Health.NOTE),
     (960, Health.NOTE), (1400, Health.WRONG), (600, Health.WRONG), (None, Health.UNKNOWN)],
)  # fmt: skip
def test_the_clock_is_compared(sent_at, state):
    assert clock_finding(sent_at, 999.5, 1001.5).state is state


def named(name: str, *findings: Remark, **more) -> Probe:
    return Probe(name, lambda session: iter(findings), **more)


def test_a_check_that_fails_stops_only_those_that_depend_on_it(session):
    def fail(session):
        yield Remark("b", Health.OK, "so far")
        raise UsageError("no", hint="do")

    def break_(session):
        raise RuntimeError("hunter2")

    checks = [
        Probe("b", fail, also=("b2",)), named("c", Remark("c", Health.OK, ""), needs=("b",)),
        named("d", Remark("d", Health.OK, ""), needs=("c",)), Probe("e", break_),
        named("f", Remark("f", Health.OK, "")),
    ]  # fmt: skip
    found = [*examine(session, offline=False, probes=checks)]
    assert [(one.check, str(one.state)) for one in found] == [
        ("b", "ok"), ("b", "wrong"), ("b2", "not checked"), ("c", "not checked"),
        ("d", "not checked"), ("e", "unknown"), ("f", "ok"),
    ]  # fmt: skip
    assert "hunter2" not in str(found)


def test_a_check_that_hangs_is_left(session):
    waiting = threading.Event()

    def hang(session):
        waiting.wait(60)
        yield Remark("slow", Health.OK, "")

    checks = [Probe("slow", hang, seconds=0.1), named("next", Remark("next", Health.OK, ""))]
    found = [*examine(session, offline=False, probes=checks)]
    waiting.set()
    assert [(one.check, one.state) for one in found] == [
        ("slow", Health.UNKNOWN), ("next", Health.OK)
    ]  # fmt: skip


def test_no_thread_for_a_check_is_unknown(session, monkeypatch):
    monkeypatch.setattr("dkimctl.cli.commands.doctor.start_daemon", lambda work, name: None)
    checks = [named("x", Remark("x", Health.OK, ""))]
    [found] = examine(session, offline=False, probes=checks)
    assert found.state is Health.UNKNOWN


@contextlib.contextmanager
def silent_server():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        yield Address("127.0.0.1", sock.getsockname()[1])


_EXAMPLE = "$TTL 60\n@ SOA ns root 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n"
_ROOT = _EXAMPLE.replace("ns", "ns.example.")


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(_EXAMPLE)
    return path


@pytest.mark.slow
def test_a_resolver_that_refuses_and_one_that_is_silent(zone, tmp_path, needs_tool):
    with serving("named", zone, tmp_path, needs_tool) as server:
        [refused] = resolver_findings([Address("127.0.0.1", server.port)], "example.com")
    assert (refused.state, "REFUSED" in refused.message) == (Health.WRONG, True)
    with silent_server() as address:
        [silent] = resolver_findings([address], "example.com")
    assert silent.state is Health.WRONG
    assert silent.hint


@pytest.mark.slow
def test_a_resolver_that_answers_beside_one_that_does_not(zone, tmp_path, needs_tool):
    (tmp_path / "root.zone").write_text(_ROOT)
    more = f'zone "." {{ type primary; file "{tmp_path / "root.zone"}"; }};'
    with (
        serving("named", zone, tmp_path, needs_tool, more=more) as server,
        silent_server() as no,
    ):
        yes = Address("127.0.0.1", server.port)
        found = [*resolver_findings([no, yes], "mail.example.com")]
    assert [one.state for one in found] == [Health.WARNING, Health.OK, Health.NOTE, Health.OK]
    assert found[-1].message == "mail.example.com is in the zone example.com"
