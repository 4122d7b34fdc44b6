"""Programs that say more than usual, for tests of what leaks."""

from __future__ import annotations

# Reports each process that is started, since it would inherit the environment, and adds the local
# variables of each frame to tracebacks.
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
        sys.stderr.write(f"STARTED A PROCESS: {event}\\n")

sys.addaudithook(tell)
"""
