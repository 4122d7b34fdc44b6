"""Clients and their secrets, expired tokens, deliveries. Requests are in test_resources.py."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import func, insert, select, text

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import (
    ClientState,
    add_delivery,
    authenticate,
    change_state,
    client_of_token,
    create_client,
    issue_token,
    list_clients,
    rotating_secret,
)
from dkimctl.service.schema import tokens


def _rotate(store, client_id, overlap=60):
    with rotating_secret(store, client_id, overlap) as credentials:
        return credentials


def test_neither_a_secret_nor_a_token_is_in_the_file(sqlite_store):
    created = create_client(sqlite_store)
    assert created.secret not in repr(created)
    token = issue_token(sqlite_store, created.client_id, 0.0)
    data = b"".join(file.read_bytes() for file in sqlite_store.path.parent.iterdir())
    assert created.client_id.encode() in data
    assert created.secret.encode() not in data
    assert token.encode() not in data


@pytest.mark.interface("3.2", "operator")
def test_clients_are_listed_with_state_and_creation_time(store):
    for name in ("c", "a", "b"):
        create_client(store, name)
    change_state(store, "b", ClientState.DISABLED)
    change_state(store, "c", ClientState.DELETED)
    listed = list_clients(store)
    states = [(client.client_id, client.state) for client in listed]
    assert states == [("a", "active"), ("b", "disabled"), ("c", "deleted")]
    for client in listed:
        assert datetime.fromisoformat(client.created_at).utcoffset() == timedelta(0)


@pytest.mark.interface("3.2", "restore")
@pytest.mark.parametrize("state", ClientState)
def test_only_a_client_that_is_there_and_not_deleted_can_be_changed(store, state):
    create_client(store, "gone")
    change_state(store, "gone", ClientState.DELETED)
    unknown = [(client_id, "does not exist") for client_id in ("unknown", "\udcff", "a\0")]
    for client_id, message in (*unknown, ("gone", "final")):
        for operation in (_rotate, add_delivery, partial(change_state, state=state)):
            with pytest.raises(NegativeAnswer, match=message):
                operation(store, client_id)
    with pytest.raises(UsageError, match="already exists"):
        create_client(store, "gone")
    assert [client.state for client in list_clients(store)] == ["deleted"]


@pytest.mark.interface("5.1", "credentials")
def test_after_a_rotation_both_secrets_are_valid_until_the_overlap_ends(store, clock, monkeypatch):
    monkeypatch.setattr(time, "time", clock)
    oldest, other = create_client(store, "me"), create_client(store, "other")
    old, new = (_rotate(store, "me") for _ in range(2))

    def valid(client_id="me"):
        every = (oldest, old, new, other)
        return [authenticate(store, client_id, each.secret, clock=clock) for each in every]

    clock.now += 59.9
    assert valid() == [False, True, True, False]
    assert valid("other") == [False, False, False, True]
    clock.now += 0.1
    assert valid() == [False, False, True, False]
    change_state(store, "me", ClientState.DELETED)
    assert valid() == [False] * 4


# Expired tokens.


@pytest.fixture
def issue(store, credentials, clock):
    """Issue a token while there are five expired ones more, and give how many are stored then."""

    def issue(after):
        clock.now += after
        rows = [
            {"token_hash": os.urandom(32), "client_id": credentials.client_id, "expires_at": 1.0}
            for _ in range(5)
        ]
        with store.writing() as connection:
            connection.execute(insert(tokens), rows)
        token = issue_token(store, credentials.client_id, clock.now)
        assert client_of_token(store, token, clock.now) == credentials.client_id
        with store.reading() as connection:
            return connection.execute(select(func.count()).select_from(tokens)).scalar_one()

    return issue


@pytest.mark.interface("3.1", "expired")
def test_expired_tokens_are_deleted_once_a_minute(issue):
    assert [issue(seconds) for seconds in (0, 59, 1)] == [1, 7, 3]
    assert issue(-1e6) == 4, "a clock that was set back does not stop it"


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_token_is_issued_although_the_deletion_fails(store, issue, caplog):
    with store.writing() as connection:
        trigger = "CREATE TRIGGER broken BEFORE DELETE ON tokens BEGIN DELETE FROM absent; END"
        connection.execute(text(trigger))
    assert issue(0) == 6
    assert "expired tokens cannot be deleted" in caplog.text
