"""The whole way over HTTP: a live service, a login, and curl as another client."""

from __future__ import annotations

import json
import uuid
from contextlib import closing

import pytest
from sqlalchemy import update

from dkimctl.service.database import open_store
from dkimctl.service.schema import tokens

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


@pytest.mark.interface("3.1", "issue")
@pytest.mark.interface("3.2", "active")
@pytest.mark.interface("3.3", "enable")
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


@pytest.mark.interface("5.2", "expired")
@pytest.mark.interface("8", "token-reuse")
def test_a_cached_token_is_reused_and_renewed_after_a_rejection(
    cli, login, live_service, account, specs
):
    assert login(account).status == 0
    first = cli("register", specs, "--verbose")
    assert first.status == 0
    assert "/oauth2/token" not in first.err, "the token of the login is good"
    old = cli("token").out
    with (
        closing(open_store(live_service.cli.home / "service.db")) as store,
        store.writing() as connection,
    ):
        of_client = tokens.c.client_id == account["DKIMCTL_CLIENT_ID"]
        connection.execute(update(tokens).where(of_client).values(expires_at=0))
    again = cli("register", "--refresh", specs, "--verbose")
    assert again.status == 0, again.err
    assert again.err.count("/oauth2/token") == 1
    assert "403" in again.err
    credentials = cli.home / ".local/state/dkimctl/credentials.json"
    assert old.strip() not in credentials.read_text()


@pytest.mark.interface("3.1", "several", "independent")
def test_a_second_token_does_not_affect_the_first(cli, account):
    first, second = (cli("token", env=account).out.strip() for _ in range(2))
    assert first != second
    for token in (first, second, first):
        own = account | {"DKIMCTL_ACCESS_TOKEN": token, "DKIMCTL_CLIENT_SECRET": ""}
        assert cli("api", "DELETE", "/send/none", env=own).status == 1, "404: the token is good"


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


@pytest.mark.interface("3.2", "disabled", "disabled-use", "enable", "operator", "restore")
@pytest.mark.interface("5.2", "disabled")
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
    unasked = live_service.cli("service", "client", "delete", client_id, "--data", "service.db")
    assert (unasked.status, "hint: add --yes\n" in unasked.err) == (2, True)
    live_service.operate("client", "delete", client_id, "--yes")
    assert client_id + "\tdeleted" in live_service.operate("client", "list").out
    deleted = cli("register", "--refresh", specs, env=account)
    assert deleted.status == 3
    assert "invalid_client" in deleted.err
    assert "dkimctl: not refreshed 2\n" in deleted.err
