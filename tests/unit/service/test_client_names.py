"""The client IDs in a data file."""

from __future__ import annotations

from contextlib import closing

import pytest

from dkimctl.service.client_names import read_client_states
from dkimctl.service.clients import create_client, delete_client, disable_client
from dkimctl.service.database.opening import open_store


def test_they_are_read_while_the_service_runs(tmp_path):
    path = tmp_path / "service.db"
    with closing(open_store(path)) as store:
        for name in ("one", "two", "gone"):
            create_client(store, name)
        disable_client(store, "two")
        delete_client(store, "gone")
        assert read_client_states(path) == [("one", "active"), ("two", "disabled")]
    assert read_client_states(path) == [("one", "active"), ("two", "disabled")]


def test_without_a_data_file_none_is_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_client_states(tmp_path / "service.db")
    assert list(tmp_path.iterdir()) == []
