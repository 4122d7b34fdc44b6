"""The first config file: it loads, and explains what config.example.yaml explains."""

from __future__ import annotations

import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from configs import read_config
from dkimctl.cli.commands.init import first_config
from dkimctl.settings.config import Config, DnsTarget

ACCOUNT = {
    "auth_url": "https://auth.example.com",
    "base_url": "https://api.example.com/v2",
    "client_id": "id",
}
ANSWERS = {"profile": "agency", **ACCOUNT}


def load(tmp_path, answers: dict) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(first_config(answers), encoding="utf-8")
    return read_config(path)


def test_it_says_what_was_answered_and_nothing_else(tmp_path):
    config = load(tmp_path, ANSWERS)
    assert config.default_profile == "agency"
    assert config.profiles == {"agency": {**ACCOUNT, "defaults": {"key_len": 2048}}}
    assert config[2:] == Config()[2:]
    kept = load(tmp_path, ANSWERS | {"credential_store": "file"})
    assert kept.profiles["agency"]["credential_store"] == "file"


@given(st.text(st.characters(exclude_categories=("C",), exclude_characters=":"), min_size=1))
def test_another_parser_reads_any_client_id(client_id):
    text = first_config(ANSWERS | {"client_id": client_id})
    assert yaml.safe_load(text)["profiles"]["agency"]["client_id"] == client_id


def test_without_its_comment_signs_it_is_valid(tmp_path):
    path = tmp_path / "config.yaml"
    for target in (None, DnsTarget("octodns", class_name="a.B")):
        text = first_config(ANSWERS | {"target": target})
        for _ in range(2):  # some comments are in comments
            text = re.sub(r"(?m)^( *)# (?=#| *(?:- )?[a-z_]+:(?: [^a-z]| [^ ]+$|$))", r"\1", text)
        path.write_text(text, encoding="utf-8")
        config = read_config(path)
        assert {one.provider for one in config.dns} == {"rfc2136", "octodns"}
        assert config.rotation == Config().rotation
        assert config.notify.command
        assert len(config.profiles["agency"]["defaults"]) == 4
