"""`profile`: which profiles there are, which one is used, and what deleting one leaves."""

from __future__ import annotations

import os
import sys

import pytest

from documents import example

ENTRY = "- {sign_domain: profiles.example, selector: s1, key_len: 2048, enable: false}\n"


@pytest.fixture
def config(cli):
    """Write the config file in its default place."""

    def config(text: str) -> str:
        path = cli.home / ".config" / "dkimctl" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return config


def listed(cli, *words, **options) -> dict[str, dict]:
    done = cli("profile", "list", "-f", "json", *words, **options)
    assert done.status == 0, done.err
    return {profile["name"]: profile for profile in done.json["profiles"]}


def in_use(cli, *words, **options) -> tuple[str, str]:
    """The name of the profile in use, and what chose it."""
    (used,) = (one for one in listed(cli, *words, **options).values() if one["in_use"])
    return used["name"], used["chosen_by"]["kind"]


def test_a_list_of_all_profiles(cli, login, account, config, on_terminal):
    assert login(account, "--profile", "agency").status == 0
    config("profiles: {eu: {base_url: 'https://eu.example', client_id: me}, agency: {timeout: 5s}}")
    profiles = listed(cli)
    assert [*profiles] == ["agency", "default", "eu", "sandbox"]
    assert profiles["agency"]["base_url"] == account["DKIMCTL_BASE_URL"]
    assert profiles["agency"]["client_id"] == account["DKIMCTL_CLIENT_ID"]
    assert [one["logged_in"] for one in profiles.values()] == [True, False, False, True]
    assert [one["defined_in"] for one in profiles.values()] == [
        ["config", "login"], ["built in"], ["config"], ["built in"],
    ]  # fmt: skip
    shown = cli("profile", "list").out
    assert "*  default" in shown
    assert "in use, by default" in shown
    status, shown = on_terminal(["profile", "list", "--color", "never"], size=(24, 80))
    assert (status, max(map(len, shown.splitlines())) <= 80) == (0, True)
    assert account["DKIMCTL_CLIENT_SECRET"] not in shown


def test_option_environment_config_and_use_take_precedence_in_this_order(
    cli, login, account, config
):
    for name in "abc":
        assert login(account, "--profile", name).status == 0
    assert in_use(cli) == ("default", "default")
    assert cli("profile", "use", "a").status == 0
    assert in_use(cli) == ("a", "profile use")
    assert cli("status", "--format", "json").json["profile"] == "a"
    config("default_profile: b\n")
    assert in_use(cli) == ("b", "config")
    environment = {"DKIMCTL_PROFILE": "c"}
    assert in_use(cli, env=environment) == ("c", "environment")
    assert in_use(cli, "--profile", "a", env=environment) == ("a", "option")
    assert in_use(cli, "--sandbox", env=environment) == ("sandbox", "option")


def test_use_says_what_takes_precedence(cli, login, account, config):
    assert login(account, "--profile", "a").status == 0
    done = cli("profile", "use", "a", env={"DKIMCTL_PROFILE": "sandbox"})
    assert done.status == 0
    assert 'warning: DKIMCTL_PROFILE is set to "sandbox", which takes precedence' in done.err
    assert in_use(cli) == ("a", "profile use")
    path = config("default_profile: sandbox\n")
    done = cli("profile", "use", "a")
    assert done.status == 2
    assert "the config file has default_profile: sandbox" in done.err
    assert path in done.err
    assert cli("profile", "use", "sandbox").status == 0, "as the config file says"
    config("")
    assert in_use(cli) == ("a", "profile use"), "which did not change"
    assert cli("profile", "use", "default").status == 0
    assert in_use(cli) == ("default", "default")


def test_the_commands_of_the_documentation(login, account, shell, cli):
    assert login(account, "--profile", "agency").status == 0
    done = shell(example("dkimctl profile list", "sh"), {})
    assert "agency" in done.stdout
    assert "the profile agency is used from now on" in done.stderr
    assert [*listed(cli)] == ["default", "sandbox"]


@pytest.mark.parametrize("verb", ["use", "delete"])
def test_an_unknown_profile_is_not_used_or_deleted(cli, login, account, verb):
    assert login(account, "--profile", "agency").status == 0
    done = cli("profile", verb, "agenzy")
    assert done.status == 2
    assert "unknown profile agenzy; known profiles: agency, default, sandbox" in done.err
    done = cli("profile", verb, "a secret")
    assert (done.status, "a secret" in done.err) == (2, False)
    done = cli("profile", verb, "agency", "--profile", "default")
    assert (done.status, "two profiles are named" in done.err) == (2, True)


def test_deleting_a_profile_leaves_its_ledger(cli, login, account, state):
    assert login(account, "--profile", "p").status == 0
    assert cli("profile", "use", "p").status == 0
    assert cli("register", "-", stdin=ENTRY).status == 0
    done = cli("profile", "delete", "p")
    assert (done.status, "hint: add --yes" in done.err) == (2, True)
    done = cli("profile", "delete", "p", "--yes")
    assert done.status == 0
    assert "deleted the profile p; the ledger keeps its domains\n" in done.err
    assert "the profile default is used from now on" in done.err
    assert [*listed(cli)] == ["default", "sandbox"]
    assert account["DKIMCTL_CLIENT_SECRET"] not in (state / "credentials.json").read_text()
    assert not (state / "profile").exists()
    assert login(account).status == 0
    assert "s1._domainkey.profiles.example" in cli("show-dns").out


def test_a_shared_secret_stays_for_the_others(cli, login, account, config):
    for name in ("p", "q"):
        assert login(account, "--profile", name).status == 0
    done = cli("profile", "delete", "p", "-y")
    assert "the secret stays for q" in done.err
    assert cli("token", "--profile", "q").status == 0
    path = config("profiles: {q: {batch_size: 3}}\n")
    done = cli("profile", "delete", "q", "-y")
    assert "deleted the login of the profile q" in done.err
    assert f"it is still in {path} (batch_size)" in done.err
    assert listed(cli)["q"]["defined_in"] == ["config"]
    assert cli("status", "--profile", "q").status == 3


def test_the_sandbox_cannot_be_deleted(cli):
    done = cli("profile", "delete", "sandbox", "--yes")
    assert (done.status, "cannot be deleted" in done.err) == (2, True)


@pytest.mark.parametrize(("answer", "expected"), [("n", 1), ("yes", 0), ("\x03", 130)])
def test_delete_asks_on_a_terminal(cli, login, account, on_terminal, answer, expected):
    assert login(account, "--profile", "p").status == 0
    status, shown = on_terminal(["profile", "delete", "p"], [("Delete the profile p", answer)])
    assert status == expected
    assert ("nothing was deleted" in shown) is (expected != 0)
    assert ("p" in listed(cli)) is (expected != 0)


def test_the_choice_of_a_profile_that_is_gone_is_an_error(cli, login, account, state):
    assert login(account, "--profile", "p").status == 0
    assert cli("profile", "use", "p").status == 0
    (state / "logins.json").write_text("{}")
    done = cli("status")
    assert done.status == 2
    assert "unknown profile p (profile use)" in done.err
    assert "`dkimctl profile use NAME`" in done.err
    done = cli("profile", "list")
    assert (done.status, "does not exist" in done.err) == (0, True)
    assert cli("status", "--profile", "default").status == 3
    assert cli("profile", "delete", "p", "--yes").status == 0
    assert in_use(cli) == ("default", "default")


@pytest.mark.skipif(sys.platform == "win32", reason="file modes are POSIX")
def test_a_choice_that_others_can_change_is_not_used(cli, login, account, state):
    assert login(account, "--profile", "p").status == 0
    assert cli("profile", "use", "p").status == 0
    assert (state / "profile").stat().st_mode & 0o777 == 0o600
    (state / "profile").chmod(0o666)
    done = cli("token")
    assert (done.status, done.out) == (2, "")
    assert "profile: other users can" in done.err or "unsafe" in done.err
    (state / "profile").unlink()
    os.mkfifo(state / "profile")
    assert cli("token").status == 2
    assert cli("token", "--profile", "p").status == 0, "which does not depend on it"


DNS = """
dns:
  - {provider: rfc2136, server: 192.0.2.1, key_file: /none/tsig.key, zones: [example.com]}
  - {provider: octodns, class: none_such.Provider, settings: {token: env/NONE, key: keyring/none}}
notify: {webhook: env/NONE, command: /none/page}
"""


def test_what_does_not_change_dns_leaves_its_keys_and_secrets_alone(cli, config, login, account):
    words = (("status", "--sandbox", "-f", "table"), ("status", "--sandbox", "-f", "json"))
    config("")
    before = [cli(*each) for each in words]
    config(DNS)
    assert [cli(*each) for each in words] == before
    assert login(account).status == 0
    assert [*listed(cli)] == ["default", "sandbox"]
    assert cli("profile", "use", "default").status == 0
    assert cli("profile", "delete", "default", "--yes").status == 0
