"""The bearer token on protected requests: interface 3.1, 3.2, 5.2, 7.2."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

import pytest
from falcon.testing import Result
from sqlalchemy import func, insert, select, text

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import (
    ClientState,
    authenticate,
    change_state,
    client_of_token,
    create_client,
    creating_client,
    issue_token,
    list_clients,
    rotating_secret,
)
from dkimctl.service.database import open_store
from dkimctl.service.schema import tokens


def test_the_secret_is_neither_in_the_repr_nor_in_the_file(sqlite_store):
    created = create_client(sqlite_store)
    assert created.secret not in repr(created)
    files = sqlite_store.path.parent.iterdir()
    assert not any(created.secret.encode() in file.read_bytes() for file in files)


def test_an_existing_client_id_is_refused_even_if_deleted(store):
    create_client(store, "twice")
    with pytest.raises(UsageError, match="already exists"):
        create_client(store, "twice")
    change_state(store, "twice", ClientState.DELETED)
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
    change_state(store, "b", ClientState.DISABLED)
    change_state(store, "c", ClientState.DELETED)
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


def _rotate(store, client_id, overlap=60, clock=time.time):
    with rotating_secret(store, client_id, overlap, clock=clock) as credentials:
        return credentials


@pytest.mark.parametrize("state", ClientState)
def test_an_unknown_client_is_a_negative_answer(store, state):
    with pytest.raises(NegativeAnswer, match="the client does not exist"):
        change_state(store, "unknown", state)
    with pytest.raises(NegativeAnswer, match="the client does not exist"):
        _rotate(store, "unknown")


@pytest.mark.interface("3.2", "restore")
@pytest.mark.parametrize("state", ClientState)
def test_deletion_is_final(store, state):
    create_client(store, "gone")
    change_state(store, "gone", ClientState.DELETED)
    with pytest.raises(NegativeAnswer, match="final"):
        change_state(store, "gone", state)
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
    new = _rotate(store, "me", clock=clock)
    assert new.client_id == "me"
    clock.now += 59.9
    for credentials in (old, new):
        assert authenticate(store, "me", credentials.secret, clock=clock)
    clock.now += 0.1
    assert not authenticate(store, "me", old.secret, clock=clock)
    assert authenticate(store, "me", new.secret, clock=clock)


def test_of_three_secrets_the_oldest_is_invalid(store, clock):
    oldest = create_client(store, "me")
    secrets = [_rotate(store, "me", clock=clock).secret for _ in range(2)]
    assert not authenticate(store, "me", oldest.secret, clock=clock)
    assert all(authenticate(store, "me", secret, clock=clock) for secret in secrets)


def test_a_previous_secret_is_of_its_own_client_only(store, clock):
    old = create_client(store, "first")
    _rotate(store, "first", clock=clock)
    create_client(store, "second")
    assert not authenticate(store, "second", old.secret, clock=clock)
    assert not authenticate(store, "unknown", old.secret, clock=clock)


def test_a_rotation_of_a_deleted_client_does_not_revive_it(store, clock):
    old = create_client(store, "me")
    new = _rotate(store, "me", clock=clock)
    change_state(store, "me", ClientState.DELETED)
    assert not authenticate(store, "me", old.secret, clock=clock)
    assert not authenticate(store, "me", new.secret, clock=clock)
    with pytest.raises(NegativeAnswer, match="final"):
        _rotate(store, "me")


@pytest.mark.parametrize("change", [creating_client, partial(rotating_secret, overlap=0)])
def test_a_secret_that_cannot_be_handed_over_changes_nothing(store, change):
    before = create_client(store, "me")
    client_id = "me" if change is not creating_client else "new"
    with pytest.raises(OSError, match="full"), change(store, client_id) as new:
        raise OSError("full")
    assert authenticate(store, "me", before.secret)
    assert not authenticate(store, client_id, new.secret)
    assert [client.client_id for client in list_clients(store)] == ["me"]


REQUESTS = [("POST", "/domain/dkim"), ("DELETE", "/send/some-delivery")]

Send = Callable[[str | None], Result]


@pytest.fixture(params=REQUESTS, ids=["dkim", "send"])
def send(client, request):
    """Send a protected request that has no effect if it is authorized."""
    method, path = request.param

    def send(authorization):
        headers = {} if authorization is None else {"Authorization": authorization}
        return client.simulate_request(method, path, headers=headers)

    return send


def _is_authorized(result):
    """Whether the status is that of the operation itself: no body, or no such delivery."""
    return result.status_code in {400, 404}


def _assert_forbidden(result):
    assert result.status_code == 403
    assert result.json == {"message": "Forbidden"}


@pytest.mark.interface("3.1", "issue")
@pytest.mark.interface("3.2", "active")
@pytest.mark.interface("5.1", "bearer")
@pytest.mark.interface("5.2", "header", "authenticated")
@pytest.mark.interface("5.3", "header")
def test_a_token_gives_access(send, token):
    assert _is_authorized(send(f"Bearer {token}"))


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_case_of_the_scheme_does_not_matter(send, token, scheme):
    assert _is_authorized(send(f"{scheme} {token}"))


@pytest.mark.interface("4.3", "delete")
@pytest.mark.interface("5.2", "missing", "header")
@pytest.mark.interface("5.3", "missing", "registering")
@pytest.mark.interface("7.2", "401")
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  ", "Basic YTpi", "x" * 1000])
def test_a_missing_token_is_401(send, header):
    result = send(header)
    assert result.status_code == 401
    assert result.json == {"message": "Unauthorized"}
    assert result.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.interface("5.2", "unauthorized")
@pytest.mark.interface("7.2", "403")
@pytest.mark.interface("7.4", "other-fields")
@pytest.mark.parametrize("unknown", ["unknown", "\xe9\xff", "a b", "x" * 5000])
def test_an_unknown_token_is_403(send, unknown):
    _assert_forbidden(send(f"Bearer {unknown}"))


@pytest.mark.interface("3.1", "reuse", "expiry", "expired")
@pytest.mark.interface("5.2", "expired")
@pytest.mark.interface("8", "token-lifetime", "token-reuse")
def test_a_token_works_any_number_of_times_until_an_hour_after_issue(send, token, clock):
    for seconds in (0, 1, 1800, 1798.9):
        clock.now += seconds
        assert _is_authorized(send(f"Bearer {token}"))
    clock.now += 0.1
    _assert_forbidden(send(f"Bearer {token}"))


@pytest.mark.interface("3.1", "expired")
def test_a_token_of_a_clock_that_was_set_back_is_not_valid_for_longer(send, token, clock):
    clock.now -= 1
    _assert_forbidden(send(f"Bearer {token}"))
    clock.now += 1
    assert _is_authorized(send(f"Bearer {token}"))


@pytest.mark.parametrize("header", ["Bearer \xa0{}", "Bearer \x85{}"])
def test_only_ascii_blanks_are_left_out(send, token, header):
    assert _is_authorized(send(f"Bearer  {token} "))
    _assert_forbidden(send(header.format(token)))


@pytest.mark.interface("3.1", "several", "independent")
def test_each_of_several_tokens_has_its_own_expiry(send, token, get_token, credentials, clock):
    clock.now += 1800
    second = get_token(credentials)
    assert second != token
    assert _is_authorized(send(f"Bearer {token}"))
    assert _is_authorized(send(f"Bearer {second}"))
    clock.now += 1800
    _assert_forbidden(send(f"Bearer {token}"))
    assert _is_authorized(send(f"Bearer {second}"))
    clock.now += 1800
    _assert_forbidden(send(f"Bearer {second}"))


@pytest.mark.interface("3.2", "disabled-use")
@pytest.mark.interface("5.2", "disabled")
def test_a_disabled_clients_tokens_are_403(send, token, get_token, credentials, store):
    change_state(store, credentials.client_id, ClientState.DISABLED)
    _assert_forbidden(send(f"Bearer {token}"))
    _assert_forbidden(send(f"Bearer {get_token(credentials)}"))


@pytest.mark.interface("3.2", "restore")
def test_a_deleted_clients_tokens_are_403(send, token, credentials, store):
    change_state(store, credentials.client_id, ClientState.DELETED)
    _assert_forbidden(send(f"Bearer {token}"))


def _stored(store):
    with store.reading() as connection:
        return connection.execute(select(func.count()).select_from(tokens)).scalar_one()


def _add_expired(store, client_id, count):
    rows = [
        {"token_hash": number.to_bytes(4), "client_id": client_id, "expires_at": 1.0}
        for number in range(count)
    ]
    with store.writing() as connection:
        connection.execute(insert(tokens), rows)


@pytest.mark.interface("3.1", "expired")
def test_expired_tokens_are_deleted_once_a_minute(credentials, store, clock):
    issue_token(store, credentials.client_id, clock.now)
    clock.now += 59
    _add_expired(store, credentials.client_id, 5)
    issue_token(store, credentials.client_id, clock.now)
    assert _stored(store) == 7
    clock.now += 1
    issue_token(store, credentials.client_id, clock.now)
    assert _stored(store) == 3


def test_many_expired_tokens_are_deleted_a_thousand_at_each_issue(credentials, store, clock):
    _add_expired(store, credentials.client_id, 2500)
    left = []
    for _ in range(4):
        issue_token(store, credentials.client_id, clock.now)
        left.append(_stored(store))
    assert left == [1501, 502, 3, 4]


def test_a_clock_that_was_set_back_does_not_stop_the_deletion(credentials, store, clock):
    issue_token(store, credentials.client_id, clock.now + 1e6)
    _add_expired(store, credentials.client_id, 5)
    issue_token(store, credentials.client_id, clock.now)
    assert _stored(store) == 2


@pytest.mark.slow
def test_tokens_that_another_process_deletes_are_not_waited_for(postgresql_database, clock):
    with closing(open_store(postgresql_database)) as store:
        client_id = create_client(store).client_id
        _add_expired(store, client_id, 5)
        with store.writing() as connection:
            connection.execute(select(tokens).limit(3).with_for_update()).all()
            issue_token(store, client_id, clock.now)
            assert _stored(store) == 4


def test_a_token_is_issued_although_the_deletion_fails(sqlite_store, clock, caplog):
    client_id = create_client(sqlite_store).client_id
    _add_expired(sqlite_store, client_id, 1)
    with sqlite_store.writing() as connection:
        trigger = "CREATE TRIGGER broken BEFORE DELETE ON tokens BEGIN DELETE FROM absent; END"
        connection.execute(text(trigger))
    token = issue_token(sqlite_store, client_id, clock.now)
    assert client_of_token(sqlite_store, token, clock.now) == client_id
    assert "expired tokens cannot be deleted" in caplog.text
