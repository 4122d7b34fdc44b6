"""The platform's directories for config, state and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_APP = "dkimctl"


def config_path(flag: str | None, environ: Mapping[str, str]) -> Path:
    """`flag`, else DKIMCTL_CONFIG, else config.yaml in the user's config directory."""
    if given := flag or environ.get("DKIMCTL_CONFIG"):
        return Path(given)
    import platformdirs

    return platformdirs.user_config_path(_APP, appauthor=False) / "config.yaml"


def state_dir(environ: Mapping[str, str]) -> Path:
    """DKIMCTL_STATE_DIR, else the user's state directory. It may not exist."""
    if given := environ.get("DKIMCTL_STATE_DIR"):
        return Path(given)
    import platformdirs

    return platformdirs.user_state_path(_APP, appauthor=False)


def data_dir() -> Path:
    """The user's data directory, for the embedded service. It may not exist."""
    import platformdirs

    return platformdirs.user_data_path(_APP, appauthor=False)
