from __future__ import annotations

import os

import pytest

from configs import read_config, settings_from
from dkimctl.errors import InputError, UsageError
from dkimctl.settings.config import Config


@pytest.fixture(scope="session")
def resolve():
    """Resolve a profile; every source is optional."""
    return lambda **sources: settings_from(**sources).profile


@pytest.fixture(scope="session")
def refusal():
    """The error of resolving a profile."""

    def refusal(**sources: object) -> UsageError:
        with pytest.raises(UsageError) as caught:
            settings_from(**sources)
        assert caught.value.hint
        return caught.value

    return refusal


@pytest.fixture
def load(tmp_path):
    """Load a config file with this text."""

    def load(text: str) -> Config:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return read_config(path)

    return load


@pytest.fixture
def problems(load, tmp_path):
    """The problems of a config file with this text, none of which quotes `hunter2`."""

    def problems(text: str) -> list[str]:
        with pytest.raises(InputError) as caught:
            load(text)
        found = caught.value.problems
        assert all(problem.hint for problem in found)
        assert "hunter2" not in repr(found)
        return [str(problem).removeprefix(f"{tmp_path}{os.sep}config.yaml:") for problem in found]

    return problems
