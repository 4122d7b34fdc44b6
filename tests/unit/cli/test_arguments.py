"""What is known of a command line before it is parsed."""

from __future__ import annotations

import pytest

from dkimctl.cli.main import COMMANDS, root_command, split_command, wanted_color, wants_json
from dkimctl.cli.output.streams import Color


@pytest.mark.parametrize(
    "line",
    ["status --format json", "status --format=json", "status -f json", "status -fjson",
     "register -nf json x", "register -nqfjson x", "show-dns --format zone --format json",
     "--color never status -f json"],
)  # fmt: skip
def test_json_is_recognized_in_each_way_to_write_it(line):
    assert wants_json(line.split())


@pytest.mark.parametrize(
    "line",
    ["status", "status --format table", "status --format", "status -f", "register json",
     "register -o -fjson.yaml -- -fjson", "status -- --format json", "show-dns -ofjson",
     "status --format json --format table", "status --formatjson", "status -p fjson"],
)  # fmt: skip
def test_other_command_lines_do_not_want_json(line):
    assert not wants_json(line.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [("status", Color.AUTO), ("--color always status", Color.ALWAYS),
     ("status --color=never", Color.NEVER), ("--color never status --color always", Color.ALWAYS),
     ("status --color", Color.AUTO), ("status --color green", Color.AUTO),
     ("status -- --color always", Color.AUTO)],
)  # fmt: skip
def test_the_last_colour_counts(line, expected):
    assert wanted_color(line.split()) is expected


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [("rotate run -n", "rotate run", "-n"), ("rotate", "rotate", ""),
     ("rotate --sandbox run x", "rotate run", "--sandbox x"),
     ("rotate -q --profile a --config=b run", "rotate run", "-q --profile a --config=b"),
     ("rotate --profile run", "rotate", "--profile run"),
     ("rotate --output run status", "rotate", "--output run status"),
     ("rotate -- run", "rotate", "-- run"), ("rotate x run", "rotate", "x run"),
     ("profile --sandbox list", "profile", "--sandbox list"), ("wrong run", "wrong", "run")],
)  # fmt: skip
def test_a_command_of_two_words_may_have_common_options_between_them(line, name, rest):
    assert split_command(line.split(), COMMANDS, root_command().params) == (name, rest.split())
