"""The first config file: it loads, and explains what config.example.yaml explains."""

from __future__ import annotations

import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from configs import read_config
from dkimctl.cli.commands.init import first_config
from dkimctl.settings.config import DnsTarget
from dkimctl.settings.rotation import RotationSettings

ACCOUNT = {
    "auth_url": "https://auth.example.com",
    "base_url": "https://api.example.com/v2",
    "client_id": "id",
}
ANSWERS = {"profile": "agency", **ACCOUNT}


@given(st.text(st.characters(exclude_categories=("C",), exclude_characters=":"), min_size=1))
def test_another_parser_reads_any_client_id(client_id):
    text = first_config(ANSWERS | {"client_id": client_id})
    assert yaml.safe_load(text)["profiles"]["agency"]["client_id"] == client_id


def test_without_its_comment_signs_it_is_valid(tmp_path):
    path = tmp_path / "config.yaml"
    settings = {"token": "env/TOKEN"}
    for target in (None, DnsTarget("octodns", class_name="a.B", settings=settings)):
        text = first_config(ANSWERS | {"target": target})
        assert max(map(len, text.splitlines())) < 80
        for _ in range(2):  # some comments are in comments
            text = re.sub(r"(?m)^( *)# (?=#| *(?:- )?[a-z_]+:(?: [^a-z]| [^ ]+$|$))", r"\1", text)
        path.write_text(text, encoding="utf-8")
        config = read_config(path)
        assert config.default_profile == "agency"
        assert {entry.provider for entry in config.dns} == {"rfc2136", "octodns"}
        assert config.rotation.entries == (RotationSettings(),)
        assert config.notify.command
        assert len(config.profiles["agency"]["defaults"]) == 4
