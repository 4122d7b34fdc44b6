"""A hostile service, or one in between, can only make a command fail."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import time
import warnings
from itertools import chain

import pytest

import hostile

LIMIT = 30.0  # seconds, whatever the timeout
MEMORY = 200 << 20  # bytes
SECRET = "a-secret-nobody-else-is-to-see"
TOKEN = "a-token-nobody-else-is-to-see-4711"
GOOD_TOKEN = hostile.whole(json.dumps({"access_token": TOKEN}).encode())
ENTRY = "- {sign_domain: example.com, selector: s1}\n"
EVIL = "\x00\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x7f\u202e"
RAW_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def environment_of(url, **more):
    return {
        "DKIMCTL_AUTH_URL": url,
        "DKIMCTL_BASE_URL": url,
        "DKIMCTL_CLIENT_ID": "id",
        "DKIMCTL_CLIENT_SECRET": SECRET,
        **more,
    }


MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)
"""


@pytest.fixture(autouse=True)
def no_backoff(cli):
    cli.skip_backoff()


@pytest.fixture
def run_bounded(cli, tmp_path):
    """Run a command that must fail, in bounded time and memory."""
    if sys.platform == "win32":
        pytest.skip("needs the module resource")

    def run_bounded(words, url, timeout="10s", **environment):
        measured = tmp_path / "peak"
        command = cli.command(*words, "--timeout", timeout)
        command = [sys.executable, "-c", MEASURE, str(measured), *command]
        started = time.monotonic()
        process = subprocess.run(
            command, input=ENTRY.encode(), capture_output=True, cwd=cli.home, timeout=60,
            env=cli.environment | environment_of(url) | environment, check=False,
        )  # fmt: skip
        assert time.monotonic() - started < LIMIT
        unit = 1024 if sys.platform == "linux" else 1
        assert int(measured.read_text()) * unit < MEMORY
        out, err = process.stdout.decode("utf-8", "surrogateescape"), process.stderr.decode()
        check(process.returncode, out, err)
        return process.returncode, out, err

    return run_bounded


def check(status, out, err):
    """Check what holds for every failure."""
    assert status in (1, 2, 3, 4), err
    assert err.startswith("dkimctl: "), err
    assert "hint: " in err
    assert "Traceback" not in err
    assert "defect" not in err
    assert not RAW_CONTROL.search(err)
    for secret in (SECRET, TOKEN):
        assert secret not in out + err


COMMANDS = {
    "api": ["api", "GET", "/x"],
    "token": ["token"],
}
RESPONSES = {
    "endless body": lambda: chain([hostile.UNENDING], hostile.flood(b'{"x": "')),
    "endless chunks": lambda: chain([hostile.CHUNKED], hostile.flood(b"1\r\nx\r\n")),
    "endless chunk size": lambda: chain([hostile.CHUNKED], hostile.flood(b"0")),
    "dripping body": lambda: chain([hostile.UNENDING], hostile.drip()),
    "dripping chunk extension": lambda: chain([hostile.CHUNKED, b"1;"], hostile.drip()),
    "dripping trailer": lambda: chain([hostile.CHUNKED, b"0\r\n"], hostile.drip(b"x: y\r\n")),
    "dripping status line": lambda: hostile.drip(b"HTTP/1.1 200 OK"),
    "dripping header": lambda: chain([b"HTTP/1.1 200 OK\r\nX: "], hostile.drip()),
    "dripping headers": lambda: chain([b"HTTP/1.1 200 OK\r\n"], hostile.drip(b"x: y\r\n")),
    "endless status line": lambda: chain([b"HTTP/1.1 200 "], hostile.flood(b"x")),
    "endless headers": lambda: chain([b"HTTP/1.1 200 OK\r\n"], hostile.flood(b"x: y\r\n")),
    "endless interim answers": lambda: hostile.flood(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "10,000 headers": lambda: [
        b"HTTP/1.1 200 OK\r\n", b"x-some-header: some value\r\n" * 10_000, b"\r\n{}",
    ],
    "gzip bomb": lambda: [hostile.whole(hostile.gzip_bomb(), Content_Encoding="gzip")],
    "deflate unasked": lambda: [hostile.whole(b"x", Content_Encoding="deflate")],
    "no HTTP": lambda: [b"220 mail.example ESMTP\r\n"],
    "nothing": list,
    "NUL in the head": lambda: [b"HTTP/1.1 200 OK\r\nX: \0\x1b[2J\r\n\r\n{}"],
    "negative length": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"],
    "vast length": lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: 9" + b"9" * 18 + b"\r\n\r\n{}"],
    "echo in the status line": None,
}  # fmt: skip


ENDLESS = ("dripping", "endless")  # may end only by the timeout


def saying(command, say):
    """Answer the request that `command` is about with `say`, and those before it properly."""

    def answer(request):
        if b"/oauth2/token" in request and command != "token":
            return [GOOD_TOKEN]
        return [request] if say is None else say()

    return answer


@pytest.mark.parametrize("command", ["token", pytest.param("api", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("response", RESPONSES)
def test_no_response_hangs_floods_or_crashes_a_command(serve, run_bounded, command, response):
    server = serve(saying(command, RESPONSES[response]))
    timeout = "0.5s" if response.startswith(ENDLESS) else "10s"
    status, out, _ = run_bounded(COMMANDS[command], server.url, timeout)
    assert (status, out) == (4, "")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_no_redirect_is_followed(serve, run_bounded, command, status):
    other = serve(lambda request: [GOOD_TOKEN])
    there = hostile.whole(b"", status, Location=f"{other.url}/oauth2/token")
    server = serve(saying(command, lambda: [there]))
    assert run_bounded(COMMANDS[command], server.url)[0] == 4
    assert other.requests == []
    assert server.requests


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_of_an_error_are_escaped(serve, run_bounded, command):
    body = json.dumps({"error": EVIL, "message": EVIL}).encode()
    server = serve(lambda request: [hostile.whole(body, "400 Bad")])
    assert run_bounded(COMMANDS[command], server.url)[0] == 3


@pytest.mark.parametrize("command", ["token", "api"])
def test_a_response_over_tls_without_close_notify_is_incomplete(
    serve, run_bounded, tmp_path, command
):
    """An attacker can end the connection, but cannot send the service's close_notify."""
    bundle, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    token = json.dumps({"access_token": TOKEN}).encode()

    def say(request):
        if command == "api" and b"/oauth2/token" in request:
            return [GOOD_TOKEN]
        return [hostile.UNENDING, token if command == "token" else b'{"items": ["not all']

    server = serve(say, tls)
    status, out, err = run_bounded([*COMMANDS[command], "--ca-bundle", bundle], server.url)
    assert (status, out) == (4, "")
    assert "was cut off" in err


def test_a_server_with_a_trusted_certificate_is_accepted_and_its_session_keys_not_logged(
    serve, cli, tmp_path
):
    bundle, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    server = serve(lambda request: [GOOD_TOKEN], tls)
    environment = environment_of(server.url, SSLKEYLOGFILE=str(tmp_path / "keys"))
    done = cli("token", "--ca-bundle", bundle, env=environment)
    assert (done.status, done.out) == (0, f"{TOKEN}\n"), done.err
    assert b"SECRET" not in (tmp_path / "keys").read_bytes()


def test_bytes_after_a_response_are_not_the_next_response(serve, cli):
    """Here the response to HEAD has a body, which looks like the response with a token."""
    stolen = hostile.whole(json.dumps({"access_token": "somebody-elses"}).encode())
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(stolen)

    def say(request):
        yield head + stolen if b"HEAD" in request else GOOD_TOKEN
        time.sleep(0.5)  # keeps the connection open

    server = serve(say)
    old = environment_of(server.url, DKIMCTL_ACCESS_TOKEN="an-older-token")
    assert cli("api", "HEAD", "/x", env=old).status == 3
    sent = b"".join(server.requests)
    assert TOKEN.encode() in sent, "the token was renewed"
    assert b"somebody-elses" not in sent


def test_tls_1_0_is_refused(serve, run_bounded, tmp_path):
    bundle, tls = hostile.make_certificate(tmp_path, "127.0.0.1", days=30)
    try:
        tls.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings(action="ignore"):
            tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1
    except (ValueError, ssl.SSLError) as error:
        pytest.skip(f"OpenSSL here serves no TLS 1.0: {error}")
    server = serve(lambda request: [GOOD_TOKEN], tls)
    status, out, _ = run_bounded(["token", "--ca-bundle", bundle], server.url)
    assert (status, out) == (4, "")
    assert server.requests == []


@pytest.mark.parametrize("command", COMMANDS)
def test_plain_http_to_another_host_is_refused(run_bounded, command):
    assert run_bounded(COMMANDS[command], "http://service.example")[0] == 2


def test_loopback_is_never_reached_through_a_proxy(serve, cli):
    proxy = serve(lambda request: [GOOD_TOKEN])
    server = serve(lambda request: [GOOD_TOKEN])
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    proxies = dict.fromkeys(names, proxy.url)
    for words in (["token"], ["api", "GET", "/x"]):
        for more in ([], ["--proxy", proxy.url]):
            done = cli(*words, *more, env=environment_of(server.url, **proxies))
            assert done.status == 0, done.err
    assert proxy.requests == []
    assert server.requests
