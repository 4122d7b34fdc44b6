"""The whole way over HTTP: a live service, a login, and curl as another client."""

from __future__ import annotations

import json
import re
import subprocess
import time
import uuid

import pytest

SPECS = """\
defaults: {key_len: 2048, start_date: 2027-07-01T00:00+09:00}
domains:
  - NAME.example
  - {sign_domain: mail.NAME.example, selector: s2027, key_len: 1024, enable: false}
"""


@pytest.fixture
def name():
    """A label that no other test uses at the shared service."""
    return f"d{uuid.uuid4().hex[:12]}"


@pytest.fixture
def specs(cli, name):
    """A spec file with two entries."""
    return cli.write("domains.yaml", SPECS.replace("NAME", name))


def test_after_a_login_on_a_terminal_no_command_asks_again(cli, on_terminal, account, specs):
    status, shown = on_terminal(
        ["login", "--credential-store", "file"],
        [
            ("Auth URL", account["DKIMCTL_AUTH_URL"]),
            ("Base URL", account["DKIMCTL_BASE_URL"]),
            ("Client ID", account["DKIMCTL_CLIENT_ID"]),
            ("Client secret", account["DKIMCTL_CLIENT_SECRET"]),
        ],
    )
    assert status == 0, shown
    assert account["DKIMCTL_CLIENT_SECRET"] not in shown
    assert "logged in as " + account["DKIMCTL_CLIENT_ID"] in shown

    registered = cli("register", specs, "--format", "json")
    assert registered.status == 0, registered.err
    items = registered.json["items"]
    assert [item["result"]["code"] for item in items] == ["201", "201"]
    assert [item["key_len"] for item in items] == [2048, 1024]
    assert items[1]["enable"] is False

    shown = cli("show-dns", specs, "--format", "json").json["items"]
    assert [item["setting_values"] for item in shown] == [i["setting_values"] for i in items]

    assert cli("logout").status == 0
    for words in (("register", "--refresh", specs), ("api", "GET", "/x")):
        after = cli(*words)
        assert after.status == 3
        assert "dkimctl login" in after.err
    assert cli("show-dns").status == 0, "what is registered stays known"


def test_several_logins_can_be_used_as_profiles(cli, login, live_service, account, specs):
    other = live_service.create_client()
    assert login(account).status == 0
    assert login(other, "--profile", "agency").status == 0
    assert cli("register", specs, "--profile", "agency").status == 0
    assert cli("show-dns").status == 1, "the other account has nothing"
    assert cli("show-dns", "--profile", "agency").status == 0


def test_curl_gets_the_same_responses(cli, account, specs, needs_tool):
    curl = needs_tool("curl")
    token_body = fetch(
        curl, f"{account['DKIMCTL_AUTH_URL']}/oauth2/token",
        "--user", f"{account['DKIMCTL_CLIENT_ID']}:{account['DKIMCTL_CLIENT_SECRET']}",
        "--data", "grant_type=client_credentials",
    )  # fmt: skip
    token = token_body["access_token"]
    assert token_body["expires_in"] == 3600

    ours = cli("register", specs, "--format", "json", env=account).json["items"]
    asked = [{"sign_domain": item["sign_domain"], "selector": item["selector"]} for item in ours]
    theirs = fetch(
        curl, f"{account['DKIMCTL_BASE_URL']}/domain/dkim",
        "--header", f"Authorization: Bearer {token}", "--data", json.dumps({"domains": asked}),
    )["items"]  # fmt: skip
    assert [item["result"]["code"] for item in theirs] == ["409", "409"]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine | {"result": 0, "outcome": 0} == other | {"result": 0, "outcome": 0}

    same_token = account | {"DKIMCTL_ACCESS_TOKEN": token, "DKIMCTL_CLIENT_SECRET": ""}
    again = cli("register", "--refresh", specs, "--format", "json", env=same_token)
    assert [item["outcome"] for item in again.json["items"]] == ["exists", "exists"]


def test_a_cached_token_is_reused_and_renewed_after_a_rejection(cli, login, account, specs):
    assert login(account).status == 0
    credentials = cli.home / ".local/state/dkimctl/credentials.json"
    first = cli("register", specs, "--verbose")
    assert first.status == 0
    assert "/oauth2/token" not in first.err, "the token of the login is good"
    kept = credentials.read_text()
    stored = json.loads(kept)
    for name, text in stored.items():
        if "token" in name:
            stored[name] = json.dumps(json.loads(text) | {"access_token": "revoked"})
    credentials.write_text(json.dumps(stored))
    again = cli("register", "--refresh", specs, "--verbose")
    assert again.status == 0, again.err
    assert again.err.count("/oauth2/token") == 1
    assert "403" in again.err
    assert "revoked" not in credentials.read_text()


def test_of_two_accounts_one_gets_created_and_one_taken(cli, live_service, account, name):
    other = live_service.create_client()
    cli.write("one.yaml", f"- {{sign_domain: {name}.example, selector: s1}}\n")
    assert cli("register", "one.yaml", env=account).status == 0
    done = cli("register", "one.yaml", "--format", "json", env=other)
    assert done.status == 1
    (item,) = done.json["items"]
    assert (item["outcome"], item["result"]["code"]) == ("taken", "409")
    assert "setting_values" not in item
    assert json.loads(done.err)["errors"] == []
    planned = cli("register", "--dry-run", "one.yaml", "--format", "json", env=other)
    assert (planned.status, planned.json["items"][0]["outcome"]) == (1, "taken")


@pytest.mark.interface("4.3", "items", "unknown")
@pytest.mark.interface("5.3", "success")
def test_a_delivery_is_cancelled_with_api(cli, live_service, account):
    client_id = account["DKIMCTL_CLIENT_ID"]
    delivery_id = live_service.operate("delivery", "add", client_id).out.strip()
    done = cli("api", "DELETE", f"/send/{delivery_id}", env=account)
    assert (done.status, done.json) == (0, {"items": [{"delivery_id": delivery_id}]})
    again = cli("api", "delete", f"/send/{delivery_id}", env=account)
    assert again.status == 1
    assert "message" in again.json
    other = live_service.operate("delivery", "add", client_id).out.strip()
    bad = account | {"DKIMCTL_ACCESS_TOKEN": "not-a-token", "DKIMCTL_CLIENT_SECRET": ""}
    refused = cli("api", "DELETE", f"/send/{other}", env=bad)
    assert (refused.status, refused.json) == (3, {"message": "Forbidden"})


def test_api_sends_a_body_from_a_file_or_standard_input(cli, account, name):
    body = json.dumps({"domains": [{"sign_domain": f"{name}.example", "selector": "a"}]})
    cli.write("request.json", body)
    first = cli("api", "POST", "/domain/dkim", "--input", "request.json", env=account)
    assert first.json["items"][0]["result"]["code"] == "201"
    second = cli("api", "POST", "/domain/dkim", "--input", "-", stdin=body, env=account)
    assert second.json["items"][0]["result"]["code"] == "409"


@pytest.mark.interface("3.2", "disabled-use", "operator")
def test_a_disabled_client_gets_an_explanation_and_a_deleted_one_no_token(
    cli, live_service, account, specs
):
    client_id = account["DKIMCTL_CLIENT_ID"]
    live_service.operate("client", "disable", client_id)
    disabled = cli("register", specs, env=account)
    assert disabled.status == 3
    assert "temporarily disabled" in disabled.err
    assert "dkimctl: not registered 2\n" in disabled.err
    live_service.operate("client", "enable", client_id)
    assert cli("register", specs, env=account).status == 0
    live_service.operate("client", "delete", client_id)
    assert client_id + "\tdeleted" in live_service.operate("client", "list").out
    deleted = cli("register", "--refresh", specs, env=account)
    assert deleted.status == 3
    assert "invalid_client" in deleted.err
    assert "dkimctl: not refreshed 2\n" in deleted.err


def test_a_port_in_use_is_a_usage_error(cli, live_service):
    port = live_service.url.rpartition(":")[2]
    done = cli("serve", "--port", port, "--data", "other.db")
    assert done.status == 2
    assert f"cannot listen on 127.0.0.1 port {port}: another program uses this port" in done.err
    assert "hint: stop that program, or choose another port with --port" in done.err


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("203.0.113.254", "this machine has no such address"),
        ("no-such-host.invalid", "there is no host of this name"),
    ],
)
def test_a_host_that_is_not_this_machine_is_a_usage_error(cli, host, said):
    done = cli("serve", "--host", host, "--port", 0, "--data", "other.db")
    assert (done.status, done.out) == (2, "")
    assert f"cannot listen on {host} port 0: {said}\n" in done.err
    assert "hint: use --host 127.0.0.1 for this machine alone" in done.err


@pytest.mark.slow
def test_the_login_that_serve_prints_for_this_machine_works(cli):
    """Also where it listens on all addresses: a client refuses http:// to the others."""
    with (cli.home / "serve.log").open("wb") as log:
        served = cli.start(
            "serve", "--host", "0.0.0.0", "--port", 0, "--data", "s.db", stderr=log
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while "through the TLS proxy: " not in (text := (cli.home / "serve.log").read_text()):
            assert served.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        assert re.search(r"serving on 0\.0\.0\.0:\d+ \(all IPv4 addresses", text)
        create = re.search(r"create a client: dkimctl (.*)\n", text)[1].split()
        client_id = cli(*create).out.strip()
        login = re.search(r"on this machine: dkimctl (.*) --client-id ID\n", text)[1].split()
        words = ("--client-id", client_id, "--credential-store", "file", "--secret-stdin")
        done = cli(*login, *words, stdin=(cli.home / "secret.txt").read_text())
        assert done.status == 0, done.err
    finally:
        served.terminate()
        served.wait(60)


def fetch(curl: str, url: str, *words: str):
    done = subprocess.run([curl, "-sS", *words, url], capture_output=True, check=True, timeout=30)
    return json.loads(done.stdout)
