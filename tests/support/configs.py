"""Config files, read as the commands read them."""

from __future__ import annotations

from pathlib import Path

from dkimctl.settings.config import Config, load_config


def read_config(path: Path, *, required: bool = True) -> Config:
    """The config of this file. Raises UsageError."""
    return load_config(path, required=required)
