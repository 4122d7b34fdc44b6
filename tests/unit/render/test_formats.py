"""What all formats have in common."""

from __future__ import annotations

import re
from itertools import count, islice

import pytest

from dkimctl.formats.renderer import PER_ZONE, Format, render_all
from dkimctl.formats.results import open_results

STREAMED = [fmt for fmt in Format if fmt not in PER_ZONE]
LIGHT = [fmt for fmt in STREAMED if fmt not in (Format.TABLE, Format.MARKDOWN)]


def whole(fmt, results):
    """The whole output of a format for results in the zone `example`."""
    renderer = open_results(fmt, zones=["example"] if fmt in PER_ZONE else ())
    if fmt in PER_ZONE:
        for result in results:
            renderer.add(result)
        [(name, chunks, *_)] = renderer.files()
        assert name.startswith("example.")
        return "".join(chunks)
    return "".join(render_all(renderer, results))


@pytest.mark.parametrize("fmt", Format)
def test_output_ends_with_a_newline(fmt, every_outcome):
    text = whole(fmt, every_outcome)
    assert re.search(r"created(\.example)?\b", text)
    assert text.endswith("\n")


@pytest.mark.parametrize("fmt", LIGHT)
def test_output_is_streamed(fmt, result):
    endless = (result(sign_domain=f"d{number}.example") for number in count())
    text = "".join(islice(render_all(open_results(fmt), endless), 30))
    assert "d0.example" in text
    assert "d6.example" in text


@pytest.mark.parametrize("fmt", Format)
def test_dns_formats_hold_only_publishable_records(fmt, every_outcome):
    text = whole(fmt, every_outcome)
    if fmt not in (Format.TABLE, Format.JSON, Format.JSONL, Format.CSV, Format.MARKDOWN):
        for outcome in ("pending", "taken", "invalid", "unusable", "failed", "unknown"):
            assert outcome not in text
    assert "\x1b" not in text
