"""Whether other users can read, change or replace a file."""

from __future__ import annotations

import os
import stat
import sys

# On Windows, access lists protect a user's files; owner and mode say nothing.
if sys.platform == "win32":

    def is_own(_status: os.stat_result) -> bool:
        return True

    def is_private(_status: os.stat_result) -> bool:
        return True

    def lets_others_replace(_status: os.stat_result) -> bool:
        return False

else:

    def is_own(status: os.stat_result) -> bool:
        """Whether a file belongs to this user."""
        return status.st_uid == os.geteuid()

    def is_private(status: os.stat_result) -> bool:
        """Whether only its owner can access a file."""
        return not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)

    def lets_others_replace(status: os.stat_result) -> bool:
        """Whether other users can replace the files in a directory."""
        if status.st_uid not in (os.geteuid(), 0):
            return True
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return bool(others_write) and not status.st_mode & stat.S_ISVTX
