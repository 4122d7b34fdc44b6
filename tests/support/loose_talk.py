"""Programs that say more than usual, for tests of what leaks."""

from __future__ import annotations

# Reports each process that gets our environment, or our settings, and adds the local variables of
# each frame to tracebacks.
SITE = """
import os, sys, traceback

def show_variables(error=None, **options):
    told = traceback.TracebackException.from_exception(sys.exc_info()[1], capture_locals=True)
    return "".join(told.format())

if not os.environ.get("WITHOUT_VARIABLES"):
    traceback.format_exc = show_variables

def tell(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn",
                 "os.spawn", "os.startfile", "os.system"):
        given = arguments[3] if event == "subprocess.Popen" else None
        if given is not None and not any(name.startswith("DKIMCTL_") for name in given):
            return
        sys.stderr.write(f"STARTED A PROCESS: {event}\\n")

sys.addaudithook(tell)
"""
