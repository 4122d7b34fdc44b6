"""`login` and `logout`: what they store and remove."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from processes import login_words

# Stops after storing the secret, as on a slow disk, until there is a file `go`.
HALTING = """
import os, time
from dkimctl.credentials.store import CredentialStore

def set_token(*_):
    while not os.path.exists("go"):
        time.sleep(0.02)

CredentialStore.set_token = set_token
"""


@pytest.fixture
def login_process(cli):
    """Start a login without waiting for its end."""

    def start(account, *words):
        process = cli.start(*login_words(account), *words, stdin=subprocess.PIPE)
        process.stdin.write(account["DKIMCTL_CLIENT_SECRET"].encode())
        process.stdin.close()
        return process

    return start


def test_a_new_login_replaces_the_old_one_and_removes_its_secret(
    cli, state, login, live_service, account
):
    other = live_service.create_client()
    assert login(account).status == 0
    assert login(other).status == 0
    assert other["DKIMCTL_CLIENT_SECRET"] in kept(state)
    assert account["DKIMCTL_CLIENT_SECRET"] not in kept(state)
    assert cli("logout").status == 0
    assert other["DKIMCTL_CLIENT_SECRET"] not in kept(state)
    again = cli("logout")
    assert (again.status, "not logged in" in again.err) == (0, True), "once more does no harm"


def test_concurrent_logins_lose_nothing(state, live_service, login_process):
    accounts = [live_service.create_client() for _ in range(6)]
    running = [login_process(account, "--profile", f"p{n}") for n, account in enumerate(accounts)]
    assert [process.wait(60) for process in running] == [0] * len(running)
    assert len(json.loads((state / "logins.json").read_text())) == len(accounts)
    assert all(account["DKIMCTL_CLIENT_SECRET"] in kept(state) for account in accounts)


def test_login_refuses_while_the_config_file_would_win(cli, login, account):
    config = cli.home / ".config" / "dkimctl" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("profiles: {default: {client_id: another}}\n")
    done = login(account)
    assert done.status == 2
    assert "another client_id" in done.err


def test_an_unusable_secret_is_refused_without_being_shown(cli, account):
    for data in (b"", b"\n", b"\xff\xfeverysecret\n", b"very\x00secret\n"):
        done = cli(*login_words(account), stdin=data)
        assert done.status == 3
        assert "secret" in done.err
        assert "verysecret" not in done.err


def test_a_wrong_secret_is_not_stored(cli, login, account):
    done = login(account | {"DKIMCTL_CLIENT_SECRET": "wrong-secret"})
    assert done.status == 3
    assert "invalid_client" in done.err
    assert "dkimctl login" not in done.err, "it has just failed"
    assert "wrong-secret" not in done.err + done.out
    assert not (cli.home / ".local/state/dkimctl").exists()


@pytest.mark.parametrize("exported", ["DKIMCTL_CLIENT_SECRET", "DKIMCTL_ACCESS_TOKEN"])
def test_login_refuses_an_exported_secret_or_token(login, cli, account, exported):
    cli.environment[exported] = "a secret"
    done = login(account)
    assert done.status == 2
    assert f"the environment sets {exported}, which every command uses" in done.err
    assert f"`unset {exported}`" in done.err
    assert "a secret" not in done.err


def test_urls_and_client_id_of_the_environment_are_answers(cli, account):
    secret = account.pop("DKIMCTL_CLIENT_SECRET")
    words = ("login", "--credential-store", "file", "--secret-stdin")
    done = cli(*words, stdin=secret, env=account)
    assert done.status == 0, done.err
    status = cli("status", "--format", "json").json
    assert status["client_id"] == account["DKIMCTL_CLIENT_ID"]
    assert status["sources"]["base_url"]["kind"] == "login"
    assert cli("token").status == 0, "without the variables"


def test_a_malformed_answer_is_asked_for_again(on_terminal, account):
    wrong = [("Auth URL (", "auth.example"), ("Auth URL (", "http://auth.example"),
             ("Auth URL (", account["DKIMCTL_AUTH_URL"]), ("Base URL (", ""),
             ("Base URL (", account["DKIMCTL_BASE_URL"]), ("Client ID (", "id:secret"),
             ("Client ID (", account["DKIMCTL_CLIENT_ID"]), ("Client secret (", ""),
             ("Client secret (", account["DKIMCTL_CLIENT_SECRET"])]  # fmt: skip
    status, shown = on_terminal(["login", "--credential-store", "file"], wrong)
    assert status == 0, shown
    for reason in ("Auth URL: the URL lacks a scheme", "Auth URL: http:// is allowed for loopback",
                   "Base URL: the answer is empty", "Client ID: the client ID is empty, or",
                   "Client secret: the secret is empty"):  # fmt: skip
        assert f"warning:\x1b[0m {reason}" in shown
    assert "id:secret" not in shown.replace("id:secret\r\n", "", 1), "only echoed"


@pytest.mark.parametrize(
    ("words", "answer", "said", "expected"),
    [
        ([], "nonsense", "Auth URL: the URL lacks a scheme or host", 2),
        (["--auth-url", "https://a.example", "--base-url", "https://a.example", "--client-id", "i"],
         "\u20ac", "the secret contains", 3),
    ],
)  # fmt: skip
def test_the_third_malformed_answer_is_the_last(on_terminal, words, answer, said, expected):
    question = "Client secret (" if words else "Auth URL ("
    status, shown = on_terminal(
        ["login", "--credential-store", "file", *words], [(question, answer)] * 3
    )
    assert (status, shown.count("warning:")) == (expected, 2)
    assert f"error:\x1b[0m {said}" in shown


@pytest.mark.parametrize("words", [[], ["--auth-url", "https://a.example", "--base-url",
                                        "https://a.example", "--client-id", "id"]])  # fmt: skip
@pytest.mark.parametrize(
    ("key", "expected", "said"),
    [("\x03", 130, "interrupted"), ("\x04", None, "no answer to the prompt")],
)
def test_ctrl_c_or_the_end_of_input_at_a_prompt(
    cli, on_terminal, state, words, key, expected, said
):
    question = "Client secret (" if words else "Auth URL ("
    status, shown = on_terminal(["login", "--credential-store", "file", *words], [(question, key)])
    assert status == (expected or (3 if words else 2))
    assert f"{said}\r\n" in shown
    (line,) = (line for line in shown.splitlines() if line.endswith(said))
    assert line.startswith("dkimctl: "), "a line of its own"
    if expected:
        assert "hint: nothing was stored" in shown
        assert "ledger" not in shown
    assert not state.exists()


def test_login_without_a_terminal_says_what_is_missing(cli, account):
    words = login_words(account)
    done = cli(*(word for word in words if word != "--secret-stdin"))
    assert (done.status, "--secret-stdin" in done.err) == (3, True)
    for missing in ("--auth-url", "--base-url", "--client-id"):
        at = words.index(missing)
        done = cli(*words[:at], *words[at + 2 :], stdin="hunter2\n")
        assert done.status == 2
        assert f"hint: give {missing}, " in done.err
    assert "hint: give --auth-url, --base-url and --client-id, " in cli("login").err


@pytest.mark.parametrize("kind", ["base", "auth"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://absent.invalid", "HTTPS"])
def test_a_url_that_does_not_answer_is_named_and_nothing_stored(login, account, state, kind, url):
    if url == "HTTPS":
        url = account["DKIMCTL_BASE_URL"].replace("http://", "https://")
    done = login(account | {f"DKIMCTL_{kind.upper()}_URL": url}, "--timeout", "1s")
    assert done.status == 4
    assert f"error: {kind} URL: " in done.err
    assert not (state / "credentials.json").exists()
    assert not (state / "logins.json").exists()


def test_a_disabled_client_can_log_in_and_is_warned(cli, login, live_service, account):
    live_service.operate("client", "disable", account["DKIMCTL_CLIENT_ID"])
    done = login(account)
    assert done.status == 0
    assert "warning: base URL: the service refused the access token (403)" in done.err
    assert "temporarily disabled" in done.err
    assert cli("status").status == 0


PAGE = b"<!DOCTYPE html><title>Welcome</title>"


@pytest.mark.parametrize(
    ("status", "body", "warning"),
    [
        (200, {"items": []}, ""),
        (400, {"message": "Bad Request"}, ""),
        (405, PAGE, ""),
        (200, PAGE, "answered 200 with a web page"),
        (404, {"message": "Not Found"}, "answered 404"),
        (302, b"", "answered 302"),
        (401, {"message": "Unauthorized"}, "refused the access token (401)"),
        (503, {"message": "Service Unavailable"}, "answered 503"),
    ],
)
def test_what_the_base_url_answers(
    cli, login, scripted_server, scripted_account, make_answer, status, body, warning
):
    scripted_server.registering = make_answer(status, body)
    done = login(scripted_account)
    assert done.status == 0, done.err
    assert done.err.count("warning: base URL: ") == bool(warning)
    assert warning in done.err
    tried = [(request.method, request.path) for request in scripted_server.requests[1:]]
    assert tried == [("GET", "/domain/dkim")], "which registers nothing"
    assert cli("status").status == 0


def kept(state):
    path = state / "credentials.json"
    return path.read_text() if path.exists() else ""


def test_a_login_that_cannot_be_stored_leaves_no_secret(login, account, state):
    (state / "logins.lock").mkdir(parents=True)
    refused = login(account)
    assert refused.status == 2
    assert "logins.lock: it is not a regular file" in refused.err
    assert not (state / "credentials.json").exists()
    (state / "logins.lock").rmdir()
    assert login(account).status == 0
    (state / "logins.json").unlink()
    (state / "logins.lock").unlink()
    (state / "logins.lock").mkdir()
    assert login(account).status == 2
    assert account["DKIMCTL_CLIENT_SECRET"] in kept(state), "that was there before"


def test_profiles_of_one_account_keep_its_secret_until_a_logout(cli, login, live_service, account):
    other = live_service.create_client()
    for words in ([], ["--profile", "p2"]):
        assert login(account, *words).status == 0
    assert login(other, "--profile", "p2").status == 0
    assert cli("status").status == 0
    assert login(account, "--profile", "p2").status == 0
    out = cli("logout", "--profile", "p2")
    assert out.status == 2
    assert "logging out of p2 also logs out default: they use the same login" in out.err
    assert cli("status").status == 0
    out = cli("logout", "--profile", "p2", "--yes")
    assert (out.status, "and of default, which used the same login" in out.err) == (0, True)
    assert cli("status").status == 3


def test_a_logout_that_cannot_delete_says_what_to_change(cli, login, account, state):
    assert login(account).status == 0
    (state / "credentials.json").chmod(0o644)
    out = cli("logout")
    assert out.status == 3
    assert "may still be stored" in out.err
    assert f"chmod 600 {state}/credentials.json`, and run `dkimctl logout`" in out.err


def test_concurrent_logins_to_one_profile_leave_one_secret(cli, live_service, login_process, state):
    accounts = [live_service.create_client() for _ in range(5)]
    running = [login_process(account) for account in accounts]
    assert [process.wait(60) for process in running] == [0] * len(running)
    left = [account["DKIMCTL_CLIENT_SECRET"] in kept(state) for account in accounts]
    assert left.count(True) == 1
    assert cli("status").status == 0
    assert cli("logout").status == 0
    assert kept(state) == "{}"


def test_a_profile_of_the_config_file_keeps_its_secret(cli, login, live_service, account):
    keys = {"auth_url": "AUTH_URL", "base_url": "BASE_URL", "client_id": "CLIENT_ID"}
    lines = [f"    {key}: {account[f'DKIMCTL_{name}']}" for key, name in keys.items()]
    text = "\n".join(["profiles:", "  agency:", *lines, "    credential_store: file", ""])
    config = cli.write("config.yaml", text)
    cli.environment["DKIMCTL_CONFIG"] = str(cli.home / config)
    assert login(account).status == 0
    assert cli("status", "--profile", "agency").status == 0
    assert login(live_service.create_client()).status == 0
    assert cli("status", "--profile", "agency").status == 0
    assert login(account).status == 0
    assert "also logs out agency" in cli("logout").err
    assert "and of agency, which used the same login" in cli("logout", "-y").err
    assert login(account).status == 0
    assert login(live_service.create_client()).status == 0
    assert cli("logout", "--profile", "agency").status == 0, "although its login is default's"
    assert cli("status", "--profile", "agency").status == 3


@pytest.mark.parametrize(("answer", "expected"), [("n", 1), ("", 1), ("y", 0), ("\x03", 130)])
def test_logout_asks_before_it_logs_out_another_profile(
    cli, login, on_terminal, account, answer, expected
):
    assert login(account).status == login(account, "--profile", "p2").status == 0
    status, shown = on_terminal(["logout", "--profile", "p2"], [("Go on? [y/N]", answer)])
    assert status == expected
    assert "Logging out of p2 also logs out default" in shown
    assert ("nothing was deleted" in shown) is (expected != 0)
    assert cli("status").status == (3 if expected == 0 else 0)
    assert cli("logout").status == (0 if expected == 0 else 2), "nothing is left to ask about"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("logs_in_again", [False, True])
def test_an_interrupted_login_changes_nothing(
    cli, login, account, live_service, login_process, state, number, logs_in_again
):
    before = live_service.create_client()
    if logs_in_again:
        assert login(before).status == 0
    cli.write("sitecustomize.py", HALTING)
    cli.environment["PYTHONPATH"] = str(cli.home)
    process = login_process(account)
    deadline = time.monotonic() + 20
    while account["DKIMCTL_CLIENT_SECRET"] not in kept(state) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert account["DKIMCTL_CLIENT_SECRET"] in kept(state)
    process.send_signal(number)
    cli.write("go", "")
    assert process.wait(20) == 130
    assert account["DKIMCTL_CLIENT_SECRET"] not in kept(state)
    del cli.environment["PYTHONPATH"]
    status = cli("status", "--format", "json").json
    assert bool(status["secret_source"]) is bool(status["token"]) is logs_in_again
    assert status["client_id"] == (before["DKIMCTL_CLIENT_ID"] if logs_in_again else None)


def test_a_login_repairs_a_damaged_secret(cli, login, account, state):
    assert login(account).status == 0
    damaged = json.loads(kept(state))
    path = state / "credentials.json"
    path.write_text(json.dumps(dict.fromkeys(damaged, "a\rb")))
    assert cli("status").status == 3
    assert login(account).status == 0
    assert cli("status").status == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs")
def test_a_fifo_or_huge_file_in_place_of_the_logins_is_refused(cli, login, account, state):
    assert login(account).status == 0
    logins = state / "logins.json"
    logins.unlink()
    os.mkfifo(logins)
    refused = cli("status")
    assert (refused.status, "not a regular file" in refused.err) == (2, True)
    logins.unlink()
    logins.touch()
    os.truncate(logins, 1 << 34)
    refused = cli("status")
    assert (refused.status, "file too large" in refused.err) == (2, True)


@pytest.fixture
def asking(cli, account):
    """Start a login on a terminal, and wait until the terminal's echo is off.

    Returns the process, and a function that says whether the echo is on.
    """
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    import pty
    import termios

    primary, secondary = pty.openpty()

    def echoes():
        return bool(termios.tcgetattr(secondary)[3] & termios.ECHO)

    def start(*words, **streams):
        process = cli.start(
            "login", "--credential-store", "file", "--auth-url", account["DKIMCTL_AUTH_URL"],
            "--base-url", account["DKIMCTL_BASE_URL"], "--client-id", "id", *words,
            stdin=secondary, start_new_session=True, **{"stderr": secondary} | streams,
        )  # fmt: skip
        started.append(process)
        deadline = time.monotonic() + 20
        while echoes() and time.monotonic() < deadline:
            time.sleep(0.02)
        return process, echoes

    started = []
    yield start
    for process in started:
        process.kill()
        process.wait()
    os.close(primary)
    os.close(secondary)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_a_signal_at_the_prompt_restores_the_terminal_echo(asking, number):
    process, echoes = asking()
    assert not echoes()
    process.send_signal(getattr(signal, number))
    assert process.wait(20) == 130
    assert echoes()


@pytest.mark.parametrize("streams", [{}, {"stderr": subprocess.DEVNULL}])
def test_a_secret_typed_in_place_of_a_pipe_is_not_shown(asking, streams):
    _, echoes = asking("--secret-stdin", **streams)
    assert not echoes()
