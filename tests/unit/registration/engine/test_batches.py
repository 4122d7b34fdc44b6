"""Entries in the file's order, gathered into batches, and never too many of them."""

from __future__ import annotations

import itertools

import pytest

from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result
from dkimctl.registration.engine.batches import BatchBuilder, Entry

KNOWN = Result(Registration("known.example"), Outcome.EXISTS)


def slots(pattern: str) -> list[Entry]:
    """A letter for each: s and c are to be sent, with and without selector; k is known."""
    return [
        Entry(DomainSpec(f"d{number}.example", "s1" if letter == "s" else None),
             KNOWN if letter == "k" else None)
        for number, letter in enumerate(pattern)
    ]  # fmt: skip


def names(batch) -> list[str]:
    return [spec.sign_domain.partition(".")[0] for spec in batch.specs]


def test_kinds_never_mix_and_the_rest_comes_at_the_end():
    intake = BatchBuilder(slots("scsckss"), batch_size=3, window=100)
    batches = [names(batch) for batch in iter(intake.next_batch, None)]
    assert batches == [["d0", "d2", "d5"], ["d1", "d3"], ["d6"]]


def test_results_are_given_out_up_to_the_first_that_is_not_known():
    all_slots = slots("kksk")
    intake = BatchBuilder(all_slots, batch_size=9, window=100)
    batch = intake.next_batch()
    assert (names(batch), len(list(intake.known_results()))) == (["d2"], 2)
    assert not intake.is_empty
    all_slots[2].result = KNOWN
    assert len(list(intake.known_results())) == 2
    assert intake.is_empty


def test_no_more_entries_are_taken_in_than_the_window_holds():
    taken = []
    source = (taken.append(slot) or slot for slot in slots("s" * 50))
    intake = BatchBuilder(source, batch_size=4, window=10)
    batches = list(iter(intake.next_batch, None))
    assert len(taken) == 10
    assert [len(batch.specs) for batch in batches] == [4, 4, 2]  # the last waits no longer


def test_what_is_known_makes_room_before_a_small_batch_is_sent():
    intake = BatchBuilder(slots("k" * 8 + "s" * 20), batch_size=4, window=10)
    assert intake.next_batch() is None
    assert len(list(intake.known_results())) == 8
    assert names(intake.next_batch()) == ["d8", "d9", "d10", "d11"]


def test_a_lone_entry_of_its_kind_does_not_hold_up_the_others_for_ever():
    intake = BatchBuilder(slots("c" + "s" * 30), batch_size=4, window=12)
    sent = list(itertools.chain.from_iterable(map(names, iter(intake.next_batch, None))))
    assert "d0" in sent


@pytest.mark.parametrize("size", [1, 2, 3])
def test_later_batches_can_be_smaller(size):
    intake = BatchBuilder(slots("s" * 12), batch_size=4, window=100)
    assert len(intake.next_batch().specs) == 4
    intake.batch_size = size
    sizes = [len(batch.specs) for batch in iter(intake.next_batch, None)]
    assert sum(sizes) == 8
    assert max(sizes) == size
