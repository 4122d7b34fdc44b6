"""A service with a new data file, a clock that stands still, and prepared keys."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import create_client
from dkimctl.service.database import open_store
from dkimctl.service.key_pairs import make_key as make_real_key
from fakes import Clock

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="session")
def new_data_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "new.db"
    open_store(path).close()
    return path


@pytest.fixture
def sqlite_store(tmp_path, new_data_file):
    store = open_store(Path(shutil.copy(new_data_file, tmp_path / "service.db")))
    yield store
    store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request):
    """An empty store, of each kind."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_store")
        return
    store = open_store(request.getfixturevalue("postgresql_database"))
    yield store
    store.close()


@pytest.fixture
def clock():
    """`now` is the service's time, in seconds since the epoch: 2021-07-01T00:00:00Z."""
    return Clock(1625097600.0)


@pytest.fixture(scope="session")
def fixed_keys():
    return {key_len: make_real_key(key_len) for key_len in (1024, 2048)}


@pytest.fixture
def ordered_keys():
    """The lengths of the keys that the service has ordered, in bits."""
    return []


@pytest.fixture
def make_key(fixed_keys, ordered_keys):
    def make(key_len):
        ordered_keys.append(key_len)
        return fixed_keys[key_len]

    return make


@pytest.fixture
def client(store, clock, make_key):
    """A client that sends requests to the service."""
    return DescribedClient(create_app(store, clock=clock, make_key=make_key))


@pytest.fixture
def credentials(store):
    return create_client(store)


@pytest.fixture
def other_credentials(store):
    return create_client(store)


@pytest.fixture
def basic():
    """The Authorization header of client credentials (interface 4.1)."""

    def header(client_id, secret):
        return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()

    return header


@pytest.fixture
def request_token(client, basic):
    """Send a token request (interface 4.1); keywords replace parts of the request."""

    def request(credentials, **changes):
        headers = {"Content-Type": changes.pop("content_type", FORM)}
        if credentials is not None:
            headers["Authorization"] = basic(credentials.client_id, credentials.secret)
        if "authorization" in changes:
            headers["Authorization"] = changes.pop("authorization")
        parameters = {"method": "POST", "body": "grant_type=client_credentials", **changes}
        return client.simulate_request(path="/oauth2/token", headers=headers, **parameters)

    return request


@pytest.fixture
def get_token(request_token):
    def get(credentials):
        return str(request_token(credentials).json["access_token"])

    return get


@pytest.fixture
def token(get_token, credentials):
    """A token of `credentials`, issued when the clock started."""
    return get_token(credentials)


@pytest.fixture
def register(client, token):
    """Send entries to POST /domain/dkim with `token`, or with another token."""

    def send(*entries, token=token):
        return client.simulate_post(
            "/domain/dkim",
            body=json.dumps({"domains": list(entries)}),
            headers={"Authorization": f"Bearer {token}"},
        )

    return send
