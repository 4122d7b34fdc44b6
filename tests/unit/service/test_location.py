"""Where the service's data is, from what an operator writes."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.service.clients import ClientState, change_state, create_client
from dkimctl.service.database import open_store
from dkimctl.service.location import DatabaseUrl, default_location, read_client_ids, read_location


@pytest.mark.parametrize("text", ["service.db", "a b?c#d.db", "postgresql:x", "C:\\x\\y.db"])
def test_other_text_is_a_path(text):
    assert read_location(text) == Path(text)


@pytest.mark.parametrize(
    ("text", "name", "has_password"),
    [
        ("postgresql+psycopg://me@db.example/dkim", "postgresql://db.example/dkim", False),
        ("postgresql://me:hush@[::1]:5433/dkim", "postgresql://::1:5433/dkim", True),
        ("postgresql:///dkim?host=/run/pg&password=hush", "postgresql:///run/pg/dkim", True),
        ("postgresql://db/dkim?sslpassword=hush", "postgresql://db/dkim", True),
    ],
)
def test_a_url_is_shown_without_secrets(text, name, has_password):
    location = read_location(text)
    assert isinstance(location, DatabaseUrl)
    assert (location.name, location.has_password) == (name, has_password)
    assert "hush" not in repr(location)


@pytest.mark.parametrize(
    "text", ["mysql://me:hush@host/x", "sqlite:///x.db", "postgresql+psycopg2://me:hush@host/x"]
)
def test_another_kind_of_database_is_refused_without_quoting_it(text):
    with pytest.raises(UsageError) as caught:
        read_location(text)
    assert "hush" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "userinfo", ["user:12/hush", "user:/hush", "user:12#hush", "user:1?hush", "user:a@/hush"]
)
def test_a_password_that_is_not_encoded_is_refused_without_quoting_it(userinfo):
    with pytest.raises(UsageError) as caught:
        read_location(f"postgresql+psycopg://{userinfo}@127.0.0.1/db")
    assert "hush" not in caught.value.message + caught.value.hint


@given(st.text())
def test_any_url_is_read_or_refused(rest):
    with suppress(UsageError):
        assert "hush" not in repr(read_location(f"postgresql://u:hush@{rest}"))


@pytest.mark.parametrize(
    "rest", ["[::1", "host:port/x", "host:99999/x", "host/x?connect_timeout=a"]
)
def test_a_url_that_is_wrong_is_a_usage_error(rest):
    with pytest.raises(UsageError) as caught:
        open_store(read_location(f"postgresql://u:hush@{rest}"))
    assert "hush" not in f"{caught.value.message} {caught.value.__cause__!r}"


def test_the_environment_says_where_it_is_by_default(tmp_path):
    named = default_location({"DKIMCTL_SERVICE_DATABASE": str(tmp_path / "x.db")})
    assert named == tmp_path / "x.db"
    with pytest.raises(UsageError, match="DKIMCTL_SERVICE_DATABASE"):
        default_location({"DKIMCTL_SERVICE_DATABASE": "mysql://x"})


def test_the_ids_of_clients_are_read_while_the_service_runs(tmp_path):
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        for name in ("one", "two", "gone"):
            create_client(store, name)
        change_state(store, "two", ClientState.DISABLED)
        change_state(store, "gone", ClientState.DELETED)
        assert read_client_ids(path) == ["one", "two"]
    assert read_client_ids(path) == ["one", "two"]
