"""When output is coloured."""

from __future__ import annotations

import io

import pytest

from dkimctl.cli.output.streams import Color, shows_colour
from fakes import Terminal

PIPE = io.StringIO()


@pytest.mark.parametrize(
    ("environ", "on_terminal", "in_pipe"),
    [({}, True, False),
     ({"TERM": "xterm"}, True, False),
     ({"TERM": "dumb"}, False, False),
     ({"TERM": "unknown"}, False, False),
     ({"NO_COLOR": "1"}, False, False),
     ({"NO_COLOR": ""}, True, False),
     ({"FORCE_COLOR": "1"}, True, True),
     ({"FORCE_COLOR": "0"}, True, False),
     ({"FORCE_COLOR": ""}, True, False),
     ({"CLICOLOR_FORCE": "1"}, True, True),
     ({"CLICOLOR_FORCE": "0"}, True, False),
     ({"FORCE_COLOR": "0", "CLICOLOR_FORCE": "1"}, True, True),
     ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
     ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False)],
)  # fmt: skip
def test_the_environment_decides_unless_an_option_does(environ, on_terminal, in_pipe):
    assert shows_colour(Color.AUTO, Terminal(), environ) is on_terminal
    assert shows_colour(Color.AUTO, PIPE, environ) is in_pipe
    for stream in (Terminal(), PIPE):
        assert shows_colour(Color.ALWAYS, stream, environ)
        assert not shows_colour(Color.NEVER, stream, environ)
