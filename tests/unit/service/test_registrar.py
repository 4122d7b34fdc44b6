from __future__ import annotations

from dkimctl.service.clients import ClientCredentials
from dkimctl.service.keys import KeyMaker
from dkimctl.service.registrar import Registrar
from dkimctl.service.store import Store
from dkimctl.service.validation import Entry

ENTRY = Entry("example.com", None, 1024, None, 0, True)


def test_a_generated_selector_that_is_taken_is_replaced(
    store: Store, credentials: ClientCredentials, make_key: KeyMaker, ordered_keys: list[int]
) -> None:
    selectors = iter(["k1", "k2", "k3", "k1", "k4", "k5"])
    registrar = Registrar(store, make_key, lambda: 0.0, selectors.__next__)
    items = registrar.register(credentials.client_id, [ENTRY, ENTRY])
    assert [(item["result"]["code"], item["selector"]) for item in items] == [
        ("201", "k1"),
        ("201", "k4"),
    ]
    assert len(ordered_keys) == 2
