"""What is logged of a failure that nobody foresaw: one line, with nothing that could be secret."""

from __future__ import annotations

import traceback
from pathlib import PurePath

from dkimctl.errors import DkimctlError
from dkimctl.text.escaping import printable


def told(failure: BaseException) -> str:
    """What failed, or at least where.

    Our own errors are made to be read. Others may quote what they failed on, such as a key or the
    parameters of a statement, and a trace with the values of its lines would as well.
    """
    if isinstance(failure, DkimctlError):
        return printable(failure.message)
    frames = traceback.extract_tb(failure.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(failure).__name__}{place}"
