"""What an operator sees of a running service: its log, health and metrics."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database import open_store
from dkimctl.service.http.failed_logins import LONGEST_BLOCK, LoginGuard
from fakes import Clock
from processes import ServeProcess


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


def ask(url: str, **headers: str) -> tuple[int, str]:
    """Status and body of the answer."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def logged(service: ServeProcess) -> list[dict]:
    return [json.loads(line) for line in service.said.splitlines() if line.startswith("{")]


def test_health_metrics_and_a_line_for_each_request(cli, serve):
    service = serve("--log-format", "json")
    account = service.create_client()
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, key_len: 2048}\n")
    assert cli("register", "one.yaml", env=account).status == 0
    for path in ("/healthz", "/readyz"):
        assert ask(service.url + path) == (200, '{"message": "OK"}')
    status, text = ask(service.url + "/metrics")
    assert status == 200
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["dkimctl_keys_made_total", ("key_len", "2048")] == 1
    assert samples["dkimctl_clients", ("state", "active")] == 1
    assert ask(service.url + "/metrics", **{"X-Forwarded-For": "192.0.2.1"})[0] == 404

    registration = next(line for line in logged(service) if line["path"] == "/domain/dkim")
    assert registration["client_id"] == account["DKIMCTL_CLIENT_ID"]
    assert (registration["status"], registration["address"]) == (200, "127.0.0.1")
    assert (registration["entries"], registration["results"]) == (1, {"201": 1})
    paths = [line["path"] for line in logged(service)]
    assert paths[-4:] == ["/healthz", "/readyz", "/metrics", "/metrics"]
    assert account["DKIMCTL_CLIENT_SECRET"] not in service.said


def block(service: ServeProcess, account: dict[str, str], seconds: float) -> None:
    """Let logins fail until the account's next one has to wait that long, 60 s at most."""
    last = time.time() - LONGEST_BLOCK + seconds
    clock = Clock(last - 16 * LONGEST_BLOCK)
    wrong = ClientCredentials(account["DKIMCTL_CLIENT_ID"], "wrong")
    with closing(open_store(service.cli.home / "service.db")) as store:
        guard = LoginGuard(store, clock)
        while clock() <= last:
            assert not guard.admits(wrong, "127.0.0.1")
            clock.now += LONGEST_BLOCK


def test_ten_failed_logins_are_told_and_then_slowed_down(cli, serve):
    service = serve()
    account = service.create_client()
    for _ in range(10):
        assert cli("token", env=account | {"DKIMCTL_CLIENT_SECRET": "not-it"}).status == 3
    assert f"WARNING failed login client_id={account['DKIMCTL_CLIENT_ID']} failures=10 " in (
        service.said
    )
    block(service, account, 60)
    blocked = cli("token", env=account)
    assert blocked.status == 4
    assert re.search(r"refuses logins for now \(429\), for \d+ s", blocked.err)
    assert "wrong secret" in blocked.err
    assert f"WARNING login blocked client_id={account['DKIMCTL_CLIENT_ID']} " in service.said
    assert "not-it" not in service.said


def test_registering_waits_until_logins_are_allowed_again(cli, serve):
    service = serve()
    account = service.create_client()
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s, key_len: 1024}\n")
    block(service, account, 8)
    done = cli("register", "one.yaml", env=account)
    assert done.status == 0, done.err
    assert "login blocked" in service.said


def test_text_by_default_and_invalid_options_are_named(cli, serve):
    service = serve()
    ask(service.url + "/healthz")
    assert "INFO request method=GET path=/healthz status=200" in service.said
    for words, message in (
        (
            ("--trusted-proxy", "nowhere"),
            'in --trusted-proxy: invalid address or network "nowhere"',
        ),
        (("--metrics-from", "10.0.0.1/8"), "in --metrics-from: invalid address or network"),
        (("--log-format", "xml"), "--log-format"),
    ):
        refused = cli("serve", *words)
        assert refused.status == 2
        assert message in refused.err
