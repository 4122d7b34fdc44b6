"""`dkimctl init`: both files or none, never over something, and what it prints runs."""

from __future__ import annotations

import re
import signal
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from dns_servers import key_file
from keyrings import FILE_KEYRING

ACCOUNT = ("--auth-url", "https://AUTH.example:443/", "--base-url", "https://api.example",
           "--client-id", "my id")  # fmt: skip
DOMAINS = ("--domain", "example.com", "--domain", "bücher.example")


@pytest.fixture
def config(cli):
    return cli.home / ".config" / "dkimctl" / "config.yaml"


@pytest.fixture
def specs(cli):
    return cli.home / "domains.yaml"


def commands_in(text: str) -> list[list[str]]:
    """The commands in backticks, as words."""
    return [command.split() for command in re.findall(r"`dkimctl ([^`]+)`", text)]


@pytest.mark.skipif(sys.platform != "linux", reason="another config directory, and no modes")
def test_both_files_say_what_was_given(cli, config, specs):
    done = cli("init", *ACCOUNT, *DOMAINS, "--domain", "Example.com")
    assert (done.status, done.out) == (0, "")
    assert str(config) in done.err
    profile = yaml.safe_load(config.read_text())["profiles"]["default"]
    assert profile["auth_url"] == "https://auth.example"
    assert profile["client_id"] == "my id"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
    assert "(config file" in cli("status").out
    entries = yaml.safe_load(specs.read_text())
    assert entries["domains"] == ["example.com", "xn--bcher-kva.example"]
    assert entries["defaults"]["key_len"] == 2048
    start = datetime.fromisoformat(str(entries["defaults"]["start_date"]))
    assert start.astimezone(UTC) > datetime.now(UTC) + timedelta(days=5)
    plan = cli("register", "--sandbox", "--dry-run", "domains.yaml")
    assert "to create 2" in plan.err


def test_without_a_terminal_what_is_missing_is_named(cli, config, specs):
    done = cli("init", "--base-url", "https://api.example", env={"DKIMCTL_CLIENT_ID": "x"})
    assert (done.status, done.out) == (2, "")
    assert "no --auth-url and --domain" in done.err
    assert not config.exists()
    assert not specs.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [(("--auth-url", "http://auth.example"), "--auth-url: http:// is allowed"),
     (("--domain", "foo@example.com"), "--domain: \"foo@example.com\" is an email address"),
     (("--profile", "a b"), "--profile: invalid profile name"),
     (("--server", "https://x.example"), "--server: invalid DNS server"),
     (("--class", "x"), "--class: "), (("--key-file", "none", "--server", ""), "--server: "),
     (("--key-file", "no.key", "--server", "192.0.2.1"), "--key-file: no such TSIG key file"),
     (("--dns", "hand", "--class", "a.B"), "--class has no effect with --dns hand"),
     (("--dns", "gandi", "--class", "a.B"), "--class has no effect with --dns gandi"),
     (("--dns", "cloudfare"), "\"cloudfare\"\nhint: did you mean cloudflare?"),
     (("--sandbox", "--server", "192.0.2.1"), "nothing is written about DNS: --sandbox"),
     (("--no-config",), "a config file that exists stays as it is"),
     (("--credential-store", "x"), "--credential-store: unknown"),
     (("--output", "-"), "in --output: "), (("--output", ""), "in --output: "),
     (("--client-id", ""), "--client-id: "), (("--dns", "octodns"), "no --class"),
     (("--key-file", "k\udcff.key", "--server", "192.0.2.1"), "--key-file: "),
     (("--key-file", "k.key"), "no --server"),
     (("--config", "no/x.yaml"), "cannot write no/x.yaml: its directory does not")],
)  # fmt: skip
def test_a_mistake_is_named_and_nothing_written(cli, config, specs, words, says):
    done = cli("init", *ACCOUNT, *DOMAINS, *words)
    assert done.status == 2
    assert says in done.err
    assert "\nhint: " in done.err
    assert not config.exists()
    assert list(cli.home.glob("*.yaml")) == []


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_there_stays_and_the_rest_is_written(cli, config, specs, is_link):
    def put(file) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to("nowhere") if is_link else file.write_text("# mine\n")

    put(specs)
    done = cli("init", *ACCOUNT, *DOMAINS)
    assert (done.status, config.exists()) == (2, False)
    assert "--domain has no effect: domains.yaml is there already" in done.err
    done = cli("init", *ACCOUNT)
    assert done.status == 0, done.err
    assert "dkimctl: domains.yaml is there already and stays as it is\n" in done.err
    assert yaml.safe_load(config.read_text())["profiles"]["default"]["client_id"] == "my id"
    both = cli("init", *ACCOUNT)
    assert (both.status, both.out) == (1, "")
    assert (
        "domains.yaml is there already and stays as it is\ndkimctl: there is nothing to write"
        in both.err
    )
    assert is_link or specs.read_text() == "# mine\n"
    if is_link:  # a config file cannot be one that is broken
        return
    specs.unlink()
    config.unlink()
    put(config)
    done = cli("init", "--dns", "hand", *DOMAINS)
    assert (done.status, specs.exists()) == (2, False)
    assert "nothing is written about DNS: " in done.err
    assert cli("init", *ACCOUNT, *DOMAINS).status == 0
    assert config.read_text() == "# mine\n"
    assert yaml.safe_load(specs.read_text())["domains"][0] == "example.com"


def test_a_login_is_not_asked_for_again(cli, on_terminal, login, account, config, specs):
    """As README does it: `init` after the first keys, for `publish` and the timer."""
    assert "next: `dkimctl init`, which" in login(account).err
    cli.write("domains.yaml", "domains: [first.example]\n")
    assert cli("register", "domains.yaml").status == 0
    specs.unlink()
    status, shown = on_terminal(["init"], [("Profile [default]", ""), ("Auth URL [", ""),
        ("Base URL [", ""), (f"Client ID [{account['DKIMCTL_CLIENT_ID']}]", ""),
        ("How DNS is changed", "rfc2136"), ("Primary server", "127.0.0.1"), ("TSIG key", ""),
    ])  # fmt: skip
    assert status == 0, shown
    assert [words[0] for words in commands_in(shown)] == ["publish"]
    assert not specs.exists()
    config.unlink()
    done = cli("init", "--domain", "more.example")
    assert done.status == 0, done.err
    assert [words[0] for words in commands_in(done.err)] == ["register", "register"]
    assert (shown := cli("status")).status == 0
    assert "(config file" in shown.out


@pytest.mark.skipif(sys.platform == "win32", reason="access lists protect files there")
def test_a_directory_that_others_can_change_is_refused(cli, config, specs):
    config.parent.mkdir(parents=True)
    config.parent.chmod(0o777)
    done = cli("init", *ACCOUNT, *DOMAINS)
    assert done.status == 2
    assert "other users can write to it" in done.err
    assert not specs.exists()


def test_on_a_terminal_it_asks_and_asks_again_after_a_mistake(cli, on_terminal, config, specs):
    key_file(cli.home / "tsig.key").chmod(0o600)
    answers = [
        ("Profile [default]", "agency"), ("Auth URL (", "auth.example"),
        ("Auth URL (", "https://auth.example"), ("Base URL (", "https://api.example"),
        ("Client ID (", "id"), ("How DNS is changed", "bind"), ("How DNS is changed", "rfc2136"),
        ("Primary server", "192.0.2.1:5353"), ("TSIG key file", "tsig.key"),
        ("Domains (", "nodots"), ("Domains (", "example.com, mail.example.com"),
    ]  # fmt: skip
    status, shown = on_terminal(["init"], answers)
    assert status == 0, shown
    assert shown.count("warning:") == 3
    written = yaml.safe_load(config.read_text())
    assert written["default_profile"] == "agency"
    assert written["dns"] == [
        {"provider": "rfc2136", "server": "192.0.2.1:5353", "key_file": str(cli.home / "tsig.key")}
    ]
    assert yaml.safe_load(specs.read_text())["domains"] == ["example.com", "mail.example.com"]
    assert "(config file" in cli("status").out


def test_enter_takes_what_is_in_brackets(cli, on_terminal, config):
    answers = [("Profile [default]", ""), ("How DNS is changed", ""), ("Domains (", "example.com")]
    status, shown = on_terminal(["init", *ACCOUNT], answers)
    assert status == 0, shown
    assert "dns" not in yaml.safe_load(config.read_text())


def test_a_provider_is_known_by_name_and_a_machine_without_a_keyring_is_noticed(cli, config):
    cli.write("own.py", FILE_KEYRING)
    words = ("init", *ACCOUNT, *DOMAINS, "--dns", "Cloudflare")
    keyring = {"PYTHONPATH": str(cli.home), "PYTHON_KEYRING_BACKEND": "own.Keyring"}
    done = cli(*words, "--config", "with.yaml", "--output", "more.yaml", env=keyring)
    assert "keyring" not in done.err
    assert "octodns-cloudflare` (with pipx: `pipx inject`), and set CLOUDFLARE_TOKEN" in done.err
    done = cli(*words, env={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"})
    assert "this machine has no keyring" in done.err
    with_keyring, without = (
        yaml.safe_load(file.read_text()) for file in (cli.home / "with.yaml", config)
    )
    assert "credential_store" not in with_keyring["profiles"]["default"]
    assert without["profiles"]["default"]["credential_store"] == "file"
    target = {"provider": "octodns", "class": "octodns_cloudflare.CloudflareProvider"}
    assert without["dns"] == [target | {"settings": {"token": "env/CLOUDFLARE_TOKEN"}}]
    assert cli("status", "--config", "with.yaml").status == 3  # valid, and no secret


def test_ctrl_c_leaves_nothing(cli, on_terminal, config, specs):
    answers = [("Profile [default]", ""), ("How DNS is changed", ""), ("Domains (", "\x03")]
    status, shown = on_terminal(["init", *ACCOUNT], answers)
    assert status == 128 + signal.SIGINT, shown
    assert "nothing was written" in shown
    assert not config.exists()
    assert not specs.exists()


def test_for_the_sandbox_only_the_spec_file_is_written_and_the_commands_run(cli, config):
    done = cli("init", "--sandbox", "--domain", "example.com", "--output", "my specs.yaml")
    assert done.status == 0
    assert not config.exists()
    assert "'my specs.yaml'" in done.err
    done = cli("init", "--sandbox", "--domain", "example.com")
    for words in commands_in(done.err):
        assert "--sandbox" in words
        assert cli(*words).status == 0
    assert "example.com" in cli("show-dns", "--sandbox").out


def test_the_commands_that_it_names_lead_to_a_registration(cli, live_service, account, config):
    """From nothing to the first key, with the words that are printed."""
    done = cli(
        "init", "--auth-url", live_service.url, "--base-url", live_service.url, "--client-id",
        account["DKIMCTL_CLIENT_ID"], "--credential-store", "file", "--domain", "first.example",
        "--config", "my.yaml",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert not config.exists()
    login, plan, register = commands_in(done.err)
    done = cli(*login, "--secret-stdin", stdin=account["DKIMCTL_CLIENT_SECRET"])
    assert done.status == 0
    assert commands_in(done.err) == [plan]
    assert cli(*plan).status == 0
    assert cli(*register).status == 0
    assert "first.example" in cli("show-dns", "--config", "my.yaml").out
