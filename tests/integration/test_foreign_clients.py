"""Programs and libraries that nobody here wrote get tokens, and use them."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import BackendApplicationClient
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session
from sqlalchemy import update

from dkimctl.service.database import open_store
from dkimctl.service.schema import tokens
from needs import program

pytestmark = pytest.mark.slow

Account = dict[str, str]
Post = Callable[[object], tuple[int, Any]]
"""Sends JSON to POST /domain/dkim with the token that a client got; gives status and JSON."""


@contextmanager
def authlib(account: Account) -> Iterator[Post]:
    with AuthlibSession(account["DKIMCTL_CLIENT_ID"], account["DKIMCTL_CLIENT_SECRET"]) as session:
        session.trust_env = False
        session.fetch_token(f"{account['DKIMCTL_AUTH_URL']}/oauth2/token")
        yield poster(session, account)


@contextmanager
def requests_oauthlib(account: Account) -> Iterator[Post]:
    client_id = account["DKIMCTL_CLIENT_ID"]
    with OAuth2Session(client=BackendApplicationClient(client_id)) as session:
        session.trust_env = False
        session.fetch_token(
            f"{account['DKIMCTL_AUTH_URL']}/oauth2/token",
            auth=HTTPBasicAuth(client_id, account["DKIMCTL_CLIENT_SECRET"]),
        )
        yield poster(session, account)


def poster(session: requests.Session, account: Account) -> Post:
    def post(body: object) -> tuple[int, Any]:
        answer = session.post(f"{account['DKIMCTL_BASE_URL']}/domain/dkim", json=body)
        return answer.status_code, answer.json()

    return post


@contextmanager
def curl(account: Account) -> Iterator[Post]:
    """`curl -u`, whose options come from standard input, where `ps` does not see them."""
    user = f"{account['DKIMCTL_CLIENT_ID']}:{account['DKIMCTL_CLIENT_SECRET']}"
    url = f"{account['DKIMCTL_AUTH_URL']}/oauth2/token"
    _, answer = run_curl(url=url, user=user, data="grant_type=client_credentials")
    bearer = answer["access_token"]
    url = f"{account['DKIMCTL_BASE_URL']}/domain/dkim"
    yield lambda body: run_curl(
        url=url, oauth2_bearer=bearer, header="Content-Type: application/json",
        data=json.dumps(body),
    )  # fmt: skip


def run_curl(**options: str) -> tuple[int, Any]:
    words = [f"{name.replace('_', '-')} = {json.dumps(value)}" for name, value in options.items()]
    done = subprocess.run(
        [program("curl"), "-q", "-sS", "--noproxy", "*", "-w", "\n%{http_code}", "-K", "-"],
        input="\n".join(words), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


@pytest.fixture(autouse=True)
def plain_http(monkeypatch):
    """Both libraries refuse http:// otherwise; the service is on loopback."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")


@pytest.fixture(params=[authlib, requests_oauthlib, curl])
def post(request, account) -> Iterator[Post]:
    with request.param(account) as post:
        yield post


def entry() -> dict[str, object]:
    return {"sign_domain": f"d{uuid.uuid4().hex[:12]}.example", "selector": "s1"}


def test_its_token_registers_a_domain_and_is_used_again(post):
    body = {"domains": [entry()]}
    for code in ("201", "409"):
        status, answer = post(body)
        assert status == 200
        (item,) = answer["items"]
        assert item["result"]["code"] == code
        assert item["setting_values"]["value"].startswith("v=DKIM1;")


def test_its_token_is_403_while_the_client_is_disabled_and_once_it_has_expired(
    post, live_service, account
):
    body, client_id = {"domains": [entry()]}, account["DKIMCTL_CLIENT_ID"]
    live_service.operate("client", "disable", client_id)
    assert post(body) == (403, {"message": "Forbidden"})
    live_service.operate("client", "enable", client_id)
    assert post(body)[0] == 200
    with (
        closing(open_store(live_service.cli.home / "service.db")) as store,
        store.writing() as connection,
    ):
        of_client = tokens.c.client_id == client_id
        connection.execute(update(tokens).where(of_client).values(expires_at=0))
    assert post(body) == (403, {"message": "Forbidden"})


@pytest.mark.parametrize("login", [authlib, requests_oauthlib])
def test_a_wrong_secret_is_reported_as_invalid_client(login, account):
    with (
        pytest.raises(Exception, match="invalid_client"),
        login(account | {"DKIMCTL_CLIENT_SECRET": "wrong"}),
    ):
        pass
