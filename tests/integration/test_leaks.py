"""Secret and token leak into no stream, file or process, whatever goes wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

import hostile
import quotations
from dkimctl.cli.main import COMMANDS
from loose_talk import SITE

CLIENT_ID = "client-id-of-the-leak-test"
SECRET = "s3cr3t+Leak/Test=value&0815"
TOKEN = "t0ken.Leak-Test/4711+abcdefghij=="
ENTRY = "- {sign_domain: example.com, selector: s1}\n"
STORE = "credentials.json"  # the one file that may contain both
LIMIT = 20.0  # seconds


# The client ID is not secret, so what begins its Basic credentials is not.
SECRETS = (SECRET, TOKEN, f"{CLIENT_ID}:{SECRET}")
WANTED = set().union(*map(quotations.runs_of, SECRETS)) - quotations.runs_of(f"{CLIENT_ID}:")


def leaks(data: bytes) -> set[bytes]:
    return quotations.leaks(data, WANTED)


def issuing(say):
    """Answer as a service that issues tokens; `say` answers other requests."""
    body = json.dumps({"access_token": TOKEN, "expires_in": 3600}).encode()

    def answer(request):
        return [hostile.whole(body)] if b"/oauth2/token" in request else say(request)

    return answer


def environment_of(url, **more):
    return {
        "DKIMCTL_AUTH_URL": url,
        "DKIMCTL_BASE_URL": url,
        "DKIMCTL_CLIENT_ID": CLIENT_ID,
        "DKIMCTL_CLIENT_SECRET": SECRET,
        "DKIMCTL_DEBUG": "1",
        **more,
    }


@pytest.fixture
def run(cli):
    """Run a command, and search its output and files for leaks."""
    cli.at_start(SITE)
    cli.skip_backoff()

    def run(*words, stdin=ENTRY, **environment):
        done = subprocess.run(
            cli.command(*words), input=stdin.encode(), capture_output=True, cwd=cli.home,
            env=cli.environment | environment, timeout=60, check=False,
        )  # fmt: skip
        assert not leaks(done.stderr)
        assert b"STARTED A PROCESS" not in done.stderr
        if words[0] != "token":
            assert not leaks(done.stdout)
        search_files(cli.home)
        return done

    return run


def test_started_processes_are_detected(cli, run):
    words = [sys.executable, "-c", "import os; os.system('')"]
    done = subprocess.run(words, env=cli.environment, capture_output=True, check=False)
    assert b"STARTED A PROCESS: os.system" in done.stderr


def search_files(home: Path) -> None:
    for path in home.rglob("*"):
        if path.is_file() and path.name not in (STORE, f"{STORE}.before"):
            assert not leaks(path.read_bytes()), path


def log_in(run, url, *words, secret=SECRET):
    return run(
        "login", "--auth-url", url, "--base-url", url, "--client-id", CLIENT_ID,
        "--credential-store", "file", "--secret-stdin", "--timeout", "2s", *words,
        stdin=secret + "\n", DKIMCTL_DEBUG="1",
    )  # fmt: skip


def echo(status):
    """Quote the whole request in an error of the documented shape."""

    def say(request):
        text = request.decode("latin-1")
        return [hostile.whole(json.dumps({"message": text, "error": text}).encode(), status)]

    return say


def test_a_token_endpoint_that_quotes_the_request(serve, run):
    server = serve(echo("400 Bad"))
    assert log_in(run, server.url, "-v").returncode == 3
    done = run("token", "-v", "--timeout", "2s", **environment_of(server.url))
    assert done.returncode == 3
    assert not leaks(done.stdout)
    assert server.requests


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden"])
def test_an_api_that_quotes_the_request(serve, run, status):
    server = serve(issuing(echo(status)))
    environment = environment_of(server.url)
    run("api", "POST", "/x", "--input", "-", "-v", **environment)
    run("register", "-", "-v", "--format", "json", **environment)
    assert any(b"Bearer" in request for request in server.requests)


def item_with(**fields):
    """The body of a registration whose item has `fields`, and is fine but for them."""
    setting = {"fqdn": "s1._domainkey.example.com", "type": "TXT", "value": fields.pop("good")}
    setting |= {name: fields.pop(name) for name in {*setting} & {*fields}}
    result = {"code": "201", "message": "created"}
    result |= {name: fields.pop(name) for name in {*result} & {*fields}}
    item = {"result": result, "sign_domain": "example.com", "selector": "s1"}
    item |= {"regist_date": "2026-07-01T00:00:00+09:00", "setting_values": setting}
    return json.dumps({"items": [item | fields], "count": 1, "total": 1}).encode()


QUOTING = " | ".join(each for secret in SECRETS for each in quotations.quotations(secret))


@pytest.mark.slow
@pytest.mark.parametrize("field", ["message", "value"])
def test_an_item_that_quotes_parts_of_secrets(serve, cli, run, key_records, field):
    """In no stream, file or format is there a run of a secret, nor in the ledger."""
    good = key_records[1024]
    body = item_with(good=good, **{field: QUOTING})
    server = serve(issuing(lambda request: [hostile.whole(body)]))
    environment = environment_of(server.url)
    words = ["register", "-", "-v", "--max-wait", "1s", "--output", "first.json"]
    done = run(*words, stdin="- example.com\n", **environment)
    assert (done.returncode == 0) == (field == "message")
    ledger = next(cli.home.rglob("ledger.db"))
    assert b"***" in ledger.read_bytes()
    for form in ("table", "json", "csv", "zone"):
        run("show-dns", "--format", form, "--output", f"shown.{form}", **environment)
    zones = [path.read_text() for path in cli.home.glob("shown.zone")]
    assert (field == "message") == any("MIG" in zone for zone in zones)


def test_items_in_another_encoding_that_quote_the_token(serve, run):
    """Python's json would read them, although nothing was redacted in them."""
    body = item_with(good="v=DKIM1; p=", message=TOKEN).decode().encode("utf-16")
    server = serve(issuing(lambda request: [hostile.whole(body)]))
    run("register", "-", "-v", "--format", "json", **environment_of(server.url))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "make"),
    [
        ("403 Forbidden", lambda text: json.dumps({"message": text, "error": text}).encode()),
        ("200 OK", lambda text: b"<html>\xff" + text.encode()),
    ],
    ids=["JSON", "HTML"],
)
def test_a_response_that_quotes_parts_of_secrets(serve, run, status, make):
    body = make(QUOTING)
    known = make(" | ".join(quotations.quotations(SECRET)))  # no token has been issued
    refusing = serve(lambda request: [hostile.whole(known, status)])
    done = run("token", "-v", "--timeout", "2s", **environment_of(refusing.url))
    assert not leaks(done.stdout)
    server = serve(issuing(lambda request: [hostile.whole(body, status, X_Echo=TOKEN[:-1])]))
    environment = environment_of(server.url)
    run("register", "-", "-v", "--max-wait", "1s", "--format", "json", **environment)
    done = run("api", "GET", "/x", "-v", **environment)
    assert b"***" in done.stdout
    if b"\xff" not in body:
        assert json.loads(done.stdout).keys() == json.loads(body).keys()


def test_a_secret_in_the_environment_is_redacted_although_it_is_not_sent(serve, run):
    server = serve(lambda request: [hostile.whole(QUOTING.encode())])
    done = run("api", "GET", "/x", **environment_of(server.url, DKIMCTL_ACCESS_TOKEN=TOKEN))
    assert b"***" in done.stdout
    assert not any(b"Basic" in request for request in server.requests)


def test_a_response_head_that_quotes_the_request(serve, run):
    server = serve(issuing(lambda request: [request]))
    assert run("api", "GET", "/x", "-v", **environment_of(server.url)).returncode == 4


def test_a_failing_tls_handshake(serve, run, tmp_path):
    _, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    server = serve(echo("500 Oh"), tls)
    assert log_in(run, server.url, "-v").returncode == 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
@pytest.mark.parametrize("obstacle", ["a link", "damage"])
def test_an_unusable_credential_store(serve, cli, run, obstacle):
    server = serve(issuing(echo("200 OK")))
    assert log_in(run, server.url).returncode == 0
    (store,) = cli.home.rglob(STORE)
    if obstacle == "damage":
        store.write_text(store.read_text() + "}")
    else:
        store.rename(store.with_name(f"{STORE}.before"))
        store.symlink_to(f"{STORE}.before")
    for words in (["token"], ["logout"], ["status"]):
        assert run(*words, DKIMCTL_DEBUG="1").returncode == 3
    assert log_in(run, server.url).returncode == 3


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_failing_proxy_with_a_password(serve, run, scheme):
    proxy = serve(lambda request: [b"HTTP/1.1 407 " + request.replace(b"\r\n", b" ") + b"\r\n\r\n"])
    url = f"{scheme}://user:{quote(SECRET, safe='')}@127.0.0.1:{proxy.port}"
    # The frames contain the command line, which users may see.
    environment = environment_of("https://service.example", HTTPS_PROXY=url, WITHOUT_VARIABLES="1")
    assert run("token", "-v", "--timeout", "2s", **environment).returncode in (2, 4)
    assert run("token", "-v", "--proxy", url, **environment).returncode == 2


@pytest.mark.parametrize(
    "text",
    [
        f"profiles: {{default: {{client_secret: {SECRET}}}}}\n",
        f"profiles: {{default: {{base_url: 'https://user:{SECRET}@service.example'}}}}\n",
        f'client_secret: "{SECRET}\n',
    ],
)
def test_an_invalid_config_file_that_contains_a_secret(cli, run, text):
    path = cli.home.parent / "config.yaml"
    path.write_text(text)
    done = run("token", "--config", path, "-v", DKIMCTL_DEBUG="1")
    assert done.returncode in (2, 3)


def test_login_and_later_commands_keep_both_in_the_store_only(serve, cli, run):
    body = json.dumps({"items": []}).encode()
    server = serve(issuing(lambda request: [hostile.whole(body)]))
    assert log_in(run, server.url, "-v").returncode == 0
    (store,) = cli.home.rglob(STORE)
    assert SECRET in store.read_text()
    for words in (["status"], ["status", "--format", "json"], ["api", "GET", "/x"],
                  ["register", "--dry-run", "-"], ["show-dns"], ["ledger", "--help"]):  # fmt: skip
        run(*words, "-v" if words[0] != "ledger" else "--help", DKIMCTL_DEBUG="1")
    done = run("token", DKIMCTL_DEBUG="1")
    assert done.stdout.decode() == f"{TOKEN}\n"
    assert run("logout", "-v", DKIMCTL_DEBUG="1").returncode == 0
    assert not leaks(store.read_bytes())


# Arguments for each command.
ARGUMENTS = {
    "init": ["init", "--config", "first.yaml", "--domain", "a.example", "--output", "x.yaml"],
    "doctor": ["doctor", "--format", "json"],
    "login": ["login", "--client-id", CLIENT_ID, "--credential-store", "file", "--secret-stdin"],
    "status": ["status", "--format", "json"],
    "profile": ["profile", "list"],
    "token": ["token"],
    "api": ["api", "DELETE", "/send/1"],
    "register": ["register", "-", "--max-wait", "1s"],
    "show-dns": ["show-dns", "--format", "json"],
    "check-dns": ["check-dns", "--server", "127.0.0.1:9", "--timeout", "1s"],
    "publish": ["publish", "--dry-run"],
    "handoff": ["handoff", "--zone", "example.com"],
    "verify": ["verify", "-"],
    "reports": ["reports", "-"],
    "list": ["list", "--format", "json"],
    "history": ["history", "--format", "json"],
    "overview": ["overview"],
    "rotate": ["rotate"],
    "rotate run": ["rotate", "run", "--wait", "1s"],
    "timer": ["timer"],
    "ledger": ["ledger", "import", "-"],
    "serve": ["serve", "--port", "1", "--host", "203.0.113.1"],
    "service": ["service", "client", "disable", CLIENT_ID],
    "schema": ["schema", "specs"],
    "completion": ["completion", "bash"],
    "help": ["help", "settings"],
    "logout": ["logout"],
}


def refused(request):
    return [hostile.whole(b'{"error": "invalid_client"}', "400 Bad")]


def registering(request):
    """A registration with the token quoted in every text field."""
    value = f"v=DKIM1; k=rsa; n={TOKEN}; p=MIGf"
    setting = {"fqdn": "s1._domainkey.example.com", "type": "TXT", "value": value}
    item = {"result": {"code": "201", "message": TOKEN}, "sign_domain": "example.com",
            "selector": "s1", "setting_values": setting, "regist_date": TOKEN}  # fmt: skip
    return [hostile.whole(json.dumps({"items": [item], "count": 1, "total": 1}).encode())]


def test_every_command_is_run():
    assert sorted(ARGUMENTS) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("say", "logged_in"),
    [(refused, False), (issuing(echo("500 Oh")), True), (issuing(registering), False)],
    ids=["wrong secret", "echoing errors", "working"],
)
def test_no_command_leaks_whatever_the_service_does(serve, run, cli, say, logged_in):
    server = serve(say)
    environment = environment_of(server.url, DKIMCTL_SERVICE_PASSPHRASE=SECRET)
    urls = ["--auth-url", server.url, "--base-url", server.url]
    if logged_in:
        # The login succeeds, before the service behaves as `say`.
        willing = serve(issuing(registering))
        assert log_in(run, willing.url).returncode == 0
        environment = {"DKIMCTL_DEBUG": "1", "DKIMCTL_SERVICE_PASSPHRASE": SECRET}
        for path in cli.home.rglob("*.json"):
            path.write_text(path.read_text().replace(willing.url, server.url))
    for name, words in ARGUMENTS.items():
        stdin = SECRET if name == "login" else "- example.com\n"  # without a selector: no retries
        more = urls if name == "login" else []
        verbose = [] if name in ("ledger", "serve", "service", "schema", "completion") else ["-v"]
        done = run(*words, *more, *verbose, stdin=stdin, **environment)
        assert done.returncode in (0, 1, 2, 3, 4), name


def answered_at_login(request):
    """An answer to the request by which `login` tries the base URL, but to no other."""
    if request.startswith(b"GET /domain/dkim "):
        return [hostile.whole(b"{}", "405 Method Not Allowed")]
    return hostile.drip(b"HTTP/1.1 200 OK")


def allow_a_core():
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_neither_the_process_nor_ctrl_c_leaks(serve, cli):
    server = serve(issuing(answered_at_login))
    done = log_in(lambda *w, stdin, **e: cli(*w, stdin=stdin, env=e), server.url)
    assert done.status == 0
    environment = cli.environment | {"DKIMCTL_DEBUG": "1"}
    process = cli.start(
        "register", "-", "-v", "--timeout", "2s", env=environment, preexec_fn=allow_a_core,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(ENTRY.encode())
    process.stdin.close()
    process.stdin = None
    deadline = time.monotonic() + LIMIT
    while len(server.requests) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    here = Path("/proc", str(process.pid))
    for name in ("cmdline", "environ"):
        assert not leaks((here / name).read_bytes())
    assert re.search(r"^Max core file size +0 ", (here / "limits").read_text(), re.MULTILINE)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert not leaks(out + err)
    search_files(cli.home)
