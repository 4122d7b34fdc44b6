"""The table of a plan."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from dkimctl.models import Outcome
from rendering import render_table

ABSENT = dict.fromkeys(("selector", "key_len", "start_date", "record", "code", "message"))


@pytest.fixture
def planned(result):
    """The results of entries that would be created."""
    return lambda *domains: [
        result(Outcome.PENDING, **(ABSENT | {"sign_domain": domain})) for domain in domains
    ]


def plan_of(results, **layout):
    return render_table(results, is_plan=True, **layout).splitlines()


def test_totals_come_first_then_one_line_for_each_entry(planned, result):
    existing = result(Outcome.EXISTS, sign_domain="www.a.example")
    assert plan_of([existing, *planned("mail.a.example", "b.example")]) == [
        "OUTCOME  ENTRIES",
        "pending        2",
        "exists         1",
        "",
        "UNDER      PENDING  EXISTS",
        "a.example        1       1",
        "b.example        1       0",
        "",
        "DOMAIN          SELECTOR  OUTCOME  BITS  START",
        "www.a.example   s1        exists   2048  2026-03-01T00:00+09:00",
        "mail.a.example  -         pending  -     -",
        "b.example       -         pending  -     -",
    ]


def groups(lines, title="UNDER"):
    start = next(n for n, line in enumerate(lines) if line.startswith(title)) + 1
    return {line.split()[0]: int(line.split()[1]) for line in lines[start : lines.index("", start)]}


def test_entries_are_counted_under_the_longest_name_that_they_share(planned):
    domains = ["x.a.example", "y.a.example", "a.example", "b.a.example", "z.b.a.example",
               "alone.example"]  # fmt: skip
    assert groups(plan_of(planned(*domains))) == {
        "a.example": 3, "b.a.example": 2, "alone.example": 1,
    }  # fmt: skip


def test_entries_are_counted_by_zone(planned, result):
    results = [
        *planned("x.a.example", "y.sub.a.example", "z.sub.a.example", "b.example"),
        result(Outcome.PENDING, **(ABSENT | {"sign_domain": "c.example", "selector": "s.k"})),
    ]
    zones = ["a.example", "example", "Sub.a.example", "k._domainkey.c.example"]
    assert groups(plan_of(results, zones=zones), "ZONE") == {
        "Sub.a.example": 2, "a.example": 1, "example": 1, "k._domainkey.c.example": 1,
    }  # fmt: skip


def test_at_most_twenty_names_are_listed_the_largest_first(planned):
    domains = [f"{n}.d{zone}.example" for zone in range(30) for n in range(2 + (zone == 29))]
    lines = plan_of(planned(*domains))
    start = next(n for n, line in enumerate(lines) if line.startswith("UNDER"))
    assert lines[start + 1].split() == ["d29.example", "3"]
    assert lines[start + 21] == "… and 10 more"


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_it_fits_the_width(planned, every_outcome, width):
    long = ".".join(["d" * 59] * 4)
    results = [*every_outcome, *planned(f"a.{long}", f"b.{long}")]
    lines = plan_of(results, width=width)
    assert max(map(cell_len, lines)) <= width
    assert "".join(line.split("  ")[0].strip() for line in lines).count(long) >= 1
