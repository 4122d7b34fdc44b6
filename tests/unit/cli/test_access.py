"""The access to DNS as `publish --check-access` shows it."""

from __future__ import annotations

import pytest

from dkimctl.cli.commands.publish import access_status, report_access, write_access
from dkimctl.cli.report import Reporter
from dkimctl.errors import DnsRefused, ServiceError
from dkimctl.formats.renderer import PublicationFormat
from dkimctl.publishing.plan import Access
from dkimctl.publishing.targets import AccessReport, ZoneAccess

GOOD = ZoneAccess("ns.test", "example.com", 3, Access(True, True))
UNKNOWN = ZoneAccess("ns.test", "example.net", 1, Access(True, None, "only a change tells"))
NOT_WRITABLE = ZoneAccess("ns.test", "example.org", 1, Access(True, False, "\x1b[2Jrefused"))
IDLE = ZoneAccess("other.test", "", 0, Access(None, None, "no name"))


def test_a_table_says_yes_no_or_unknown(capsys):
    report = AccessReport([GOOD, UNKNOWN, NOT_WRITABLE, IDLE], [])
    write_access(Reporter(), report, PublicationFormat.TABLE, None)
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


@pytest.mark.parametrize(
    ("zones", "expected"),
    [([], 0), ([GOOD, UNKNOWN, IDLE], 0), ([GOOD, NOT_WRITABLE], 1),
     ([ZoneAccess("ns.test", "", 1, Access(False, None), DnsRefused("no"))], 3),
     ([ZoneAccess("ns.test", "", 1, Access(False, None), ServiceError("no"))], 4)],
)  # fmt: skip
def test_the_exit_code(zones, expected):
    assert access_status(AccessReport(zones, [])) == expected


def test_what_is_in_no_zone_is_a_no(make_registration, capsys):
    report = AccessReport([GOOD], [make_registration()])
    assert access_status(report) == 1
    report_access(Reporter(), report)
    assert "in no zone of a DNS target: 1 (example.com (selector s1))" in capsys.readouterr().err
