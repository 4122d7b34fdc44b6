"""What `rotate run` shows of its tasks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkimctl.cli.commands.rotate_run import show_report
from dkimctl.cli.options import TableOrJson
from dkimctl.cli.report import Reporter
from dkimctl.rotation.due import Report, State, Step, Task


@pytest.fixture
def show(capsys, make_registration):
    """What is written about a record to be published: stdout and stderr."""

    def show(state: State, *, quiet=False, has_targets=False):
        session = SimpleNamespace(reporter=Reporter(quiet=quiet), has_dns_targets=has_targets)
        task = Task(Step.PUBLISH, state, make_registration("d1.example"), "there is a CNAME")
        show_report(session, Report([task]), TableOrJson.TABLE, None, is_dry=False)
        return capsys.readouterr()

    return show


def test_what_no_target_covers_is_told_also_with_quiet_if_there_are_targets(show):
    told = show(State.BY_HAND, has_targets=True, quiet=True).err
    assert "no DNS target has the zone of 1 key: d1.example (selector s1)" in told
    assert show(State.BY_HAND, quiet=True) == ("", "")


def test_what_stands_in_the_way_is_explained_by_publish(show):
    told = show(State.BLOCKED).err
    assert "what to do about it: `dkimctl publish d1.example --dry-run`" in told
