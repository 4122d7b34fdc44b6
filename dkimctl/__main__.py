"""The entry point: `dkimctl`, or `python -m dkimctl`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from dkimctl import __version__

# What a command makes at its start lives to its end. CheckProgress for garbage among it every
# 700 objects, as is the default, and three times at exit takes a seventh of its time.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> int:
    """Run the command line and return the exit status."""
    if sys.argv[1:] == ["--version"]:  # asked by scripts, so it comes without any import
        with contextlib.suppress(OSError):  # then the long way below tells what is wrong
            os.write(1, f"dkimctl {__version__}\n".encode())
            return 0
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _leave_no_core()
    try:
        from dkimctl.cli.main import run

        status = run(sys.argv[1:])
        _leave_what_hangs(status)
        return status
    except KeyboardInterrupt:  # pressed before `run` could see to it
        return 130
    finally:
        gc.freeze()


def _leave_what_hangs(status: int) -> None:
    """Exit at once where a thread still runs: it hangs, in a keyring, and so would the exit."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def _leave_no_core() -> None:
    """Have no crash, such as one of a parser in C, write the memory with its secrets to a file."""
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError, ValueError):
            _, most = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, most))


if __name__ == "__main__":
    sys.exit(main())
