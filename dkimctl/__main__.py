"""The entry point: `dkimctl`, or `python -m dkimctl`."""

from __future__ import annotations

import gc
import sys

from dkimctl import __version__

# What a command makes at its start lives to its end. Looking for garbage among it every
# 700 objects, as is the default, and three times at exit takes a seventh of its time.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> int:
    """Run the command line and return the exit status."""
    if sys.argv[1:] == ["--version"]:  # asked by scripts, so it comes without any import
        try:
            print(f"dkimctl {__version__}", flush=True)  # noqa: T201
        except OSError:
            return 4
        return 0
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from dkimctl.cli.main import run

    try:
        return run(sys.argv[1:])
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
