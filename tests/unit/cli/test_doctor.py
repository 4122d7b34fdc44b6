"""Parts of `doctor` by themselves: requirements, the clock, resolvers, and the order of checks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from importlib.metadata import PackageNotFoundError

import pytest

from dkimctl.addresses import Address
from dkimctl.cli.commands.doctor import Probe, examine
from dkimctl.cli.doctor_checks import (
    Health,
    Remark,
    check_libraries,
    clock_finding,
    library_problem,
    report_remarks,
    resolver_remarks,
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
    ("line", "installed", "state"),
    [("x<0.29,>=0.28", "0.28.1", None), ("x<0.29,>=0.28", "0.29", Health.WRONG),
     ("x>=0.28,<0.29", "0.29.0rc1", Health.WRONG), ("x>=0.28", "0.27", Health.WRONG),
     ("x>=4.0", "4", None), ("x>=4.0", None, Health.WRONG),
     ("x>=4.0; extra == 'service'", "3.9", Health.WARNING),
     ('x[binary]>=4.0; extra == "postgres"', None, None),
     ("x>=4.0; extra == 'test'", "3.9", None)],
)  # fmt: skip
def test_a_library_is_too_old_too_new_or_missing(line, installed, state):
    problem = library_problem(line, {"x": installed}.get)
    assert (problem and problem.state) == state


def test_without_the_metadata_of_a_package_no_library_is_called_missing(session, monkeypatch):
    def fail(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("dkimctl.cli.doctor_checks.requires", fail)
    [found] = check_libraries(session)
    assert found == Remark(Health.UNKNOWN, "dkimctl is not installed as a package")


@pytest.mark.parametrize(
    ("sent_at", "state"),
    [(1000, Health.OK), (1005, Health.OK), (998, Health.OK), (1040, Health.NOTE),
     (960, Health.NOTE), (1400, Health.WRONG), (600, Health.WRONG), (None, Health.UNKNOWN)],
)  # fmt: skip
def test_the_clock_is_compared(sent_at, state):
    assert clock_finding(sent_at, 999.5, 1001.5).state is state


def resolver_remarks_of(*arguments) -> list[Remark]:
    return asyncio.run(resolver_remarks(*arguments))


def named(name: str, *findings: Remark, **more) -> Probe:
    return Probe(name, lambda session: iter(findings), **more)


def test_a_check_that_fails_stops_only_those_that_depend_on_it(session):
    def fail(session):
        yield Remark(Health.OK, "so far")
        raise UsageError("no", hint="do")

    def break_(session):
        raise RuntimeError("hunter2")

    checks = [
        Probe("b", fail, also=("b2",)), named("c", Remark(Health.OK, ""), needs=("b",)),
        named("d", Remark(Health.OK, ""), needs=("c",)), Probe("e", break_),
        named("f", Remark(Health.OK, "")),
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
        yield Remark(Health.OK, "")

    checks = [Probe("slow", hang, seconds=0.1), named("next", Remark(Health.OK, ""))]
    found = [*examine(session, offline=False, probes=checks)]
    waiting.set()
    assert [(one.check, one.state) for one in found] == [
        ("slow", Health.UNKNOWN), ("next", Health.OK)
    ]  # fmt: skip


def test_no_thread_for_a_check_is_unknown(session, monkeypatch):
    monkeypatch.setattr("dkimctl.cli.commands.doctor.start_daemon", lambda work, name: None)
    checks = [named("x", Remark(Health.OK, ""))]
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
        [refused] = resolver_remarks_of([Address("127.0.0.1", server.port)], "example.com")
    assert (refused.state, "REFUSED" in refused.message) == (Health.WRONG, True)
    with silent_server() as address:
        [silent] = resolver_remarks_of([address], "example.com")
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
        found = resolver_remarks_of([no, yes], "mail.example.com")
    assert [one.state for one in found] == [Health.WARNING, Health.OK, Health.NOTE, Health.OK]
    assert found[-1].message == "mail.example.com is in the zone example.com"


_PERMITTED = """$TTL 60
@ SOA ns.example. root 1 3600 600 86400 60
@ NS ns.example.
@ MX 10 mx
mx A 192.0.2.1
no-mx A 192.0.2.2
null MX 0 .
text TXT "no mail"
example.com._report._dmarc TXT "v=DMARC1"
"""
_DMARC = {
    "@": '"v=DMARC1; p=none; " "rua=mailto:dmarc@example.com!10m, mailto:all@reports.test"',
    "own": "v=DMARC1;rua=mailto:dmarc@own.example.com",
    "quiet": "v=DMARC1; p=none; rua=https://example.com/",
    "null": "v=DMARC1; rua=MAILTO:d%6Darc@null.reports.test",
    "silent": "v=DMARC1; rua=mailto:dmarc@text.reports.test",
    "foreign": "v=DMARC1; rua=mailto:dmarc@no-mx.reports.test",
    "odd": "v=DMARC1; rua=mailto:nobody , mailto:\\027[31m@b..",
    "list": "v=DMARC1; rua=mailto:a@example.com; rua=x",
    "other": "v=DMARC10; rua=mailto:a@other.test",
}  # fmt: skip


@pytest.mark.slow
def test_where_dmarc_reports_go_and_whether_they_arrive(zone, tmp_path, needs_tool):
    """As receivers find it: the record of the domain, or of the highest name above; permissions."""
    lines = ["mx A 192.0.2.1", "@ MX 10 mx", "own A 192.0.2.3"]
    for name, value in _DMARC.items():
        at = "_dmarc" if name == "@" else f"_dmarc.{name}"
        lines.append(f"{at} TXT {value if value[0] == chr(34) else chr(34) + value + chr(34)}")
    zone.write_text(_EXAMPLE + "\n".join([*lines, '_dmarc.two TXT "v=DMARC1"',
                                          '_dmarc.two TXT "v=DMARC1; p=none"', ""]))  # fmt: skip
    (tmp_path / "reports.zone").write_text(_PERMITTED)
    (tmp_path / "root.zone").write_text(_ROOT)
    more = "".join(
        f'zone "{name}" {{ type primary; file "{tmp_path / file}"; }};'
        for name, file in [(".", "root.zone"), ("reports.test", "reports.zone")]
    )
    names = ["deep.a.b", "own", "quiet", "null", "silent", "foreign", "odd", "list", "other", "two"]
    domains = ["example.com", *(f"{name}.example.com" for name in names), "example.org"]
    with serving("named", zone, tmp_path, needs_tool, more=more) as server:
        yes = Address("127.0.0.1", server.port)
        looked, *found = asyncio.run(report_remarks([yes], domains))
    assert looked.message == "looked at 12 of 12 domains"
    said = {one.message.replace(".example.com", ""): one for one in found}
    lost = "may not come, since receivers may ignore a DMARC record: "
    takes = "takes no mail, by its MX and address records"
    states = {text: str(one.state) for text, one in said.items()}
    assert states == {
        "reports about 3 domains (example.com, deep.a.b, other) go to dmarc@example.com": "ok",
        "reports about 3 domains (example.com, deep.a.b, other) go to all@reports.test": "ok",
        "reports about 1 domain (own) go to dmarc@own": "ok",
        "no rua: receivers send no reports about 2 domains (quiet, example.org)": "note",
        "reports about 1 domain (null) do not reach dmarc@null.reports.test: "
        f"null.reports.test {takes}": "warning",
        "reports about 1 domain (silent) do not reach dmarc@text.reports.test: "
        f"text.reports.test {takes}": "warning",
        "reports about 1 domain (foreign) do not reach dmarc@no-mx.reports.test: "
        "no-mx.reports.test does not say that it takes those of others": "warning",
        "reports about 1 domain (odd) do not reach nobody: it is not an email address": "warning",
        "reports about 1 domain (odd) do not reach \\x1b[31m@b..: "
        "it is not an email address": "warning",
        f"reports about 1 domain (list) {lost}its tag rua= occurs twice": "warning",
        f"reports about 1 domain (two) {lost}there are several at _dmarc.two": "warning",
    }  # fmt: skip
    hints = "\n".join(one.hint for one in found)
    assert "foreign.example.com._report._dmarc.no-mx.reports.test" in hints
    assert "_dmarc.quiet.example.com, _dmarc.example.org" in hints
    with silent_server() as no:
        some, unknown = asyncio.run(report_remarks([no], [f"d{n}.test" for n in range(101)]))
    assert some.message == "looked at 100 of 101 domains"
    assert (unknown.state, "100 domains (d0.test" in unknown.message) == (Health.UNKNOWN, True)
