"""A world in files: see rotation_world."""

import contextlib

import pytest

from rotation_world import World


@pytest.fixture
def world(tmp_path, key_records):
    with contextlib.closing(World(tmp_path, key_records[2048].partition("p=")[2])) as world:
        yield world
