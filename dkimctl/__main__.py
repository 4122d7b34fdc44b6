"""The entry point: `dkimctl`, or `python -m dkimctl`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from dkimctl import __version__

# The objects that a command creates at its start live until its end. Collecting garbage every 700
# objects, the default, and three times at exit takes a seventh of the run time.
_GC_THRESHOLD = 50_000  # objects


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Report an exception as Python does, unless memory runs out, which `run` says itself."""
    if unraisable.exc_type is not MemoryError:
        sys.__unraisablehook__(unraisable)


def main() -> int:
    """Run the command line and return the exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]):  # without imports, because scripts ask for it
        with contextlib.suppress(OSError):  # the regular way below reports it
            os.write(1, f"dkimctl {__version__}\n".encode())
            return 0
    gc.set_threshold(_GC_THRESHOLD)
    sys.unraisablehook = _report_unraisable
    if sys.platform != "win32":  # keep secrets out of a core dump, such as after a crash in C
        import resource

        with contextlib.suppress(OSError, ValueError):
            _, hard_limit = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))
    try:
        # By a shell's completion script, which is in a hurry. PowerShell's leaves it empty.
        if os.environ.get("_DKIMCTL_COMPLETE"):
            from dkimctl.cli.main import complete

            return complete()
        from dkimctl.cli.main import run

        status = run(sys.argv[1:])
        # Exit at once if a thread still runs, such as one that hangs in a keyring or in a write.
        threading = sys.modules.get("threading")
        if threading is not None and threading.active_count() > 1:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(status)
        return status
    except KeyboardInterrupt:  # Ctrl-C before `run` could handle it
        return 130
    finally:
        # Let `python -m` exit with our status, whatever Ctrl-C interrupted: libraries make classes
        # with exec() of a string. If a KeyboardInterrupt leaves one, Python remembers it until the
        # next, and ends by SIGINT, even if the exception was caught.
        exec("")  # noqa: S102
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
