"""Whatever is sent to POST /domain/dkim, the answer is JSON, and not a 500."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from description import DescribedClient
from dkimctl.service.app import create_app
from dkimctl.service.clients import create_client, issue_token
from dkimctl.service.database import open_store

NOW = 1625097600.0

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def post(tmp_path_factory, fixed_keys):
    path: Path = tmp_path_factory.mktemp("fuzz") / "service.db"
    store = open_store(path)
    token = issue_token(store, create_client(store).client_id, NOW)
    app = create_app(store, clock=lambda: NOW, make_key=fixed_keys.__getitem__)
    client = DescribedClient(app, headers={"Authorization": f"Bearer {token}"})
    yield lambda body: client.simulate_post("/domain/dkim", body=body)
    store.close()


@given(
    st.binary(max_size=200)
    | (json_values | st.fixed_dictionaries({"domains": json_values}))
    .map(json.dumps)
    .map(str.encode)
)
@settings(max_examples=200, deadline=None)
def test_anything(post, body):
    result = post(body)
    assert result.status_code in {200, 400}
    assert {*result.json} - {"message"} == {"items", "count", "total"}
