"""Config files, read as the commands read them."""

from __future__ import annotations

from pathlib import Path

from dkimctl.settings.config import Config, load_config
from dkimctl.specs.fields import read_defaults
from dkimctl.specs.names import parse_zone


def read_config(path: Path, *, required: bool = True) -> Config:
    """The config of this file. Raises UsageError."""
    return load_config(path, required=required, read_defaults=read_defaults, parse_zone=parse_zone)
