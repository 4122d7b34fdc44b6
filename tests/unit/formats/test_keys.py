"""Lists of keys and the overview: table, JSON, CSV, text and page."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from dkimctl.dns.verdicts import Verdict
from dkimctl.formats.keys import MAIL_COLUMNS, render_keys
from dkimctl.formats.overview_text import Overview, overview_lines, overview_text, timeline
from dkimctl.formats.pages import overview_page
from dkimctl.formats.renderer import KeyFormat, TableLayout
from dkimctl.models import DnsRecord, KeyHistory, MailStats, Registration
from dkimctl.rotation.life import NOT_CHECKED, Key, KeyDates, KeyStage, NextAction
from rendering import HOSTILE

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def key(
    name="mail.example.com", selector="s1", *, age=100, stage=KeyStage.SIGNING, starts=None,
    action=NextAction.REGISTER, due=80, urgency="", note="", **fields,
) -> Key:  # fmt: skip
    """A key; times are days before now, but when it is due."""
    made = NOW - age * DAY
    start = made if starts is None else NOW - starts * DAY
    usual = {"fqdn": f"{selector}._domainkey.{name}", "key_len": 2048, "enable": True,
             "state": Verdict.PUBLISHED, "looked_at": NOW - timedelta(hours=5)}  # fmt: skip
    values = usual | fields
    record = values["fqdn"] and DnsRecord(values["fqdn"], "TXT", "v=DKIM1; p=")
    registration = Registration(
        name, selector, values["key_len"], enable=values["enable"], record=record
    )
    verdict = None if values["state"] == NOT_CHECKED else values["state"]
    return Key(
        registration, KeyHistory(looked_at=values["looked_at"], verdict=verdict), stage, made,
        action, None if due is None else NOW + due * DAY, KeyDates(made, made, start), urgency,
        note, values.get("starts_at", start), age * DAY,
    )  # fmt: skip


KEYS = [
    key(),
    key("xn--r8jz45g.jp", "s20270701", state=Verdict.MISSING, urgency="signing", due=0,
        action=NextAction.PUBLISH, note="it was never seen published"),
    key("news.example.com", enable=False, stage=KeyStage.DISABLED, action=NextAction.NONE, due=None,
        state=NOT_CHECKED, looked_at=None),
]  # fmt: skip
DECIDE = key("held.com", action=NextAction.DECIDE, due=None, note="another selector was asked for")
_NOTHING = dict.fromkeys(("fqdn", "key_len", "starts_at", "enable", "state", "looked_at"))
ODD = key("taken.com", None, stage=KeyStage.TAKEN, action=NextAction.NONE, due=None, **_NOTHING)
ODD = ODD._replace(age=None)


def render(fmt, items, without=("LEFT", "OWNER", *MAIL_COLUMNS), **layout) -> str:
    layout = TableLayout(**layout)
    return "".join(render_keys(items, fmt, layout, NOW, notes=True, without=without))


def screen(items, width=100, height=50, **options) -> str:
    layout = TableLayout(width=width, **options)
    return "".join(overview_text(Overview(items, NOW), layout, height))


def test_a_table_of_80_columns_has_what_matters_with_names_in_their_own_script():
    lines = render(KeyFormat.TABLE, [*KEYS, DECIDE], width=80).splitlines()
    assert lines == [
        "DOMAIN            SELECTOR   STATE      STAGE     NEXT      DUE",
        "mail.example.com  s1         published  signing   register  2027-02-09",
        "例え.jp           s20270701  missing    signing   publish   2026-11-21",
        "  URGENT: it was never seen published",
        "news.example.com  s1         unchecked  disabled  none      -",
        "held.com          s1         published  signing   decide    -",
        "  another selector was asked for",
        "left out for the width: BITS, AGE, START, ON, SEEN; --wide shows all",
    ]


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_where_the_output_lacks_the_script_names_are_a_labels(encoding):
    assert "xn--r8jz45g.jp" in render(KeyFormat.TABLE, KEYS, encoding=encoding)
    text = screen(KEYS, encoding=encoding)
    assert "xn--r8jz45g.jp (s20270701)" in text
    text.encode(encoding)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_no_line_of_the_table_is_wider_than_the_terminal(width, wide):
    hostile = key(HOSTILE, HOSTILE, note=HOSTILE, fqdn=None)
    lines = render(KeyFormat.TABLE, [hostile, ODD, *KEYS], width=width, wide=wide).splitlines()
    assert max(map(cell_len, lines)) <= width
    lines += render(KeyFormat.TABLE, [key(HOSTILE)], width=width, wide=wide).splitlines()
    assert all(line.isprintable() for line in lines)


def mailed(name, passed=0, failed=0, passed_on=None, **fields) -> Key:
    mail = MailStats(passed, failed, passed_on, **fields)
    return key(name)._replace(mail=mail)


MAILED = [
    mailed("good.com", 99_981, 19, NOW.date() - DAY),
    mailed("few.com", 0, 19),
    mailed("bad.com", 18, 20, NOW.date() - DAY),
    mailed("quiet.com"),
    mailed("silent.com", passed_on=NOW.date() - 20 * DAY, is_reported=False),
]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_what_reports_say_of_keys_is_in_the_widest_columns_or_below(width):
    without = ("LEFT", "OWNER")
    text = render(KeyFormat.TABLE, MAILED, without, width=width, wide=True)
    assert max(map(cell_len, text.splitlines())) <= width
    if width == 200:
        cells = [re.split("  +", line)[-3:] for line in text.splitlines()[1::2]]
        assert cells == [
            ["2026-11-20", "100,000", "<0.1%"], ["-", "19", "100.0%"],
            ["2026-11-20", "38", "52.6%"], ["-", "0", "-"], ["2026-11-01", "no reports", "-"],
        ]  # fmt: skip
    assert ("MAIL no reports" in " ".join(text.split())) == (width < 120)


def test_the_overview_of_mail_names_the_keys_with_which_much_fails_and_keeps_few():
    many = [mailed(f"n{number:04}.example", 5, number) for number in range(3_000)]
    made = Overview([*MAILED, *many], NOW)
    assert [key.sign_domain for _, key in made.mail.worst[:2]] == ["n2999.example", "n2998.example"]
    assert len(made.mail.worst) == 40
    text = "".join(overview_text(Overview(MAILED, NOW), TableLayout(width=80), 50))
    assert "Mail 99,999 passed, 58 failed in 7 days, by DMARC reports\n" in text
    assert "  over 5% failed  1 key  bad.com (s1)\n  no reports for 1 domain in the last" in text
    page = overview_page(Overview([*MAILED, mailed("<b>", 1)], NOW), "agency")
    assert ("&lt;b&gt;" in page, "<b>" in page, "No reports for 1 domain " in page) == (
        True, False, True
    )  # fmt: skip


def test_a_key_whose_successor_does_not_sign_is_urgent_in_the_overview():
    late = key("late.com", action=NextAction.WAIT)._replace(is_not_followed=True)
    assert Overview([late], NOW).is_bad
    assert "\n  successor does not sign  1 key  late.com (s1)\n" in screen([late])


def test_without_reports_nothing_is_said_of_mail():
    made = Overview(KEYS, NOW)
    assert json.loads("".join(overview_lines(made)))["mail"] is None
    assert "DMARC" not in screen(KEYS) + overview_page(made, "agency")


def status(*, sign_domain="example.com", selector="s1", made=200, published=None, starts=None,
           replaced=None,
           removable=None, removed=None, **fields) -> Key:  # fmt: skip
    """A key that signs; its times are in days ago."""
    times = (made, published, starts, replaced, removable, removed)
    dates = KeyDates(*(None if days is None else NOW - days * DAY for days in times))
    one = Key(Registration(sign_domain, selector), KeyHistory(), KeyStage.SIGNING,
              NOW - 100 * DAY, NextAction.REGISTER, NOW + 80 * DAY, dates)  # fmt: skip
    return one._replace(**fields)


def bars(items, width=200, **options) -> list[str]:
    layout = TableLayout(width=width, **options)
    return "".join(timeline(items, NOW, layout)).splitlines()


def test_each_phase_has_its_character():
    old = status(made=90, published=75, starts=60, replaced=30, removable=-30)
    new = status(made=20, published=15, starts=-60)
    closed = status(made=90, starts=60, removed=30)
    late = status(made=60, starts=60, published=30)
    disabled, today = status(stage=KeyStage.DISABLED), status(made=0, starts=0, due=None)
    lines = bars([old, new, closed, late, disabled, today])
    found = ["".join(line.split()[2:]) for line in lines[1:7]]
    shapes = [re.sub(r"(.)\1+", r"\1", bar) for bar in found]
    assert shapes == [".o#~|~x", ".o|o#", ".#|", "#|#", "disabled", "#"]
    assert lines[-1] == ". registered  o published  # signing  ~ grace period  x retired  | today"
    coloured = "\n".join(bars([old, new, closed], colour=True))
    for style, character in (("2", "."), ("36", "o"), ("32", "#"), ("33", "~"), ("31", "x")):
        assert f"\x1b[{style}m{character}" in coloured


def test_the_overview_as_json():
    keys = [
        *KEYS,
        ODD,
        key("due.com", due=3),
        key("starts.com", starts=-20),
        key("old.com", due=-8),
    ]
    document = json.loads("".join(overview_lines(Overview(keys, NOW))))
    assert document["states"] == {"published": 4, "missing": 1, "unchecked": 1}
    assert [one["sign_domain"] for one in document["urgent"]] == ["xn--r8jz45g.jp"]
    assert [one["sign_domain"] for one in document["overdue"]] == ["old.com"]
    assert [(one["what"], one["at"]) for one in document["week"] + document["month"]] == [
        ("register successor", "2026-11-13T12:00:00+00:00"),
        ("register successor", "2026-11-24T12:00:00+00:00"),
        ("signing starts", "2026-12-11T12:00:00+00:00"),
    ]
    assert document["key_lengths"] == {"2048": 6}
    nothing = json.loads("".join(overview_lines(Overview([], NOW))))
    assert (nothing["keys"], nothing["looked_at"], nothing["urgent"]) == (0, None, [])


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 50), (200, 100)])
def test_the_overview_of_many_keys_fits_a_screen_whatever_others_wrote(width, height):
    keys = [key(f"n{number}.example.com", due=number % 90) for number in range(500)]
    lines = screen(keys, width, height).splitlines()
    assert len(lines) < max(height, 34)
    hostile = key(HOSTILE, HOSTILE, action=NextAction.DECIDE, note=HOSTILE, due=1)
    lines += screen([hostile], width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)


def test_the_page_fetches_nothing_and_text_of_others_is_text_there():
    keys = [key("<script>alert(1)</script>", '"><img src=x>', urgency="soon", due=0,
                action=NextAction.PUBLISH, note=HOSTILE), *KEYS]  # fmt: skip
    text = overview_page(Overview(keys, NOW), "<b>agency</b>")
    assert not re.findall(r"<(?:script|img|b)\b|(?:href|src)=[^x]|url\(|@import", text)
    for said in ("&lt;script&gt;alert(1)", "例え.jp", "receivers cannot verify it", "This week"):
        assert said in text
