"""The entry point: `dkimctl`, or `python -m dkimctl`."""

from __future__ import annotations

import sys

from dkimctl import __version__


def main() -> int:
    """Run the command line and return the exit status."""
    if sys.argv[1:] == ["--version"]:  # asked by scripts, so it comes without any import
        sys.stdout.write(f"dkimctl {__version__}\n")
        return 0
    from dkimctl.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
