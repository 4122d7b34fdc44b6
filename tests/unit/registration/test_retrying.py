"""What is retried, how often, after how long, and what never is."""

from __future__ import annotations

import pytest

from dkimctl.client.wire import Reply
from dkimctl.errors import (
    AuthenticationError,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    Throttled,
)
from fakes import entries

LOST = MaybeProcessed("timed out")
BOUNCED = NotProcessed("cannot reach it")
SLOWLY = MaybeProcessed("wait", retry_after=40.0)


def later(seconds):
    return Throttled("429", retry_after=seconds)


@pytest.mark.parametrize(
    ("count", "selector", "script", "options", "outcomes", "requests", "end"),
    [
        # With a selector every request can be repeated: 409 returns the data.
        *((2, "s1", [error] * failures, {}, ["created"] * 2, failures + 1, None)
          for failures in (1, 3) for error in (LOST, BOUNCED, Throttled("429"))),
        (4, "s1", [LOST] * 4, {"batch_size": 2}, ["unknown"] * 2 + ["created"] * 2, 5, None),
        (1, "s1", [LOST, BOUNCED, BOUNCED, BOUNCED], {}, ["unknown"], 4, "cannot reach it"),
        # Without one a second request could register the domain under a second selector.
        (4, None, [LOST], {"batch_size": 2}, ["unknown"] * 2 + ["created"] * 2, 2, None),
        (2, None, [BOUNCED, BOUNCED], {}, ["created"] * 2, 3, None),
        (2, None, [later(0.0), later(0.0)], {}, ["created"] * 2, 3, None),
        # All waits together take at most max_wait.
        (1, "s1", [SLOWLY] * 4, {"max_wait": 100.0, "speed": 100}, ["unknown"], 3, None),
        (2, "s1", [later(3600.0)], {}, ["pending"] * 2, 1,
         "asks to wait 1 h, and --max-wait allows 5 min"),
        (2, "s1", [*[later(10.0)] * 7, LOST], {"max_wait": 100.0, "speed": 100},
         ["created"] * 2, 9, None),
        *((2, "s1", [later(seconds)] * 100, {"max_wait": 5.0, "speed": 10},
           ["pending"] * 2, requests, None) for seconds, requests in ((0.0, 17), (1.0, 6))),
        # A lasting failure ends the run: what was not sent is pending.
        *((6, "s1", [None, error], {"batch_size": 2}, ["created"] * 2 + ["pending"] * 4, 2, "gone")
          for error in (NoService("gone"), AuthenticationError("gone"))),
        (6, "s1", [BOUNCED] * 4, {"batch_size": 2}, ["pending"] * 6, 4, "cannot reach it"),
        (50, None, [LOST] * 99, {"batch_size": 1}, ["unknown"] * 5 + ["pending"] * 45, 5,
         "5 batches in a row: timed out"),
        (20, "s1", [RequestRefused("400", "no")] * 99, {"batch_size": 2},
         ["invalid"] * 10 + ["pending"] * 10, 15, "no usable answer to 5 batches in a row"),
    ],
)  # fmt: skip
def test_what_failures_lead_to(register, count, selector, script, options, outcomes, requests, end):
    run = register(entries(count, selector), *script, **options)
    assert (run.outcomes, len(run.server.batches)) == (outcomes, requests)
    assert end in run.engine.stopped.message if end else run.engine.stopped is None
    assert run.engine.may_have_reached_service is (set(outcomes) != {"pending"})


@pytest.mark.interface("2.4", "items")
@pytest.mark.parametrize(
    ("selector", "outcomes", "sent_again"),
    [("s1", ["created"] * 3, [["d1.example", "d2.example"]]),
     (None, ["created", "unknown", "unknown"], [])],
)  # fmt: skip
def test_only_unanswered_entries_with_a_selector_are_retried(
    register, make_registration, selector, outcomes, sent_again
):
    failed = make_registration("d1.example", selector, code="500", record=None)
    half = Reply((make_registration("d0.example", selector or "chosen"), failed))
    run = register(entries(3, selector), half)
    assert (run.outcomes, run.server.sent[1:]) == (outcomes, sent_again)


def test_waiting_grows_with_each_attempt_and_totals_at_most_20_seconds(register):
    run = register(entries(1), *[LOST] * 4)
    limits = [(0.5, 1), (2, 2.5), (8, 8.5)]
    for waited, (least, most) in zip(run.channel.waits, limits, strict=True):
        assert least <= waited <= most
    assert [wait[2] for wait in run.observer.waits] == ["timed out"] * 3


@pytest.mark.interface("8", "rate")
@pytest.mark.parametrize("error", [Throttled, MaybeProcessed])
def test_retry_after_is_honoured(register, error):
    (waited,) = register(entries(1), error("wait", retry_after=7.0), speed=100).channel.waits
    assert 7 <= waited <= 7.7


@pytest.mark.interface("7.3", "400")
@pytest.mark.parametrize("selector", ["s1", None])
def test_a_refused_batch_is_split_down_to_the_invalid_entry(register, selector):
    def before(specs, run):
        if any(spec.sign_domain == "d5.example" for spec in specs):
            raise RequestRefused("400", "a wrong entry")

    run = register(entries(50, selector), before=before, batch_size=50)
    assert run.outcomes == ["created"] * 5 + ["invalid"] + ["created"] * 44
    wrong = run.results[5]
    assert (wrong.registration.code, wrong.reason) == ("400", "a wrong entry")
    assert (len(run.server.registered), run.warned) == (49, [])


def test_a_batch_that_is_too_large_is_split_and_later_ones_have_the_accepted_size(register):
    asked = []

    def before(specs, run):
        asked.append(len(specs))
        if len(specs) > 3:
            raise RequestRefused("413", "too large")

    run = register(entries(27), before=before)
    assert run.outcomes == ["created"] * 27
    assert asked == [9, 4, 2, 2, 5, 2, 3] + [3] * 6
    (warning,) = run.warned
    assert "--batch-size 3" in warning
