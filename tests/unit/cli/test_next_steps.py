"""The commands that notes and hints name run as they stand."""

from __future__ import annotations

import sys

import pytest

from configs import settings_from
from dkimctl.cli import next_steps
from dkimctl.cli.next_steps import CommandOptions, complete_commands, given_options, options_of
from dkimctl.settings.config import Config

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="quoted for another shell")


@pytest.mark.parametrize(
    ("files", "domains", "words"),
    [(["-"], [], ""), (["a.yaml"], [], " a.yaml"), (["list"], [], " ./list"),
     (["my list.yaml"], [], " 'my list.yaml'"),
     (["a.yaml", "b.csv", "list"], ["a.example"], " a.yaml b.csv ./list a.example"),
     (["a.yaml"], [f"d{number}.example" for number in range(6)], "")],
)  # fmt: skip
def test_spec_files_and_domains_are_selected(files, domains, words):
    check = next_steps.wait_for(next_steps.select_specs(files, domains))
    assert check == f"`dkimctl check-dns{words} --wait 30m`"


AGENCY = CommandOptions("--profile agency")


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("run `dkimctl login`", "run `dkimctl login --profile agency`"),
        ("`dkimctl check-dns --wait 30m`", "`dkimctl check-dns --profile agency --wait 30m`"),
        ("`dkimctl ledger forget a.example`", "`dkimctl ledger forget --profile agency a.example`"),
        (
            "`dkimctl rotate | dkimctl register -`",
            "`dkimctl rotate --profile agency | dkimctl register --profile agency -`",
        ),
        ("`TOKEN=$(dkimctl token)`", "`TOKEN=$(dkimctl token --profile agency)`"),
        ("first `dkimctl show-dns`, then `nsupdate`",
         "first `dkimctl show-dns --profile agency`, then `nsupdate`"),
    ],
)  # fmt: skip
def test_commands_in_backticks_get_the_profile(text, completed):
    assert complete_commands(text, AGENCY) == completed
    assert complete_commands(completed, AGENCY) == completed, "once"


@pytest.mark.parametrize(
    "text",
    ["dkimctl: the login is there", "`dkimctl serve`", "`dkimctl --help`",
     "`dkimctl profile list`", "`dkimctl login --profile other`",
     "`dkimctl register --sandbox FILE`", "`mydkimctl login`", "an odd ` backtick dkimctl login"],
)  # fmt: skip
def test_everything_else_stays_as_it_is(text):
    assert complete_commands(text, AGENCY) == text


NOTHING = {"profile": None, "sandbox": False, "config": None}


@pytest.mark.parametrize(
    ("flags", "environ", "config", "option"),
    [
        ({}, {}, Config(), ""),
        ({"profile": "t"}, {"DKIMCTL_PROFILE": "x"}, Config(), "--profile t"),
        ({"profile": "default"}, {}, Config(), "--profile default"),
        ({}, {"DKIMCTL_PROFILE": "t"}, Config(), "--profile t"),
        ({}, {}, Config(default_profile="t"), "--profile t"),
        ({"sandbox": True}, {}, Config(), "--sandbox"),
        ({"profile": "sandbox"}, {}, Config(), "--sandbox"),
    ],
)
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
