"""Where config, state and data are."""

from __future__ import annotations

from pathlib import Path

from dkimctl.system.directories import config_path, data_dir, state_dir


def test_flag_then_environment_then_platform_directory():
    environ = {"DKIMCTL_CONFIG": "there.yaml", "DKIMCTL_STATE_DIR": "state"}
    assert config_path("here.yaml", environ) == Path("here.yaml")
    assert config_path(None, environ) == Path("there.yaml")
    assert config_path(None, {}).parts[-2:] == ("dkimctl", "config.yaml")
    assert state_dir(environ) == Path("state")
    assert state_dir({}).is_absolute()
    assert "dkimctl" in state_dir({"DKIMCTL_STATE_DIR": ""}).parts
    assert "dkimctl" in data_dir().parts
