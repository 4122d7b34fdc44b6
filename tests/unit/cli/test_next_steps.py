"""The commands that notes and hints name run as they stand."""

from __future__ import annotations

import sys

import pytest

from configs import settings_from
from dkimctl.cli.next_steps import CommandOptions, complete_commands, given_options, options_of
from dkimctl.settings.config import Config

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="quoted for another shell")


AGENCY = CommandOptions("--profile agency")


@pytest.mark.parametrize(
    ("text", "completed"),
    [("run `dkimctl login`", "run `dkimctl login --profile agency`"),
     ("`dkimctl check-dns --wait 30m`", "`dkimctl check-dns --profile agency --wait 30m`"),
     ("`dkimctl ledger forget a.example`", "`dkimctl ledger forget --profile agency a.example`"),
     ("`dkimctl rotate | dkimctl register -`",
      "`dkimctl rotate --profile agency | dkimctl register --profile agency -`"),
     ("`dkimctl rotate run -n`", "`dkimctl rotate run --profile agency -n`"),
     ("`TOKEN=$(dkimctl token)`", "`TOKEN=$(dkimctl token --profile agency)`"),
     *((text, text) for text in (
         "dkimctl: the login is there", "`dkimctl serve`", "`dkimctl --help`",
         "`dkimctl help settings`", "`dkimctl profile list`", "`dkimctl login --profile other`",
         "`dkimctl register --sandbox FILE`", "`mydkimctl login`", "an odd ` backtick"))],
)  # fmt: skip
def test_commands_in_backticks_get_the_profile_once(text, completed):
    assert complete_commands(text, AGENCY) == completed
    assert complete_commands(completed, AGENCY) == completed


NOTHING = {"profile": None, "sandbox": False, "config": None}


@pytest.mark.parametrize(
    ("flags", "environ", "config", "option"),
    [({}, {}, Config(), ""), ({"profile": "t"}, {"DKIMCTL_PROFILE": "x"}, Config(), "--profile t"),
     ({"profile": "default"}, {}, Config(), "--profile default"),
     ({}, {"DKIMCTL_PROFILE": "t"}, Config(), "--profile t"),
     ({}, {}, Config(default_profile="t"), "--profile t"),
     ({"sandbox": True}, {}, Config(), "--sandbox")],
)  # fmt: skip
def test_the_profile_is_named_wherever_it_comes_from(flags, environ, config, option):
    logins = {"t": {}, "x": {}}
    settings = settings_from(flags=flags, environ=environ, config=config, logins=logins)
    assert options_of(settings, NOTHING | flags).profile == option
    if config == Config():
        assert given_options(NOTHING | flags, environ).profile == option


@pytest.mark.parametrize("name", ["a secret", "`x`", "", "a;b"])
def test_a_word_that_is_no_profile_name_is_never_shown(name):
    assert not any(given_options(NOTHING | {"profile": name}, {}))
    assert not any(given_options(NOTHING, {"DKIMCTL_PROFILE": name}))
