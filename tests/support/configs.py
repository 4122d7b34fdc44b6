"""Config files, and the other sources of settings, read as the commands read them."""

from __future__ import annotations

from pathlib import Path

from dkimctl.settings.config import Config, load_config
from dkimctl.settings.profile import Settings, Sources, resolve_settings


def read_config(path: Path, *, required: bool = True) -> Config:
    """The config of this file. Raises UsageError."""
    return load_config(path, required=required)


def settings_from(**sources: object) -> Settings:
    """The settings by these sources, each of which is optional. Raises UsageError."""
    nothing = Sources({}, {}, Config(), "/c.yaml", {}, Path("/nonexistent"))
    return resolve_settings(nothing._replace(**sources))
