"""Results as a table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from dkimctl.models import DnsRecord, Outcome
from dkimctl.text import printable
from rendering import render_table


def table_of(*results, **layout):
    return render_table(results, **layout)


def assert_readable(text, results, width):
    """FQDN and value are on their own lines, other lines fit, and all are printable."""
    records = [record for result in results if (record := result.registration.record)]
    whole = {printable(record.value) for record in records}
    for record in records:
        line = f"  FQDN  {printable(record.fqdn)}  {printable(record.type)}"
        whole.add(line if cell_len(line) <= width else printable(record.fqdn))
    lines = text.split("\n")
    assert whole <= set(lines)
    assert all(printable(line) == line for line in lines)
    for line in set(lines) - whole:
        assert cell_len(line) <= width, line


@settings(deadline=None, max_examples=60)
@given(text=st.text(st.characters(), max_size=200), width=st.integers(40, 200), wide=st.booleans())
def test_any_text_fits_the_width(result, text, width, wide):
    record = DnsRecord(text, "TXT", text)
    results = [result(sign_domain=text, selector=text, message=text, record=record, reason=text)]
    assert_readable(table_of(*results, width=width, wide=wide), results, width)


def test_where_the_width_is_missing_neither_names_nor_dates_are_broken(result):
    long = "a-very-long-domain-name-of-sixty-characters.mail.example.com"
    results = [result(record=None, sign_domain=name) for name in (long, "xn--r8jz45g.jp")]
    results.append(result(Outcome.INVALID, record=None, reason="no")._replace(answer="400"))
    assert table_of(*results, width=120).splitlines()[1].split() == [
        long, "s1", "created", "201", "2026-02-01", "2048", "2026-03-01",
    ]  # fmt: skip
    assert table_of(*results, width=60).splitlines() == [
        "DOMAIN       SELECTOR  OUTCOME  RESULT          START",
        long,
        "             s1        created  201 2026-02-01  2026-03-01",
        "例え.jp      s1        created  201 2026-02-01  2026-03-01",
        "example.com  s1        invalid  400             2026-03-01",
        "  no",
        "",
        "left out for the width: BITS, times of day; --wide shows all",
    ]
    wide = table_of(*results, width=60, wide=True).splitlines()
    assert "xn--r8jz45g.jp  s1        created  201 created 2026-02-01" in wide
    assert wide.count("  BITS 2048, START 2026-03-01T00:00+09:00") == 3


@pytest.mark.parametrize(
    ("outcome", "code"), [(Outcome.CREATED, 32), (Outcome.DIFFERS, 33), (Outcome.FAILED, 31)]
)
def test_the_outcome_is_coloured_and_the_value_is_not(result, outcome, code):
    text = table_of(result(outcome), colour=True)
    assert f"\x1b[{code}m{outcome}" in text
    assert f"\n{result().registration.record.value}\n" in text


def failed(result, count, reason):
    names = (f"d{n}.example" for n in range(count))
    fields = {"record": None, "code": "500", "message": None}
    return [
        result(Outcome.FAILED, sign_domain=name, reason=reason.format(name=name), **fields)
        for name in names
    ]


def test_of_rows_with_the_same_reason_most_are_counted(result):
    results = [
        *failed(result, 30, "the service answered 500"),
        *failed(result, 25, "{name} is refused"),
        *[result(Outcome.EXISTS)] * 40,
    ]
    text = table_of(*results, most_alike=20)
    assert text.count("the service answered 500") == 20 + 1
    assert text.count("example is refused") == 20
    assert text.count("exists") == 40
    assert text.endswith(
        "… and 10 more: failed: the service answered 500\n… and 5 more: failed: DOMAIN is refused\n"
    )


def test_a_command_is_not_broken(result):
    command = "`dkimctl show-dns --profile agency --format table`"
    text = table_of(*[result()] * 300, width=60, only_attention=True, shown_by=command)
    assert text == (f"300 rows that need no attention are not shown;\n{command} shows all\n")
