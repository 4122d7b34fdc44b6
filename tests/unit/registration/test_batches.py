"""Entries of a file, gathered into batches."""

from __future__ import annotations

from dkimctl.client.wire import Reply
from dkimctl.errors import RequestRefused
from dkimctl.models import DomainSpec, Outcome, Registration, Result
from dkimctl.registration.batches import Batch, BatchBuilder, BatchEntry

KNOWN = Result(Registration("known.example"), Outcome.EXISTS)


def slots(pattern: str) -> list[BatchEntry]:
    """One entry a letter: s has a selector, c has none, k has a result."""
    return [
        BatchEntry(DomainSpec(f"d{number}.example", "s1" if letter == "s" else None),
             KNOWN if letter == "k" else None)
        for number, letter in enumerate(pattern)
    ]  # fmt: skip


def names(batch) -> list[str]:
    return [spec.sign_domain.partition(".")[0] for spec in batch.specs]


def test_a_batch_never_mixes_entries_with_and_without_selector():
    intake = BatchBuilder(slots("scsckss"), batch_size=3, window=100)
    batches = [names(batch) for batch in iter(intake.next_batch, None)]
    assert batches == [["d0", "d2", "d5"], ["d1", "d3"], ["d6"]]


def test_reads_no_more_entries_than_the_window_holds():
    taken = []
    source = (taken.append(slot) or slot for slot in slots("s" * 50))
    intake = BatchBuilder(source, batch_size=4, window=10)
    first = intake.next_batch()
    intake.batch_size = 3  # of later batches
    batches = [first, *iter(intake.next_batch, None)]
    assert len(taken) == 10
    assert [len(batch.specs) for batch in batches] == [4, 3, 3]  # the last is not held back


def test_the_size_that_the_service_accepts_is_not_that_of_a_last_retry(make_registration):
    """Or all later batches would have one entry each."""
    batch = Batch(slots("ssss"))
    batch.in_flight = batch.to_send
    batch.mark_refused(RequestRefused("413", ""))
    for in_flight, answered in (([0, 1], [0, 1]), ([2, 3], [2]), ([3], [3])):
        batch.in_flight = in_flight
        replies = (make_registration(f"d{number}.example") for number in answered)
        batch.take_reply(Reply(tuple(replies)))
    assert batch.accepted_size() == 2
