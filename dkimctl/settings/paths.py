"""The platform's directories for config, state and data."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_APP = "dkimctl"


def config_path(flag: str | None, environ: Mapping[str, str]) -> Path:
    """`flag`, else DKIMCTL_CONFIG, else config.yaml in the user's config directory."""
    if given := flag or environ.get("DKIMCTL_CONFIG"):
        return Path(given)
    return _config_dir() / "config.yaml"


def state_dir(environ: Mapping[str, str]) -> Path:
    """DKIMCTL_STATE_DIR, else the user's state directory. It may not exist."""
    if given := environ.get("DKIMCTL_STATE_DIR"):
        return Path(given)
    if directory := _xdg_directory("XDG_STATE_HOME", ".local/state"):
        return directory
    import platformdirs

    return platformdirs.user_state_path(_APP, appauthor=False)


def data_dir() -> Path:
    """The user's data directory, for the embedded service. It may not exist."""
    if directory := _xdg_directory("XDG_DATA_HOME", ".local/share"):
        return directory
    import platformdirs

    return platformdirs.user_data_path(_APP, appauthor=False)


def _config_dir() -> Path:
    if directory := _xdg_directory("XDG_CONFIG_HOME", ".config"):
        return directory
    import platformdirs

    return platformdirs.user_config_path(_APP, appauthor=False)


def _xdg_directory(variable: str, default: str) -> Path | None:
    """On Linux, what platformdirs gives, which takes 6 ms to import; None where it knows better."""
    if sys.platform != "linux" or "ANDROID_ROOT" in os.environ:
        return None
    if (base := os.environ.get(variable, "")).startswith("/"):
        return Path(base, _APP)
    home = os.environ.get("HOME", "")
    return Path(home, default, _APP) if home.startswith("/") else None
