"""The order in which the keys of waiting requests are made: the clients in turn."""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dkimctl.service.keys.pairs import KeyPair


@dataclass(order=True, slots=True)
class Order:
    """The keys of one request: their lengths in bits, and by position what has become of each.

    Of the orders, that with the least `finish` comes first. `begun` counts the keys that are made
    or being made.
    """

    finish: float
    number: int
    client_id: str = field(compare=False)
    lengths: Sequence[int] = field(compare=False)
    begun: int = field(default=0, compare=False)
    made: dict[int, KeyPair | Exception] = field(default_factory=dict, compare=False)
    done: threading.Event = field(default_factory=threading.Event, compare=False)

    def complete(self, position: int, key: KeyPair | Exception) -> None:
        self.made[position] = key
        if len(self.made) == len(self.lengths):
            self.done.set()


class FairQueue:
    """Orders whose keys are not all begun. Not safe for threads.

    Each client gets the same share of the time, however many requests it sends: self-clocked fair
    queueing (Golestani, 1994). `cost` tells how many seconds a key of that length takes.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._orders: list[Order] = []
        self._finish: dict[str, float] = {}  # of each client's last order
        self._now = 0.0  # the `finish` of the order that is being worked on
        self._count = 0

    def __len__(self) -> int:
        return len(self._orders)

    def of_clients(self) -> Counter[str]:
        """How many orders there are, by client."""
        return Counter(order.client_id for order in self._orders)

    def seconds_until(self, client_id: str, lengths: Sequence[int]) -> float:
        """When an order would be done, with one thread, if nobody else came."""
        finish = self._finish_of(client_id, lengths)
        ahead = [order for order in self._orders if order.finish <= finish]
        return sum(map(self._remaining, ahead)) + self._seconds(lengths)

    def seconds_of_all(self) -> float:
        """When all orders are done, with one thread."""
        return sum(map(self._remaining, self._orders))

    def add(self, client_id: str, lengths: Sequence[int]) -> Order:
        """Add an order for at least one key."""
        self._count += 1
        finish = self._finish[client_id] = self._finish_of(client_id, lengths)
        order = Order(finish, self._count, client_id, lengths)
        heapq.heappush(self._orders, order)
        return order

    def next_key(self) -> tuple[Order, int] | None:
        """The next key to make: an order, and a position in it."""
        if not self._orders:
            self._finish.clear()
            return None
        order = self._orders[0]
        position, order.begun = order.begun, order.begun + 1
        self._now = order.finish
        if order.begun == len(order.lengths):
            heapq.heappop(self._orders)
        return order, position

    def withdraw(self, order: Order) -> None:
        """Begin no more keys of an order."""
        if order in self._orders:
            self._orders.remove(order)
            heapq.heapify(self._orders)

    def _finish_of(self, client_id: str, lengths: Sequence[int]) -> float:
        return max(self._now, self._finish.get(client_id, 0.0)) + self._seconds(lengths)

    def _remaining(self, order: Order) -> float:
        return self._seconds(order.lengths[order.begun :])

    def _seconds(self, lengths: Sequence[int]) -> float:
        return sum(map(self._cost, lengths))
