"""The directories of the user's files: where they are, and how they are created."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from dkimctl.system.ownership import directory_fault

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


def prepare_directory(directory: Path) -> None:
    """Create a missing directory, unless the place is unsafe: `directory_fault` then says why.

    It and its parents get mode 0700, whatever the umask. Check it afterwards: another user may have
    created it first. Raises OSError.
    """
    if directory.is_dir() or directory_fault(directory):
        return
    ways = itertools.chain((directory,), directory.parents)
    missing = list(itertools.takewhile(lambda path: not path.is_dir(), ways))
    for path in reversed(missing):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            path.chmod(0o700)  # the umask may have removed more
