"""What an operator sees of a running service: its log, health and metrics."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest

from ports import free_port
from processes import LIMIT, ServeProcess, wait_for


@pytest.fixture
def serve(cli):
    """Start a service with these options."""
    running: list[ServeProcess] = []

    def start(*words: object) -> ServeProcess:
        running.append(ServeProcess(cli, *words))
        return running[-1]

    yield start
    for service in running:
        service.stop()


def ask(url: str) -> tuple[int, str]:
    """Status and body of the answer."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("workers", [1, 2])
def test_health_metrics_and_a_line_for_each_request(cli, serve, workers):
    port = free_port()
    service = serve("--workers", workers, "--metrics-bind", f"127.0.0.1:{port}")
    account = service.create_client()
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, key_len: 2048}\n")
    assert cli("register", "one.yaml", env=account).status == 0
    wrong = account | {"DKIMCTL_CLIENT_SECRET": "not-it"}
    assert cli("token", env=wrong).status == 3
    for path in ("/healthz", "/readyz"):
        for _ in range(5):
            assert ask(service.url + path) == (200, '{"message": "OK"}')
    assert ask(service.url + "/metrics")[0] == 404

    status, text = ask(f"http://127.0.0.1:{port}/metrics")
    assert status == 200
    lines = text.splitlines()
    assert 'dkimctl_http_requests_total{path="/healthz",status="200"} 5.0' in lines
    assert 'dkimctl_keys_made_total{key_len="2048"} 1.0' in lines
    assert "dkimctl_failed_logins_total 1.0" in lines
    assert 'dkimctl_clients{state="active"} 1.0' in lines
    assert account["DKIMCTL_CLIENT_ID"] not in text

    wait_for(lambda: service.said.count("path=/readyz") == 5)
    client_id = account["DKIMCTL_CLIENT_ID"]
    assert re.search(
        rf"INFO request method=POST path=/domain/dkim status=200 .* address=127.0.0.1 "
        rf"client_id={client_id} entries=1 results=201:1 request_id=",
        service.said,
    )
    assert re.search(rf"path=/oauth2/token status=400 .* client_id={client_id} ", service.said)
    assert account["DKIMCTL_CLIENT_SECRET"] not in service.said
    assert "not-it" not in service.said


def test_quiet_logs_no_requests(cli):
    port = free_port()
    process = cli.start("serve", "--data", "service.db", "--port", port, "--quiet", stderr=-1)
    try:
        wait_for(lambda: is_answered(f"http://127.0.0.1:{port}/healthz"))
        process.terminate()
        assert process.wait(LIMIT) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def is_answered(url: str) -> bool:
    try:
        return ask(url)[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--trusted-proxy", "nowhere"),
            'in --trusted-proxy: invalid address or network "nowhere"',
        ),
        (("--metrics-bind", "9100"), "in --metrics-bind: this is not an address and a port"),
        (("--metrics-bind", "192.0.2.1:9100"), "in --metrics-bind: cannot listen on 192.0.2.1"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1 port"),
        (("--host", "no.such.name.invalid"), "cannot listen on no.such.name.invalid port"),
        (("--log-format", "json"), "it was removed: leave it out"),
        (("--metrics-from", "10.0.0.1"), "it was removed: write --metrics-bind"),
    ],
)
def test_invalid_options_are_named(cli, words, message):
    refused = cli("serve", "--data", "service.db", "--port", free_port(), *words)
    assert refused.status == 2
    assert message in refused.err


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("localhost", r"serving on http://localhost:\d+ \(both auth URL and base URL\)"),
        ("::1", r"serving on http://\[::1\]:\d+ \(both"),
        ("0.0.0.0", r"serving on 0\.0\.0\.0:\d+ \(all IPv4 addresses of this machine\);"),
        ("*", r"serving on \[::\]:\d+ \(all addresses of this machine\);"),
    ],
)
def test_it_says_where_it_listens(cli, host, shown):
    is_open = host in ("0.0.0.0", "*")
    process = cli.start("serve", "--data", "service.db", "--port", 0, "--host", host, stderr=-1)
    try:
        said = ""
        while "then log in" not in said:
            line = process.stderr.readline().decode()
            if "cannot listen" in line:
                pytest.skip(f"nothing can listen on {host} here")
            assert line, said
            said += line
        assert re.search(f"^dkimctl: {shown}", said)
        url = re.search(r"then log in.* --auth-url (http\S+)", said)[1]
        assert ask(f"{url}/healthz")[0] == 200
        assert ("warning: this is plain HTTP" in said) is is_open
    finally:
        process.terminate()
        process.wait(LIMIT)
        process.stderr.close()
