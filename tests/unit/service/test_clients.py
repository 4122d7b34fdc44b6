from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import (
    authenticate,
    create_client,
    delete_client,
    disable_client,
    enable_client,
    list_clients,
    rotate_secret,
    undo_rotation,
)


def test_the_secret_is_neither_in_the_repr_nor_in_the_file(sqlite_store):
    created = create_client(sqlite_store)
    assert created.secret not in repr(created)
    files = sqlite_store.path.parent.iterdir()
    assert not any(created.secret.encode() in file.read_bytes() for file in files)


def test_an_existing_client_id_is_refused_even_if_deleted(store):
    create_client(store, "twice")
    with pytest.raises(UsageError, match="already exists"):
        create_client(store, "twice")
    delete_client(store, "twice")
    with pytest.raises(UsageError, match="already exists"):
        create_client(store, "twice")


@pytest.mark.parametrize("client_id", ["", "a:b", "a b", "a\n", "ä", "x" * 129])
def test_a_client_id_that_cannot_be_sent_is_refused(store, client_id):
    with pytest.raises(UsageError, match="client ID"):
        create_client(store, client_id)


@pytest.mark.parametrize("secret", ["", "hush hush", "hush\x00", "hüsh"])
def test_a_secret_that_cannot_be_sent_is_refused_and_not_shown(store, secret):
    with pytest.raises(UsageError) as caught:
        create_client(store, "name", secret)
    assert not secret or secret not in caught.value.message + caught.value.hint


@pytest.mark.interface("3.2", "operator")
def test_clients_are_listed_with_state_and_creation_time(store):
    for name in ("c", "a", "b"):
        create_client(store, name)
    disable_client(store, "b")
    delete_client(store, "c")
    listed = list_clients(store)
    assert [(client.client_id, client.state) for client in listed] == [
        ("a", "active"),
        ("b", "disabled"),
        ("c", "deleted"),
    ]
    assert all(
        datetime.fromisoformat(client.created_at).utcoffset() == timedelta(0) for client in listed
    )


@pytest.mark.parametrize("change", ["state = 'bogus'", "created_at = x'ff'", "client_id = x'ff'"])
def test_an_invalid_client_in_the_file_is_reported(sqlite_store, change):
    create_client(sqlite_store, "name")
    with sqlite_store.writing() as connection:
        connection.execute(text(f"UPDATE clients SET {change}"))
    with pytest.raises(UsageError, match="invalid client") as caught:
        list_clients(sqlite_store)
    assert str(sqlite_store.path) in caught.value.message


@pytest.mark.parametrize(
    "operation",
    [
        disable_client,
        enable_client,
        delete_client,
        lambda store, name: rotate_secret(store, name, 60),
    ],
)
def test_an_unknown_client_is_a_negative_answer(store, operation):
    with pytest.raises(NegativeAnswer, match="the client does not exist"):
        operation(store, "unknown")


@pytest.mark.interface("3.2", "restore")
@pytest.mark.parametrize("operation", [disable_client, enable_client, delete_client])
def test_deletion_is_final(store, operation):
    create_client(store, "gone")
    delete_client(store, "gone")
    with pytest.raises(NegativeAnswer, match="final"):
        operation(store, "gone")
    assert [client.state for client in list_clients(store)] == ["deleted"]


@pytest.mark.interface("5.1", "credentials")
def test_authentication_needs_the_right_pair(store):
    created = create_client(store)
    assert authenticate(store, created.client_id, created.secret)
    assert not authenticate(store, created.client_id, created.secret + "x")
    assert not authenticate(store, created.client_id, "")
    assert not authenticate(store, "unknown", created.secret)


@pytest.mark.interface("5.1", "credentials")
def test_after_a_rotation_both_secrets_are_valid_until_the_overlap_ends(store, clock):
    old = create_client(store, "me")
    new = rotate_secret(store, "me", 60, clock=clock).credentials
    assert new.client_id == "me"
    clock.now += 59.9
    for credentials in (old, new):
        assert authenticate(store, "me", credentials.secret, clock=clock)
    clock.now += 0.1
    assert not authenticate(store, "me", old.secret, clock=clock)
    assert authenticate(store, "me", new.secret, clock=clock)


def test_of_three_secrets_the_oldest_is_invalid(store, clock):
    oldest = create_client(store, "me")
    secrets = [rotate_secret(store, "me", 60, clock=clock).credentials.secret for _ in range(2)]
    assert not authenticate(store, "me", oldest.secret, clock=clock)
    assert all(authenticate(store, "me", secret, clock=clock) for secret in secrets)


def test_a_previous_secret_is_of_its_own_client_only(store, clock):
    old = create_client(store, "first")
    rotate_secret(store, "first", 60, clock=clock)
    create_client(store, "second")
    assert not authenticate(store, "second", old.secret, clock=clock)
    assert not authenticate(store, "unknown", old.secret, clock=clock)


def test_a_rotation_of_a_deleted_client_does_not_revive_it(store, clock):
    old = create_client(store, "me")
    new = rotate_secret(store, "me", 60, clock=clock).credentials
    delete_client(store, "me")
    assert not authenticate(store, "me", old.secret, clock=clock)
    assert not authenticate(store, "me", new.secret, clock=clock)
    with pytest.raises(NegativeAnswer, match="final"):
        rotate_secret(store, "me", 60)


def test_a_rotation_can_be_undone(store, clock):
    first = create_client(store, "me")
    second = rotate_secret(store, "me", 60, clock=clock).credentials
    rotation = rotate_secret(store, "me", 0, clock=clock)
    undo_rotation(store, rotation)
    valid = [
        authenticate(store, "me", one.secret, clock=clock)
        for one in (first, second, rotation.credentials)
    ]
    assert valid == [True, True, False]


def test_undoing_a_rotation_leaves_a_later_one_alone(store, clock):
    create_client(store, "me")
    rotation = rotate_secret(store, "me", 0, clock=clock)
    later = rotate_secret(store, "me", 0, clock=clock).credentials
    undo_rotation(store, rotation)
    assert authenticate(store, "me", later.secret, clock=clock)


def test_neither_the_secret_nor_a_hash_is_in_the_repr_of_a_rotation(store):
    create_client(store, "me")
    rotation = rotate_secret(store, "me", 60)
    assert rotation.credentials.secret not in repr(rotation)
    assert repr(rotation.before["secret_hash"]) not in repr(rotation)
