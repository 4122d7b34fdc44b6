"""What all formats have in common."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice

import pytest

from dkimctl.models import Result
from dkimctl.render.formats import Format, render

LIGHT = [fmt for fmt in Format if fmt is not Format.TABLE]


@pytest.mark.parametrize("fmt", Format)
def test_every_format_ends_its_last_line(fmt: Format, every_outcome: list[Result]) -> None:
    text = "".join(render(fmt, every_outcome, width=80))
    assert "created.example" in text
    assert text.endswith("\n")


@pytest.mark.parametrize("fmt", LIGHT)
def test_output_comes_before_the_last_result(fmt: Format, result: Callable[..., Result]) -> None:
    endless = (result(sign_domain=f"d{number}.example") for number in count())
    text = "".join(islice(render(fmt, endless), 9))
    assert "d0.example" in text
    assert "d6.example" in text


@pytest.mark.parametrize("fmt", LIGHT)
def test_no_result_is_asked_for_twice(fmt: Format, every_outcome: list[Result]) -> None:
    once: Iterator[Result] = iter(every_outcome)
    assert "".join(render(fmt, once)) == "".join(render(fmt, every_outcome))


@pytest.mark.parametrize("fmt", LIGHT)
def test_only_the_table_loads_rich(fmt: Format) -> None:
    script = (
        "import sys; from dkimctl.render.formats import Format, render;"
        "assert 'json' not in sys.modules;"
        f"list(render(Format({fmt.value!r}), [])); assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
