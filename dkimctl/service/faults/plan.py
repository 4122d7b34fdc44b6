"""Which faults there are to be."""

from collections.abc import Mapping
from typing import NamedTuple


class Plan(NamedTuple):
    """`faults` gives the probability of each kind, from 0 to 1, together at most 1.

    The same `seed` makes the same faults hit the same requests, counted from the start of the
    service. `slow` is in seconds; `retry_after` too, None for no such header.
    """

    seed: int
    faults: Mapping[str, float]
    slow: float = 5.0
    retry_after: int | None = None
