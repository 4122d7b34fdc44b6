"""A run of `publish` with a target in memory: streams, exit codes, and what is changed."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from dkimctl.cli.commands.publish import show_access
from dkimctl.cli.publication import PublishOptions, publish_records
from dkimctl.cli.report import Reporter
from dkimctl.errors import DnsRefused, Interrupted, NegativeAnswer, ServiceError, UsageError
from dkimctl.formats.renderer import PublicationFormat
from dkimctl.publishing.plan import Access, NameState
from dkimctl.publishing.targets import ZoneAccess
from dns_targets import FakeTarget

JSON, MARKDOWN = PublicationFormat.JSON, PublicationFormat.MARKDOWN
TABLE = PublicationFormat.TABLE
YES = {"yes": True}


@pytest.fixture
def registrations(make_registration):
    return [make_registration(name) for name in ("a.example.com", "b.example.com")]


@pytest.fixture
def publish(capsys):
    """Publish; gives the exit code, stdout and stderr."""

    def run(target, registrations, *, as_json=False, **options):
        reporter = Reporter(as_json=as_json)
        session = SimpleNamespace(
            reporter=reporter, config=SimpleNamespace(rotation=None),
            open_ledger=lambda **_: MagicMock(domains=lambda **_: ()),
        )  # fmt: skip
        chosen = PublishOptions(["example.com"], **options)
        code = publish_records(session, registrations, [target], chosen)
        reporter.close()
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "options",
    [{"dry_run": True, "yes": True}, {"dry_run": True, "wait": "5m"}, {"fmt": JSON},
     {"fmt": MARKDOWN}, {"yes": True, "wait": "soon"}],
)  # fmt: skip
def test_options_that_do_not_go_together(options):
    with pytest.raises(UsageError):
        PublishOptions(**options).require_sound()


def test_what_no_option_replaces_has_other_advice(publish, registrations):
    state = NameState(delegated="a.example.com")
    advice = "for a.example.com, add a DNS target that has that"
    target = FakeTarget("example.com", names={"s1._domainkey.a.example.com": state})
    code, _, err = publish(target, registrations, **YES)
    assert (code, advice in err, "--replace" in err) == (1, True, False)


@pytest.mark.parametrize("what", ["a.test", "apply a.test"])
@pytest.mark.parametrize(
    ("kind", "expected"), [(ServiceError, 4), (DnsRefused, 3), (NegativeAnswer, 1)]
)
def test_a_failure_is_shown_and_decides_the_exit_code(
    publish, make_registration, kind, expected, what
):
    keys = [("a.test", "s1"), ("a.test", "s2"), ("b.test", "s1")]
    errors = {what: kind("ns.test refused", hint="check it")}
    target = FakeTarget("a.test", "b.test", errors=errors)
    code, _, err = publish(target, [make_registration(*key) for key in keys], **YES)
    assert code == expected
    assert err.count("error:") == 1
    assert "2 records (s1._domainkey.a.test, s2._domainkey.a.test): ns.test refused" in err
    assert "hint: check it" in err
    assert target.names.keys() == {"s1._domainkey.b.test"}


def test_the_next_command_keeps_what_decides_the_changes(publish, registrations):
    target = FakeTarget("example.com")
    code, _, err = publish(target, registrations, dry_run=True, replace=True)
    assert (code, target.names) == (1, {})
    assert "next: `dkimctl publish example.com --replace`" in err


def test_interrupted_while_it_reads_nothing_is_changed(publish, registrations):
    target = FakeTarget("example.com")
    target.read = lambda zone, names: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(1)
    with pytest.raises(Interrupted) as caught:
        publish(target, registrations, **YES)
    assert "nothing was changed" in caught.value.hint
    assert target.names == {}


def test_a_signal_ends_it_with_all_told(publish, make_registration, capsys):
    registrations = [make_registration("example.com", f"s{number}") for number in range(1200)]

    def stop(change):
        if len(target.applied) == 10:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.5)  # the main thread handles it

    target = FakeTarget("example.com", before_change=stop)
    with pytest.raises(Interrupted) as caught:
        publish(target, registrations, **YES)
    made = len(target.applied)
    assert made < 1200
    assert caught.value.message == f"interrupted: {made} of 1200 changes made"
    err = capsys.readouterr().err
    assert f"created in DNS {made}, to create {1200 - made}" in err


def test_the_second_signal_does_not_wait_for_a_silent_server(publish, registrations, capsys):
    def stop(change):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)  # the main thread handles it, and says so
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(60)

    release = threading.Event()
    target = FakeTarget("example.com", before_change=stop)
    with pytest.raises(Interrupted) as caught:
        publish(target, registrations[:1], **YES)
    release.set()
    assert "0 of 1 change made, perhaps more" in caught.value.message
    assert "to continue" in caught.value.hint
    assert "Ctrl-C again ends at once" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told_after_the_changes(publish, registrations, tmp_path):
    target = FakeTarget("example.com")
    missing = tmp_path / "none" / "plan.json"
    code, _, err = publish(target, registrations, fmt=JSON, output=missing, **YES)
    assert code == 4
    assert "cannot write" in err
    assert "created in DNS 2" in err


def test_where_no_table_is_shown_what_is_blocked_has_its_reason(publish, registrations):
    names = {"s1._domainkey.a.example.com": NameState(delegated="a.example.com")}
    target = FakeTarget("example.com", names=names)
    code, out, err = publish(target, registrations, is_shown=False, **YES)
    assert (code, out) == (1, "")
    assert "s1._domainkey.a.example.com is blocked: the zone delegates a.example.com to" in err


GOOD = ZoneAccess("ns.test", "example.com", 3, Access(True, True))
UNKNOWN = ZoneAccess("ns.test", "example.net", 1, Access(True, None, "only a change tells"))
NOT_WRITABLE = ZoneAccess("ns.test", "example.org", 1, Access(True, False, "\x1b[2Jrefused"))
IDLE = ZoneAccess("other.test", "", 0, Access(None, None, "no name"))


@pytest.mark.parametrize(
    ("zones", "expected"),
    [([], 0), ([GOOD, UNKNOWN, IDLE], 0), ([GOOD, NOT_WRITABLE], 1),
     ([ZoneAccess("ns.test", "", 1, Access(False, None), DnsRefused("no"))], 3),
     ([ZoneAccess("ns.test", "", 1, Access(False, None), ServiceError("no"))], 4)],
)  # fmt: skip
def test_the_exit_code(zones, expected):
    assert show_access(Reporter(), zones, [], TABLE, None) == expected


def test_what_is_in_no_zone_is_named(make_registration, capsys):
    assert show_access(Reporter(), [GOOD], [make_registration()], TABLE, None) == 1
    assert "in no zone of a DNS target: 1 (example.com (selector s1))" in capsys.readouterr().err


def test_the_access_to_each_zone_is_yes_no_or_unknown(capsys):
    show_access(Reporter(), [GOOD, UNKNOWN, NOT_WRITABLE, IDLE], [], TABLE, None)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["TARGET", "ZONE", "NAMES", "READ", "WRITE"],
        ["ns.test", "example.com", "3", "yes", "yes"],
        ["ns.test", "example.net", "1", "yes", "unknown"],
        ["only", "a", "change", "tells"],
        ["ns.test", "example.org", "1", "yes", "no"],
        [r"\x1b[2Jrefused"],
        ["other.test", "-", "0", "unknown", "unknown"],
        ["no", "name"],
    ]


def test_zones_without_access_for_one_reason_share_a_warning(capsys):
    refused = Access(False, False, "refused", "check the key")
    zones = [GOOD._replace(zone=zone, access=refused) for zone in "ab"]
    show_access(Reporter(), zones, [], TABLE, None)
    err = capsys.readouterr().err
    assert "warning: no access to a, b: refused\nhint: check the key\n" in err
