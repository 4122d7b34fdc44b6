"""What is logged of an unexpected failure."""

from __future__ import annotations

import traceback
from pathlib import PurePath

from dkimctl.errors import DkimctlError
from dkimctl.text.escaping import printable


def describe_failure(failure: BaseException) -> str:
    """What failed, or at least where, in one line without secrets.

    The messages of our own errors are safe. Others may quote what they failed on, such as a key
    or the parameters of a statement, and a traceback may show values.
    """
    if isinstance(failure, DkimctlError):
        return printable(failure.message)
    frames = traceback.extract_tb(failure.__traceback__)
    location = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(failure).__name__}{location}"
