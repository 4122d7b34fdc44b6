"""What `rotate run` shows of its tasks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkimctl.cli.commands.rotate_run import show_report
from dkimctl.cli.options import TableOrJson
from dkimctl.cli.report import Reporter
from dkimctl.errors import ServiceError
from dkimctl.rotation.due import Report, State, Step, Task


@pytest.fixture
def show(capsys, monkeypatch):
    """What is written about these tasks: stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def show(*tasks: Task, fmt=TableOrJson.TABLE, has_targets=False, **options):
        reporter = Reporter()
        reporter.verbose = options.pop("verbose", False)
        reporter.quiet = options.pop("quiet", False)
        session = SimpleNamespace(reporter=reporter, has_dns_targets=has_targets)
        show_report(session, Report(tasks), fmt, None, is_dry=False)
        return capsys.readouterr()

    return show


@pytest.fixture
def unanswered(make_registration):
    """A key of a server that does not answer."""

    def unanswered(number: int, server: str = "192.0.2.1", **fields) -> Task:
        domain = f"d{number}.example"
        reason = f"{domain}: s1._domainkey.{domain} TXT: {server}: timed out"
        error = ServiceError(reason, hint="check the server")
        task = Task(Step.PUBLISH, State.FAILED, make_registration(domain), reason, error=error)
        return task._replace(**fields)

    return unanswered


def test_what_no_target_covers_is_told_also_with_quiet_if_there_are_targets(show, unanswered):
    task = unanswered(1, state=State.BY_HAND, error=None)
    assert "no DNS target has the zone of 1 key: d1.example (selector s1)" in (
        show(task, has_targets=True, quiet=True).err
    )
    assert show(task, quiet=True) == ("", "")
