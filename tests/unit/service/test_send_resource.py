"""DELETE /send/<delivery_id>: interface 4.3, 5.3."""

from __future__ import annotations

import pytest

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import add_delivery, delete_client


def _cancel(client, token, delivery_id):
    headers = {"Authorization": f"Bearer {token}"}
    return client.simulate_delete(f"/send/{delivery_id}", headers=headers)


@pytest.mark.interface("4.3", "delete", "items")
@pytest.mark.interface("5.3", "header", "success")
def test_a_delivery_of_this_client_is_cancelled_once(client, token, store, credentials):
    delivery_id = add_delivery(store, credentials.client_id)
    result = _cancel(client, token, delivery_id)
    assert result.status_code == 200
    assert result.json == {"items": [{"delivery_id": delivery_id}]}
    again = _cancel(client, token, delivery_id)
    assert again.status_code == 404
    assert list(again.json) == ["message"]


@pytest.mark.interface("4.3", "unknown")
def test_a_delivery_of_another_client_is_404_and_not_cancelled(
    client, token, store, credentials, other_credentials
):
    add_delivery(store, other_credentials.client_id, "theirs")
    assert _cancel(client, token, "theirs").status_code == 404
    with pytest.raises(UsageError, match="already exists"):
        add_delivery(store, credentials.client_id, "theirs")


@pytest.mark.interface("4.3", "unknown")
def test_an_unknown_delivery_is_404(client, token):
    for delivery_id in ("unknown", "%FF", "%00", "a%20b", "x" * 5000):
        assert _cancel(client, token, delivery_id).status_code == 404


@pytest.mark.parametrize("delivery_id", ["", "a/b", "a b", "a?b", "ä", "x" * 129])
def test_a_delivery_id_that_cannot_be_in_a_path_is_refused(store, credentials, delivery_id):
    with pytest.raises(UsageError, match="invalid delivery ID"):
        add_delivery(store, credentials.client_id, delivery_id)


def test_only_an_existing_client_has_deliveries(store, credentials):
    with pytest.raises(NegativeAnswer, match="does not exist"):
        add_delivery(store, "unknown")
    delete_client(store, credentials.client_id)
    with pytest.raises(NegativeAnswer, match="final"):
        add_delivery(store, credentials.client_id)
