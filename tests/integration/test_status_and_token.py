"""`status` says where credentials are, without showing them; `token` prints a valid token."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from datetime import datetime

import pytest


@pytest.fixture
def logged_in(login, account):
    """Log in with secret and token in a file; returns the secret."""
    assert login(account).status == 0
    return account["DKIMCTL_CLIENT_SECRET"]


def credentials_file(cli):
    (path,) = cli.home.rglob("credentials.json")
    return path


def stored_token(cli) -> dict:
    entries = json.loads(credentials_file(cli).read_text())
    (text,) = (text for name, text in entries.items() if "dkimctl token" in name)
    return json.loads(text)


def change_token(cli, **dates: float) -> None:
    """Change dates of the stored token."""
    path = credentials_file(cli)
    entries = json.loads(path.read_text())
    (name,) = (name for name in entries if "dkimctl token" in name)
    path.write_text(json.dumps(entries | {name: json.dumps(stored_token(cli) | dates)}))


def test_status_says_where_credentials_are_and_shows_no_secret(cli, logged_in, account):
    done = cli("status", "--format", "json")
    status = done.json
    assert (done.status, done.err) == (0, "")
    assert status["profile"] == "default"
    assert status["base_url"] == account["DKIMCTL_BASE_URL"]
    assert status["client_id"] == account["DKIMCTL_CLIENT_ID"]
    assert status["secret_source"] == f"file {credentials_file(cli)}"
    left = datetime.fromisoformat(status["token_expires_at"]).timestamp() - time.time()
    assert 3400 < left <= 3600
    table = cli("status")
    assert table.status == 0
    token = stored_token(cli)["access_token"]
    for text in (done.out, table.out):
        assert logged_in not in text
        assert token not in text
        assert f"({len(token)} characters)" in text


def test_the_cached_token_is_printed_until_its_last_minute(cli, logged_in):
    first = stored_token(cli)["access_token"]
    assert cli("token").out == f"{first}\n"
    change_token(cli, expires_at=time.time() + 50, obtained_at=time.time() - 3550)
    done = cli("token")
    assert (done.status, done.err) == (0, "")
    assert done.out != f"{first}\n"
    assert done.out == f"{stored_token(cli)['access_token']}\n"
    change_token(cli, expires_at=1e300)  # beyond the calendar
    status = cli("status", "--format", "json")
    assert (status.status, status.json["token"], status.json["token_expires_at"]) == (0, None, None)
    assert cli("token").out not in (done.out, "")


def test_status_with_the_environment_only(cli, account):
    done = cli("status", "--format", "json", env=account)
    assert (done.status, done.json["secret_source"]) == (0, "environment")
    assert account["DKIMCTL_CLIENT_SECRET"] not in done.out
    del account["DKIMCTL_CLIENT_SECRET"]
    account["DKIMCTL_ACCESS_TOKEN"] = "a-token-of-one's-own-that-nobody-is-to-see"
    done = cli("status", "--format", "json", "--credential-store", "file", env=account)
    assert (done.status, done.json["secret_source"]) == (0, None)
    assert "one's-own" not in done.out
    assert cli("token", env=account).out == f"{account['DKIMCTL_ACCESS_TOKEN']}\n"


@pytest.mark.parametrize("words", [(), ("--profile", "sandbox")])
def test_status_without_a_login(cli, words):
    done = cli("status", "--format", "json", *words)
    assert done.status == (0 if words else 3)
    assert (done.json["problem"] is None) is bool(words)
    done = cli("token", *words)
    assert done.status == (0 if words else 2)
    assert bool(done.out) is bool(words)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_token_that_cannot_be_written_is_an_error(cli, account):
    command = f"{shlex.join(cli.command('token'))} >&-"
    done = subprocess.run(
        ["sh", "-c", command], env=cli.environment | account, capture_output=True, check=False
    )
    assert done.returncode == 4
    assert b"stdout is closed" in done.stderr
    assert b"read the token from stdout" in done.stderr


@pytest.fixture
def refusing(cli, scripted_server, make_answer, login):
    """Log in at a service that issues `issued` tokens and answers other requests with 403."""
    scripted_server.issued = 0

    def answer(request):
        if request.path != "/oauth2/token":
            return make_answer(403, {"message": "Forbidden"})
        if scripted_server.issued is None:
            return make_answer(500)
        scripted_server.issued += 1
        return make_answer(200, {"access_token": f"token-number-{scripted_server.issued}"})

    scripted_server.answer = answer
    url = scripted_server.url
    account = {"DKIMCTL_AUTH_URL": url, "DKIMCTL_BASE_URL": url, "DKIMCTL_CLIENT_ID": "id"}
    assert login(account | {"DKIMCTL_CLIENT_SECRET": "a secret"}).status == 0
    return scripted_server


ENTRY = "- {sign_domain: status.example, selector: s1, key_len: 2048, enable: false}\n"


@pytest.mark.parametrize("words", [["api", "GET", "/x"], ["register", "-"]])
def test_a_refused_token_is_not_used_again_even_without_a_new_one(cli, refusing, words):
    refusing.issued = None
    assert cli(*words, "--max-wait", "1s", stdin=ENTRY).status == 4
    assert "token-number-1" not in credentials_file(cli).read_text()
    assert cli("status", "--format", "json").json["token"] is None
    refusing.issued = 1
    assert cli("token").out == "token-number-2\n"


def test_a_new_token_that_is_refused_is_not_kept_either(cli, refusing):
    done = cli("api", "GET", "/x")
    assert (done.status, "temporarily disabled" in done.err) == (3, True)
    assert refusing.issued == 2
    assert "token-number" not in credentials_file(cli).read_text()
    assert cli("token").out == "token-number-3\n"


def test_the_users_own_token_is_named_if_the_service_refuses_it(cli, account):
    own = account | {"DKIMCTL_ACCESS_TOKEN": "an-older-token"}
    said = "warning: the service refused the token in DKIMCTL_ACCESS_TOKEN (403)"
    done = cli("register", "-", stdin=ENTRY, env=own)
    assert (done.status, done.err.count(said)) == (0, 1)
    assert "an-older-token" not in done.err + done.out
    done = cli("api", "DELETE", "/send/1", env=own | {"DKIMCTL_CLIENT_SECRET": ""})
    assert (done.status, done.err.count(said)) == (3, 0)
    assert "error: the service refused the token in DKIMCTL_ACCESS_TOKEN (403)\n" in done.err
    assert "hint: set the variable to a valid token, or unset it and run `dkimctl" in done.err


def test_a_wrong_secret_of_the_environment_is_told_as_such(cli, login, account):
    assert login(account).status == 0
    done = cli("token", "--profile", "default", env={"DKIMCTL_CLIENT_SECRET": "wrong"})
    assert (done.status, done.out) == (3, "")
    said = "refused the client ID or the secret in DKIMCTL_CLIENT_SECRET: invalid_client\n"
    assert said in done.err
    assert "or unset it and run `dkimctl login --profile default`" in done.err


def test_status_says_where_each_setting_comes_from(cli, login, account, tmp_path):
    config = cli.write("config.yaml", "profiles: {t: {batch_size: 7, timeout: 5s}}\n")
    environment = {"DKIMCTL_CONFIG": config, "DKIMCTL_PROFILE": "t"}
    cli.environment |= environment
    assert login(account).status == 0
    words = ("status", "--concurrency", "3")
    more = {"DKIMCTL_CLIENT_ID": "other", "HTTPS_PROXY": "http://user:hunter2@proxy.example:3128"}
    done = cli(*words, "--format", "json", env=more)
    sources = done.json["sources"]
    assert sources["profile"] == {"kind": "environment", "name": "DKIMCTL_PROFILE"}
    assert sources["base_url"] == {"kind": "login", "name": None}
    assert sources["client_id"] == {"kind": "environment", "name": "DKIMCTL_CLIENT_ID"}
    assert sources["concurrency"] == {"kind": "option", "name": "--concurrency"}
    assert sources["batch_size"] == sources["timeout"] == {"kind": "config", "name": config}
    assert sources["max_wait"] == {"kind": "default", "name": None}
    assert sources["proxy"] == {"kind": "environment", "name": "HTTPS_PROXY"}
    assert done.json["proxy"] == "http://***@proxy.example:3128"
    assert (done.json["batch_size"], done.json["concurrency"]) == (7, 3)
    table = cli(*words, env=more)
    assert "3  (option --concurrency)\n" in table.out
    assert f"7  (config file {config})\n" in table.out
    assert "hunter2" not in done.out + table.out
    secret = cli("status", "--format", "json").json["sources"]["secret_source"]
    assert secret == {"kind": "login", "name": None}
    exported = cli("status", "--format", "json", env=account | {"DKIMCTL_ACCESS_TOKEN": "mine"})
    assert exported.json["sources"]["token"]["name"] == "DKIMCTL_ACCESS_TOKEN"
    assert exported.json["sources"]["secret_source"]["name"] == "DKIMCTL_CLIENT_SECRET"
