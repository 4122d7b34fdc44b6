from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from configs import read_config
from dkimctl.errors import InputError, UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import Profile, resolve_settings


def _resolve(
    flags: Mapping | None = None,
    environ: Mapping | None = None,
    config: Config | None = None,
    logins: Mapping | None = None,
) -> Profile:
    return resolve_settings(
        flags=flags or {}, environ=environ or {}, config=config or Config(), logins=logins or {}
    ).profile


@pytest.fixture(scope="session")
def resolve():
    """Resolve a profile; every source is optional."""
    return _resolve


@pytest.fixture(scope="session")
def sources():
    """The source of each key as words; every argument is optional."""

    def sources(**given: object) -> Mapping[str, str]:
        nothing = {"flags": {}, "environ": {}, "config": Config(), "logins": {}}
        settings = resolve_settings(**{**nothing, "config_file": "/c.yaml", **given})
        return {key: str(source) for key, source in settings.sources.items()}

    return sources


@pytest.fixture(scope="session")
def refusal():
    """The error of resolving a profile."""

    def refusal(**sources: object) -> UsageError:
        with pytest.raises(UsageError) as caught:
            _resolve(**sources)
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
    """The problems of a config file with this text."""

    def problems(text: str) -> list[str]:
        with pytest.raises(InputError) as caught:
            load(text)
        assert all(problem.hint for problem in caught.value.problems)
        return [
            str(problem).removeprefix(f"{tmp_path}{os.sep}") for problem in caught.value.problems
        ]

    return problems
