"""A store with registrations whose private keys say whose they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dkimctl.service import registrations
from dkimctl.service.clients import create_client
from dkimctl.service.database.store import Store
from dkimctl.service.registrations import Registration

Register = Callable[..., None]


@pytest.fixture
def register(store: Store) -> Register:
    """Store a registration of the client "first", or of another one."""
    for client_id in ("first", "second"):
        create_client(store, client_id)

    def register(
        sign_domain: str,
        selector: str,
        start_date: str = "2021-01-01T00:00+00:00",
        *,
        client_id: str = "first",
        default: int = 0,
        enable: bool = True,
        regist_date: str = "2021-01-01T00:00:00+00:00",
    ) -> None:
        registration = Registration(
            client_id,
            sign_domain,
            selector,
            2048,
            start_date,
            default,
            enable,
            "value",
            regist_date,
        )
        key = f"key of {sign_domain} {selector}".encode()
        assert registrations.add_all(store, {registration: key})

    return register
