"""`dkimctl` alone: where the profile stands, and commands that run as they stand."""

from __future__ import annotations

import re
import time

import pytest

from keyrings import HUNG_KEYRING
from published import register

ACCOUNT = ("--auth-url", "https://auth.example", "--base-url", "https://api.example",
           "--client-id", "my-id", "--domain", "example.com")  # fmt: skip


def next_of(done) -> list[list[str]]:
    """The commands below `Next:`, as words without `dkimctl`; the last two are the same always."""
    assert (done.status, done.err) == (0, ""), done
    _, after = done.out.split("\nNext:\n")
    commands = [
        line.split("   ")[0].split()
        for line in re.findall(r"^ +dkimctl (.*)$", after, re.MULTILINE)
    ]
    assert [words[0] for words in commands[-2:]] == ["doctor", "--help"]
    return commands[:-2]


def test_with_nothing_it_names_the_start_and_the_sandbox(cli):
    begin, try_it = next_of(cli())
    assert begin == ["init"]
    assert cli(*try_it).status == 0
    assert not (cli.home / ".local").exists(), "looking creates nothing"
    assert next_of(cli())[1] == ["register", "--sandbox", "domains.yaml"]


def test_in_the_sandbox_each_command_leads_to_the_next(cli):
    followed = []
    for _ in range(2):
        for words in next_of(cli("--sandbox")):
            assert "--sandbox" in words
            assert cli(*words).status == 0, words
            followed.append(words[0])
    assert followed == ["init", "register", "register"]
    show, sheet, check = next_of(cli("--sandbox"))
    assert "example.com" in cli(*show).out
    assert sheet[0] == "handoff"
    assert (check[0], check[-2:]) == ("check-dns", ["--wait", "30m"])


def test_a_config_leads_to_a_login_and_that_to_registering(cli, login, account, live_service):
    assert cli("init", *ACCOUNT).status == 0
    assert next_of(cli()) == [["login"]]
    assert login(account, "--profile", "agency").status == 0
    plan, registering = next_of(cli("--profile", "agency"))
    assert cli(*plan).status == cli(*registering).status == 0
    (cli.home / "domains.yaml").unlink()
    assert next_of(cli("-p", "agency"))[0][:3] == ["show-dns", "--profile", "agency"]
    assert cli("logout", "-p", "agency").status == 0
    commands = next_of(cli("-p", "agency"))
    assert [words[0] for words in commands] == ["login", "show-dns", "handoff", "check-dns"]


def test_damaged_credentials_need_a_login(cli, login, account):
    assert login(account).status == 0
    [file] = cli.home.rglob("credentials.json")
    file.write_text("{")
    assert next_of(cli())[0] == ["login"]
    assert (done := cli("login")).status == 3
    assert "hint: delete it, then run `dkimctl login` again" in done.err


def test_without_a_spec_file_it_names_what_writes_one(cli, account):
    shown = cli(env=account)
    assert "logged in" in shown.out
    [words] = next_of(shown)
    assert words == ["init"]
    assert cli(*words, "--domain", "example.com", env=account).status == 0
    assert [words[0] for words in next_of(cli(env=account))] == ["register", "register"]


def test_what_is_urgent_comes_first(cli):
    register(cli, "later.example", more="enable: true, start_date: 2036-01-01T00:00+00:00")
    register(cli, "now.example", more="enable: true")
    shown = cli("--sandbox")
    assert shown.out.startswith("URGENT: signing now without DNS")
    show, _, _ = next_of(shown)
    assert show == ["show-dns", "--sandbox", "now.example"]
    own = next_of(cli())
    assert own[:2] == next_of(shown)[:2], "there is nothing else than the sandbox"
    assert own[-1] == ["init"]
    assert "later.example" not in shown.out
    targets = "dns: [{provider: rfc2136, server: 127.0.0.1, profiles: [sandbox]}]\n"
    cli.write("config.yaml", targets)
    publish, _, _ = next_of(cli("--sandbox", "--config", "config.yaml"))
    assert publish == ["publish", "--sandbox", "--config", "config.yaml", "now.example"]


def test_it_sends_nothing_and_waits_for_no_keyring(cli, scripted_server):
    url = scripted_server.url
    cli.write("hanging.py", HUNG_KEYRING)
    cli.environment |= {"PYTHONPATH": str(cli.home), "PYTHON_KEYRING_BACKEND": "hanging.Keyring"}
    words = ("--auth-url", url, "--base-url", url, "--client-id", "id", "--domain", "example.com")
    assert cli("init", *words).status == 0
    begun = time.monotonic()
    assert next_of(cli()) == [["login"]]
    assert time.monotonic() - begun < 3
    assert scripted_server.connections == 0


def test_the_help_is_still_the_help(cli):
    assert cli("--help").out.split()[:2] == ["Usage:", "dkimctl"]
    assert cli("--profile", "default", "--help").out == cli("--help").out


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--profile", "nope"], "dkimctl login --profile nope"), (["--config", "no.yaml"], "no.yaml"),
     (["--config", "bad.yaml"], "bad.yaml:1:1: ")],
)  # fmt: skip
def test_a_mistake_is_an_error_with_a_hint(cli, words, says):
    cli.write("bad.yaml", "nonsense: 1\n")
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert says in done.err
    assert "\nhint: " in done.err


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_it_fits_the_terminal(cli, width):
    register(cli, *(f"a-rather-long-name-{number}.example.com" for number in range(4)),
             more="enable: true")  # fmt: skip
    shown = cli("--sandbox", env={"COLUMNS": str(width)})
    lines = shown.out.splitlines()
    commands = [line for line in lines if "dkimctl" in line]
    assert max(len(line) for line in lines if line not in commands) <= width
