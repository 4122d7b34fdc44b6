"""What `rotate run` shows of its tasks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkimctl.cli.commands.rotate_run import show_report
from dkimctl.cli.options import TableOrJson
from dkimctl.cli.report import Reporter
from dkimctl.dns.verdicts import Urgency
from dkimctl.errors import ServiceError
from dkimctl.rotation.due import Report, State, Step, Task


@pytest.fixture
def task_of(make_registration):
    """A record to be published, of a server that does not answer."""

    def task_of(number: int, state=State.FAILED, *, server="192.0.2.1", **fields) -> Task:
        domain = f"d{number}.example"
        reason = f"{domain}: s1._domainkey.{domain} TXT: {server}: timed out"
        error = ServiceError(reason, hint="check the server") if state is State.FAILED else None
        return Task(Step.PUBLISH, state, make_registration(domain), reason, error=error)._replace(
            **fields
        )

    return task_of


@pytest.fixture
def show(capsys, monkeypatch):
    """What is written about tasks: stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def show(*tasks: Task, errors=(), has_targets=False, **options):
        session = SimpleNamespace(reporter=Reporter(**options), has_dns_targets=has_targets)
        report = Report([*tasks], errors=list(errors))
        show_report(session, report, TableOrJson.TABLE, None, is_dry=False)
        return capsys.readouterr()

    return show


def test_keys_of_one_cause_are_one_row(show, task_of):
    dead = [task_of(number) for number in range(500)]
    shown = show(*dead, task_of(500, server="192.0.2.2"))
    assert shown.out.splitlines() == [
        "DOMAIN        SELECTOR  STEP     STATE",
        "500 keys      -         publish  failed",
        "  d0.example (selector s1), d1.example (selector s1), d10.example (selector s1),",
        "  d100.example (selector s1), d101.example (selector s1), … and 495 more",
        "  DOMAIN: FQDN TXT: 192.0.2.1: timed out",
        "  check the server",
        "d500.example  s1        publish  failed",
        "  d500.example: s1._domainkey.d500.example TXT: 192.0.2.2: timed out",
        "  check the server",
    ]
    assert shown.err == "dkimctl: publish: failed 501\n"
    assert show(*dead, verbose=True).out.count("check the server") == 500


def test_urgent_keys_come_first_in_a_row_of_their_own(show, task_of):
    shown = show(task_of(1), task_of(2, State.WAITING, urgency=Urgency.SOON), task_of(3))
    rows = [line.split()[0] for line in shown.out.splitlines() if not line.startswith(" ")]
    assert rows == ["DOMAIN", "d2.example", "2"]
    assert "warning: signing starts soon, but DNS is not ready: 1 (d2.example" in shown.err
    assert "hint: publish the records: `dkimctl show-dns d2.example --format nsupdate" in shown.err
    shown = show(task_of(1, urgency=Urgency.SOON), task_of(2))
    assert "failed, URGENT" in shown.out
    assert " keys" not in shown.out


def test_what_failed_is_shown_also_with_quiet(show, task_of):
    shown = show(task_of(1), errors=[ServiceError("the service is down", hint="wait")], quiet=True)
    assert "d1.example" in shown.out
    assert "error: the service is down\n" in shown.err


def test_what_no_target_covers_is_shown_also_with_quiet_if_there_are_targets(show, task_of):
    task = task_of(1, State.BY_HAND)
    shown = show(task, has_targets=True, quiet=True)
    assert "no DNS target has the zone of 1 key: d1.example (selector s1)" in shown.err
    assert show(task, quiet=True) == ("", "")
    record = task.registration.record
    assert f"  add the TXT record {record.fqdn}\n{record.value}\n" in show(task).out


def test_what_stands_in_the_way_is_explained_by_publish(show, task_of):
    told = show(task_of(1, State.BLOCKED)).err
    assert "what to do about it: `dkimctl publish d1.example --dry-run`" in told
