"""Problems that were seen, and whether anyone was told."""

from datetime import datetime
from typing import NamedTuple


class Alarm(NamedTuple):
    """A problem of a subject, such as a domain (UTC times). `told_at`: None until it is told."""

    subject: str
    problem: str
    first_seen: datetime
    looked_at: datetime
    told_at: datetime | None = None
