"""What is known of a command line before it is parsed."""

from __future__ import annotations

import pytest

from dkimctl.cli.main import COMMANDS, SHORT_FORMAT, last_value, root_command, split_command


@pytest.mark.parametrize(
    "line",
    ["status --format json", "status --format=json", "status -f json", "status -fjson",
     "register -nf json x", "register -nqfjson x", "show-dns --format zone --format json",
     "--color never status -f json"],
)  # fmt: skip
def test_json_is_recognized_in_each_way_to_write_it(line):
    assert last_value(line.split(), "--format", SHORT_FORMAT) == "json"


@pytest.mark.parametrize(
    "line",
    ["status", "status --format table", "status --format", "status -f", "register json",
     "register -o -fjson.yaml -- -fjson", "status -- --format json", "show-dns -ofjson",
     "status --format json --format table", "status --formatjson", "status -p fjson"],
)  # fmt: skip
def test_other_command_lines_do_not_want_json(line):
    assert last_value(line.split(), "--format", SHORT_FORMAT) != "json"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("status", None), ("--color always status", "always"), ("status --color=never", "never"),
     ("--color never status --color always", "always"), ("status --color", None),
     ("status -- --color always", None)],
)  # fmt: skip
def test_the_last_value_counts(line, expected):
    assert last_value(line.split(), "--color") == expected


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
