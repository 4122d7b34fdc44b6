"""Each client gets the same share of the time, and an honest estimate of when it has its keys."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.service.keys.fair_queue import FairQueue

COST = {1024: 1.0, 2048: 5.0}


def _queue() -> FairQueue:
    return FairQueue(COST.__getitem__)


def _served(queue: FairQueue) -> list[str]:
    """The clients, in the order in which their keys are made."""
    clients = []
    while key := queue.next_key():
        clients.append(key[0].client_id)
    return clients


def test_a_small_request_does_not_wait_for_all_of_a_large_client() -> None:
    queue = _queue()
    for _ in range(4):
        queue.add("large", [2048] * 10)
    queue.next_key()
    queue.add("small", [2048])
    assert _served(queue).index("small") < 10


def test_requests_of_one_client_come_in_their_order() -> None:
    queue = _queue()
    orders = [queue.add("me", [1024, 1024]) for _ in range(3)]
    taken = []
    while key := queue.next_key():
        taken.append(key)
    assert taken == [(order, position) for order in orders for position in (0, 1)]


def test_what_is_withdrawn_is_not_made() -> None:
    queue = _queue()
    first, second = queue.add("a", [1024] * 3), queue.add("b", [1024])
    queue.withdraw(first)
    queue.withdraw(first)
    assert queue.next_key() == (second, 0)
    assert queue.next_key() is None


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.lists(st.sampled_from([1024, 2048]), min_size=1, max_size=5)
    ),
    max_size=20,
)


@given(REQUESTS)
def test_every_key_is_made_once(requests) -> None:
    queue = _queue()
    for client, lengths in requests:
        queue.add(client, lengths)
    expected = Counter(client for client, lengths in requests for _ in lengths)
    assert Counter(_served(queue)) == expected
    assert len(queue) == 0


@given(REQUESTS, st.sampled_from("abcd"), st.lists(st.sampled_from([1024, 2048]), min_size=1))
def test_the_estimate_is_when_the_last_key_is_made(requests, client, lengths) -> None:
    queue = _queue()
    for other, theirs in requests:
        queue.add(other, theirs)
    estimate = queue.seconds_until(client, lengths)
    mine = queue.add(client, lengths)
    seconds = 0.0
    while key := queue.next_key():
        order, position = key
        seconds += COST[order.lengths[position]]
        if order is mine and order.begun == len(lengths):
            break
    assert seconds == estimate


@given(st.integers(2, 5), st.integers(2, 8))
def test_clients_who_always_ask_get_equal_shares(clients, size) -> None:
    queue = _queue()
    names = [f"client{number}" for number in range(clients)]
    for name in names:
        for _ in range(10 if name == "client0" else 2):
            queue.add(name, [1024] * size)
    served = _served(queue)[: clients * size * 2]
    counts = sorted(Counter(served).values())
    assert all(later - earlier <= size for earlier, later in pairwise(counts))
