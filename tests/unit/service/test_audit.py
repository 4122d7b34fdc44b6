"""Who did what, and when."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from falcon.testing import Result

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service import audit
from dkimctl.service.audit import Event, purge_events, read_events
from dkimctl.service.clients import (
    ClientCredentials,
    create_client,
    delete_client,
    disable_client,
    enable_client,
    rotate_secret,
    undo_rotation,
    withdraw_client,
)
from dkimctl.service.database.store import Store
from dkimctl.service.deliveries import add_delivery
from dkimctl.service.registration_management import delete_registration, set_enabled
from dkimctl.service.registrations import RegistrationName


def _add(store: Store, *days: int, subject: str = "x") -> None:
    events = [Event(f"2026-01-{day:02}T00:00:00+00:00", "me", "test", subject) for day in days]
    with store.writing() as connection:
        audit.record(connection, events)


def test_what_operators_do_is_recorded_with_their_names(store: Store) -> None:
    created = create_client(store, "me")
    disable_client(store, "me")
    enable_client(store, "me")
    add_delivery(store, "me", "delivery-1")
    rotation = rotate_secret(store, "me", 60)
    undo_rotation(store, rotation)
    delete_client(store, "me")
    create_client(store, "other")
    withdraw_client(store, "other")
    events = [*read_events(store)]
    assert [(event.action, event.subject) for event in events] == [
        ("client create", "me"),
        ("client disable", "me"),
        ("client enable", "me"),
        ("delivery add", "me delivery-1"),
        ("client rotate-secret", "me"),
        ("client rotate-secret undone", "me"),
        ("client delete", "me"),
        ("client create", "other"),
        ("client withdraw", "other"),
    ]
    assert {event.actor for event in events} == {
        f"operator:{getpass.getuser()}@{socket.gethostname()}"
    }
    assert not any(
        secret in field
        for secret in (created.secret, rotation.credentials.secret)
        for event in events
        for field in event
    )
    for event in events:
        at = datetime.fromisoformat(event.at)
        assert timedelta(0) <= datetime.now(UTC) - at < timedelta(minutes=5)


def test_the_environment_does_not_tell_who_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = getpass.getuser()
    monkeypatch.setenv("LOGNAME", "somebody-else")
    create_client(store, "me")
    assert [event.actor for event in read_events(store)] == [
        f"operator:{user}@{socket.gethostname()}"
    ]


def test_registrations_are_recorded_with_the_client(
    register: Callable[..., Result], credentials: ClientCredentials, store: Store
) -> None:
    entry = {"sign_domain": "example.com", "selector": "s1"}
    register(entry)
    register(entry)  # a 409 is no registration
    last = [*read_events(store)][-1]
    expected = ("2021-07-01T00:00:00+00:00", credentials.client_id, "register", "example.com s1")
    assert last == expected
    assert [event.action for event in read_events(store)] == ["client create", "register"]


def test_changes_of_registrations_by_operators_are_recorded(
    register: Callable[..., Result], store: Store
) -> None:
    register({"sign_domain": "example.com", "selector": "s1"})
    name = RegistrationName("example.com", "s1")
    set_enabled(store, name, False)
    set_enabled(store, name, True)
    delete_registration(store, name)
    with pytest.raises(NegativeAnswer):
        delete_registration(store, name)
    events = [*read_events(store)][-3:]
    assert [event.action for event in events] == [
        "registration disable",
        "registration enable",
        "registration delete",
    ]
    assert {event.subject for event in events} == {"example.com s1"}
    assert all(event.actor.startswith("operator:") for event in events)


def test_what_fails_is_not_recorded(store: Store) -> None:
    with pytest.raises(NegativeAnswer):
        disable_client(store, "unknown")
    create_client(store, "me")
    with pytest.raises(UsageError):
        create_client(store, "me")
    assert [event.action for event in read_events(store)] == ["client create"]


def test_no_client_can_pass_for_an_operator(store: Store) -> None:
    with pytest.raises(UsageError):
        create_client(store, "operator:root@host")


def test_more_events_than_are_read_at_once_are_read_in_order(store: Store) -> None:
    _add(store, *[1] * 2500)
    with store.writing() as connection:
        audit.record(connection, [Event("2026-01-02T00:00:00+00:00", "me", "test", "last")])
    events = [*read_events(store)]
    assert len(events) == 2501
    assert events[-1].subject == "last"


def test_those_since_a_moment_in_any_time_zone(store: Store) -> None:
    _add(store, 1, 2, 3)
    since = datetime.fromisoformat("2026-01-02T02:00:00+02:00")
    assert [event.at[:10] for event in read_events(store, since)] == ["2026-01-02", "2026-01-03"]
    later = since + timedelta(seconds=1)
    assert [event.at[:10] for event in read_events(store, later)] == ["2026-01-03"]


def test_old_events_can_be_purged_which_is_recorded(store: Store) -> None:
    _add(store, *[1] * 2500, 2)
    assert purge_events(store, datetime(2026, 1, 2, tzinfo=UTC)) == 2500
    kept, purge = read_events(store)
    assert kept.at == "2026-01-02T00:00:00+00:00"
    assert (purge.action, purge.subject) == ("audit purge", "before 2026-01-02T00:00:00+00:00")
