"""Where config, state and data are."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from dkimctl.settings.paths import config_path, data_dir, state_dir


def test_flag_then_environment_then_platform_directory():
    environ = {"DKIMCTL_CONFIG": "there.yaml", "DKIMCTL_STATE_DIR": "state"}
    assert config_path("here.yaml", environ) == Path("here.yaml")
    assert config_path(None, environ) == Path("there.yaml")
    assert config_path(None, {}).parts[-2:] == ("dkimctl", "config.yaml")
    assert state_dir(environ) == Path("state")
    assert state_dir({}).is_absolute()
    assert "dkimctl" in state_dir({"DKIMCTL_STATE_DIR": ""}).parts
    assert "dkimctl" in data_dir().parts


@pytest.mark.parametrize("home", ["/home/me", "/home/me/", "/", None])
@pytest.mark.parametrize("xdg", ["/xdg", "/xdg//there/", "", None])
def test_the_directories_are_those_of_platformdirs(monkeypatch, home, xdg):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        value = home if name == "HOME" else xdg
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    app = {"appname": "dkimctl", "appauthor": False}
    assert config_path(None, {}).parent == platformdirs.user_config_path(**app)
    assert state_dir({}) == platformdirs.user_state_path(**app)
    assert data_dir() == platformdirs.user_data_path(**app)
