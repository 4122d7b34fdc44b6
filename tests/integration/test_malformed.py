"""A malformed file means exit 2 with its position, and no request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[1] / "fixtures" / "specs").iterdir())


def test_there_are_enough_files():
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_malformed_file_is_refused_with_file_line_and_column(
    cli, scripted_server, scripted_account, path
):
    done = cli("register", path, env=scripted_account)
    assert (done.status, done.out) == (2, "")
    errors = [line for line in done.err.splitlines() if line.startswith("dkimctl: error: ")]
    assert errors
    for line in errors:
        assert re.match(rf"dkimctl: error: {re.escape(str(path))}:\d+:\d+: \S", line)
    assert done.err.count("hint: ") == len(errors)
    assert scripted_server.requests == []
