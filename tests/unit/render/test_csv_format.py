"""CSV of results, read by the csv module."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models.registration import Outcome
from dkimctl.render.renderer import Format
from rendering import render_text


def test_every_result_has_a_line_and_only_publishable_ones_a_value(every_outcome) -> None:
    lines = render_text(Format.CSV, every_outcome).splitlines()
    assert len(lines) == 1 + len(every_outcome)
    rows = list(csv.DictReader(lines))
    for row, result in zip(rows, every_outcome, strict=True):
        assert row["sign_domain"] == result.registration.sign_domain
        assert row["outcome"] == result.outcome
        sound = result.outcome in (Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS)
        assert row["value"] == (result.registration.record.value if sound else "")


@given(message=st.text(st.characters(), max_size=30))
def test_cells_hold_no_formula_line_break_or_control_character(result, message: str) -> None:
    text = render_text(Format.CSV, [result(message=message)])
    assert text.count("\n") == 2
    assert all(char.isprintable() or char in "\n\u00a0\u3000" for char in text)
    [row] = csv.DictReader(io.StringIO(text))
    assert not row["message"].startswith(("=", "+", "-", "@"))
