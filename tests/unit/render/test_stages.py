"""The stages of keys: table, JSON, CSV, and the timeline."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from dkimctl.models.key_status import KeyDates, KeyStage, KeyStatus, NextAction
from dkimctl.render.formats import open_stage_renderer
from dkimctl.render.renderer import KeyFormat, TableLayout, render_all
from dkimctl.render.stage_items import STAGE_COLUMNS
from dkimctl.render.timeline import TimelineRenderer
from rendering import HOSTILE

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def status(*, selector="s1", made=200, published=None, starts=None, replaced=None,
           removable=None, removed=None, **fields) -> KeyStatus:  # fmt: skip
    """A key that signs; its times are in days ago."""
    times = (made, published, starts, replaced, removable, removed)
    dates = KeyDates(*(None if days is None else NOW - days * DAY for days in times))
    one = KeyStatus("example.com", selector, KeyStage.SIGNING, NOW - 100 * DAY,
                    NextAction.REGISTER, NOW + 80 * DAY, dates)  # fmt: skip
    return one._replace(**fields)


KEYS = [
    status(selector="old", made=200, published=199, starts=198, replaced=8, removable=-6),
    status(selector="new", made=15, published=14, starts=8),
    status(selector="next", made=1, stage=KeyStage.REGISTERED, action=NextAction.PUBLISH,
           urgency="soon", note="it was never seen published", since=None),
    status(selector="gone", made=400, starts=390, removed=186, stage=KeyStage.REMOVED,
           action=NextAction.NONE, due=None),
    status(selector=None, made=None, stage=KeyStage.UNKNOWN, action=NextAction.DECIDE, due=None),
]  # fmt: skip
HOSTILE_KEY = status(sign_domain=HOSTILE, selector=HOSTILE, note=HOSTILE, urgency="soon")


def render(fmt, items, **layout) -> str:
    return "".join(render_all(open_stage_renderer(fmt, TableLayout(**layout)), items))


def timeline(items, now=NOW, **layout) -> str:
    return "".join(render_all(TimelineRenderer(TableLayout(**layout), now), items))


def test_table():
    assert render(KeyFormat.TABLE, KEYS, width=120).splitlines() == [
        "DOMAIN       SELECTOR  STAGE       SINCE       NEXT                DUE",
        "example.com  old       signing     2026-08-13  register successor  2027-02-09",
        "example.com  new       signing     2026-08-13  register successor  2027-02-09",
        "example.com  next      registered  unknown     publish, URGENT     2027-02-09",
        "  it was never seen published",
        "example.com  gone      removed     2026-08-13  none                -",
        "example.com  -         unknown     2026-08-13  decide              -",
    ]
    assert render(KeyFormat.TABLE, []) == ""


def test_on_a_narrow_terminal_words_wrap_and_names_do_not():
    keys = [
        status(sign_domain="mail.example.com", selector="s20261121",
               stage=KeyStage.SUCCESSOR_REGISTERED),
        status(selector="new", urgency="soon"),
    ]  # fmt: skip
    assert render(KeyFormat.TABLE, keys, width=80).splitlines() == [
        "DOMAIN            SELECTOR   STAGE       SINCE       NEXT             DUE",
        "mail.example.com  s20261121  successor   2026-08-13  register         2027-02-09",
        "                             registered              successor",
        "example.com       new        signing     2026-08-13  register         2027-02-09",
        "                                                     successor,",
        "                                                     URGENT",
    ]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_all_rows_fit_the_terminal(width):
    items = [*KEYS, HOSTILE_KEY]
    for text in (render(KeyFormat.TABLE, items, width=width), timeline(items, width=width)):
        assert max(map(cell_len, text.splitlines())) <= width
        assert text.replace("\n", "").isprintable()


def test_colour_changes_no_text():
    plain, coloured = (timeline(KEYS, width=80, colour=colour) for colour in (False, True))
    for style, character in (("2", "."), ("36", "o"), ("32", "#"), ("33", "~"), ("31", "x")):
        assert f"\x1b[{style}m{character}" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_timeline_is_ascii_with_today_as_a_line(width):
    text = timeline(KEYS, width=width)
    assert text.isascii()
    header, *rows, blank, legend = text.splitlines()
    assert header.split() == ["DOMAIN", "SELECTOR", "2025-10-17", "2027-02-09"]
    assert len(header) == width
    assert blank == ""
    assert legend == (". registered  o published  # signing  ~ grace period  x retired  | today")
    assert len({row.index("|") for row in rows}) == 1


def test_each_phase_has_its_character():
    old = status(made=90, published=75, starts=60, replaced=30, removable=-30)
    new = status(made=20, published=15, starts=-60)
    closed = status(made=90, starts=60, removed=30)
    rows = timeline([old, new, closed], width=200).splitlines()[1:4]
    bars = ["".join(row.split()[2:]) for row in rows]
    shapes = [re.sub(r"(.)\1+", r"\1", bar) for bar in bars]
    assert shapes == [".o#~|~x", ".o|o#", ".#|"]


def test_what_lies_ahead_is_drawn_as_far_as_it_is_planned():
    due = status(made=90, starts=90, due=NOW + 90 * DAY)
    old = status(made=90, starts=90, replaced=8, removable=-6, due=NOW + 6 * DAY)
    stands_still = status(made=90, starts=90, due=None)
    rows = timeline([due, old, stands_still], width=200).splitlines()[1:4]
    today = rows[0].index("|")
    assert len(rows[0]) > 198, "it goes to the edge, where it is due"
    assert re.fullmatch(r"~+x", rows[1][today + 1 :])
    assert rows[2].endswith("#|")


def test_dates_far_away_do_not_squeeze_the_others():
    ages = [status(made=9000, starts=9000, due=None), status(made=3, starts=-90_000, due=None)]
    text = timeline([*ages, status(made=100, starts=100)], width=120)
    assert text.splitlines()[0].split()[2:] == ["2024-11-21", "2027-11-21"]
    assert len(text.splitlines()[3].split()[-1]) > 10


def test_keys_that_are_alike_are_counted_and_those_for_people_shown():
    signing = [status(sign_domain=f"d{number}.example") for number in range(50)]
    held = [
        one._replace(action=NextAction.DECIDE, note=f"the selector of {one.sign_domain} is taken")
        for one in signing
    ]
    for text in (
        render(KeyFormat.TABLE, signing + held, width=120, most_alike=3),
        timeline(signing + held, width=120, most_alike=3),
    ):
        rows = [line for line in text.splitlines() if re.match(r"d[0-9]", line)]
        assert [row.split()[0] for row in rows] == ["d0.example", "d1.example", "d2.example"] * 2
        assert "… and 47 more: signing, next: register successor" in text
        assert "… and 47 more: signing, next: decide: the selector of DOMAIN is taken" in text
        assert text.endswith("94 rows like those above are not shown; --format table shows all\n")
    only = render(KeyFormat.TABLE, [signing[0], held[1]], only_attention=True)
    assert [line.split()[0] for line in only.splitlines()] == ["DOMAIN", "d1.example", "the"]
    assert render(KeyFormat.TABLE, signing, only_attention=True) == ""


def test_phases_that_overlap_or_are_not_known():
    late = status(made=60, starts=60, published=30)
    unknown = status(made=None)
    rows = timeline([late, unknown], width=120).splitlines()[1:3]
    assert set(rows[0].split()[-1]) == set("#|")
    assert rows[1].split()[-1] == "|"


def test_a_key_that_was_made_now():
    assert timeline([status(made=0, due=None)], width=80).splitlines()[1].split()[-1] == "|"
    assert timeline([]) == ""


def test_json_and_csv_have_all_columns():
    document = json.loads(render(KeyFormat.JSON, KEYS))
    assert document["count"] == len(document["items"]) == 5
    assert [list(item) for item in document["items"]] == [[*STAGE_COLUMNS]] * 5
    assert document["items"][2]["since"] is None
    assert document["items"][0]["removable_at"] == "2026-11-27T12:00:00+00:00"
    rows = list(csv.DictReader(io.StringIO(render(KeyFormat.CSV, KEYS))))
    assert [row["stage"] for row in rows] == [key.stage for key in KEYS]
    assert rows[2]["since"] == ""


def test_hostile_names_are_the_same_in_json():
    [item] = json.loads(render(KeyFormat.JSON, [HOSTILE_KEY]))["items"]
    assert item["sign_domain"] == item["selector"] == HOSTILE
    assert render(KeyFormat.CSV, [HOSTILE_KEY]).replace("\n", "").isprintable()
