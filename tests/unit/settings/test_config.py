"""The config file is read strictly, and all its problems are reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from configs import read_config
from dkimctl.errors import InputError, UsageError
from dkimctl.settings.config import Config, DnsTarget, NoticeSettings
from dkimctl.settings.profile import Profile

ROOT = Path(__file__).parents[3]


def test_a_missing_config_file_is_an_error_only_if_it_was_named(tmp_path):
    path = tmp_path / "none" / "config.yaml"
    assert read_config(path, required=False) == Config()
    with pytest.raises(UsageError, match="no such file"):
        read_config(path)


def test_a_directory_as_config_file_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        read_config(tmp_path, required=False)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n", "profiles: {}\n"])
def test_a_config_file_may_be_empty(load, text):
    assert load(text) == Config()


def test_all_problems_of_a_config_file_are_reported_at_once(problems):
    text = (
        "default_profil: x\n"
        "profiles:\n"
        "  prod:\n"
        "    batchsize: 5\n"
        "    timeout: never\n"
        "    auth_url:\n"
        "    proxy: [a]\n"
        "    defaults: {key_len: 512, selector: s1}\n"
        "  other: prod\n"
    )
    assert [":".join(problem.split(":")[1:4]) for problem in problems(text)] == [
        '1:1: the config file has no key "default_profil"',
        '4:5: a profile has no key "batchsize"',
        "5:14: timeout",
        "6:14: auth_url has no value",
        "7:12: proxy must be a single value, not a list",
        "8:25: key_len",
        '8:30: defaults has no key "selector"',
        "9:10: the profile other must be a mapping, not a single value",
    ]


def test_an_unknown_key_suggests_the_most_similar_one(load):
    with pytest.raises(InputError) as caught:
        load("profiles: {default: {batchsize: 5}}")
    assert caught.value.hint == "did you mean batch_size?"


@pytest.mark.parametrize(
    "key", ["client_secret", "secret", "secret_key", "password", "token", "access_token", "Secret"]
)
@pytest.mark.parametrize("text", ["{}: hunter2\n", "profiles: {{default: {{{}: hunter2}}}}\n"])
def test_a_secret_in_the_config_file_is_refused_and_not_quoted(load, key, text):
    with pytest.raises(InputError) as caught:
        load(text.format(key))
    (problem,) = caught.value.problems
    assert "secrets are not allowed in this file" in problem.message
    assert "dkimctl login" in problem.hint
    assert "hunter2" not in repr(caught.value.problems)


def test_the_example_config_shows_every_key_with_its_default(resolve):
    path = ROOT / "config.example.yaml"
    profile, default = resolve(config=read_config(path)), Profile("default")
    text = path.read_text(encoding="utf-8")
    for key in set(Profile.__slots__) - {"name"}:
        assert f"{key}:" in text
        if key not in {"auth_url", "base_url", "client_id", "defaults"}:
            assert getattr(profile, key) == getattr(default, key)


def test_the_targets_and_notices_that_the_example_config_comments_out_are_valid(load, tmp_path):
    text = (ROOT / "config.example.yaml").read_text(encoding="utf-8")
    dns = text[text.index("# dns:") : text.index("\n\n# When `dkimctl rotate run`")]
    notify = text[text.index("notify:") :].replace("# command", "command")
    config = load(
        "\n".join(line.removeprefix("# ") for line in dns.splitlines())
        + f"\n{notify.replace('# webhook', 'webhook')}"
    )
    assert config.dns == (
        DnsTarget(
            "rfc2136",
            zones=("example.com", "*.example.net"),
            server="192.0.2.1",
            key_file=str(tmp_path / "tsig.key"),
        ),
        DnsTarget(
            "octodns",
            profiles=("default",),
            class_name="octodns_route53.Route53Provider",
            settings={
                "access_key_id": "env/AWS_ACCESS_KEY_ID",
                "secret_access_key": "keyring/route53",
            },
        ),
    )
    assert config.notify == NoticeSettings(
        ("/usr/local/bin/page", "--json"), "https://hooks.example.com/x"
    )
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert all(f"{key}: " in dns or f"{key}:\n" in dns for key in keys)
