"""What a guide says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """A command, in backticks, that runs as it stands, and what it does."""

    command: str
    purpose: str


class Guide(NamedTuple):
    """Where the profile stands, and the commands that come next."""

    lines: Sequence[str]
    steps: Sequence[Step]
    is_urgent: bool = False  # what the first line says
