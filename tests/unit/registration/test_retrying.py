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


class TestWithSelector:
    """Every request can be repeated: 409 returns the data."""

    @pytest.mark.parametrize("failures", [1, 3])
    @pytest.mark.parametrize("error", [LOST, BOUNCED, Throttled("429")])
    def test_makes_at_most_four_attempts(self, register, error, failures):
        run = register(entries(2), *[error] * failures)
        assert run.outcomes == ["created"] * 2
        assert len(run.server.batches) == failures + 1
        assert len(run.channel.waits) == failures
        assert run.engine.stopped is None

    def test_only_unanswered_entries_are_retried(self, register, make_registration):
        failed = make_registration("d1.example", code="500", record=None)
        run = register(entries(3), Reply((make_registration("d0.example"), failed)))
        assert run.outcomes == ["created"] * 3
        assert run.server.sent[1] == ["d1.example", "d2.example"]
        assert [wait[0] for wait in run.observer.waits] == [2]

    def test_an_entry_never_answered_is_unknown_and_the_rest_goes_on(self, register):
        run = register(entries(4), *[LOST] * 4, batch_size=2)
        assert run.outcomes == ["unknown", "unknown", "created", "created"]
        assert run.results[0].reason == "timed out"
        assert run.engine.stopped is None

    def test_a_lost_request_followed_by_refusals_is_still_unknown(self, register):
        run = register(entries(1), LOST, BOUNCED, BOUNCED, BOUNCED)
        assert run.outcomes == ["unknown"]
        assert isinstance(run.engine.stopped, NotProcessed)


class TestWithoutSelector:
    """A second request could register the domain under a second selector."""

    def test_a_lost_request_is_never_retried(self, register):
        run = register(entries(4, None), LOST, batch_size=2)
        assert run.outcomes == ["unknown"] * 2 + ["created"] * 2
        assert run.server.sent == [["d0.example", "d1.example"], ["d2.example", "d3.example"]]
        assert run.channel.waits == []

    @pytest.mark.interface("2.4", "items")
    def test_a_missing_item_or_500_is_never_retried(self, register, make_registration):
        failed = make_registration("d1.example", code="500", record=None, selector=None)
        half = Reply((make_registration("d0.example", "chosen"), failed))
        run = register(entries(3, None), half)
        assert run.outcomes == ["created", "unknown", "unknown"]
        assert len(run.server.batches) == 1

    @pytest.mark.parametrize("error", [BOUNCED, Throttled("429", retry_after=0.0)])
    def test_a_refused_request_is_retried(self, register, error):
        run = register(entries(2, None), error, error)
        assert run.outcomes == ["created"] * 2
        assert (len(run.server.batches), len(run.server.registered)) == (3, 2)


class TestWaiting:
    def test_grows_with_each_attempt_and_totals_at_most_20_seconds(self, register):
        run = register(entries(1), *[LOST] * 4)
        first, second, third = run.channel.waits
        assert 0.5 <= first <= 1
        assert 2 <= second <= 2.5
        assert 8 <= third <= 8.5
        assert [wait[2] for wait in run.observer.waits] == ["timed out"] * 3

    @pytest.mark.interface("8", "rate")
    @pytest.mark.parametrize("error", [Throttled, MaybeProcessed])
    def test_honours_retry_after(self, register, error):
        (waited,) = register(entries(1), error("wait", retry_after=7.0), speed=100).channel.waits
        assert 7 <= waited <= 7.7

    def test_totals_at_most_max_wait(self, register):
        wait = MaybeProcessed("wait", retry_after=40.0)
        run = register(entries(1), *[wait] * 4, max_wait=100.0, speed=100)
        assert run.outcomes == ["unknown"]
        assert (len(run.channel.waits), len(run.server.batches)) == (2, 3)

    def test_a_retry_after_above_max_wait_ends_the_run_at_once(self, register):
        run = register(entries(2), Throttled("wait", retry_after=3600.0), max_wait=300.0)
        assert (run.outcomes, run.channel.waits) == (["pending"] * 2, [])
        assert "asks to wait 3600 s, and --max-wait allows 300 s" in run.engine.stopped.message

    def test_a_batch_comes_back_as_often_as_the_service_says_when(self, register):
        steps = [*[Throttled("429", retry_after=10.0)] * 7, LOST]
        run = register(entries(2), *steps, max_wait=100.0, speed=100)
        assert (run.outcomes, len(run.server.batches)) == (["created"] * 2, 9)
        assert run.channel.waits[-1] <= 8.5, "as after other lost requests"

    @pytest.mark.parametrize(("retry_after", "requests"), [(0.0, 17), (1.0, 6)])
    def test_a_service_that_always_says_later_is_left_after_max_wait(
        self, register, retry_after, requests
    ):
        later = Throttled("429", retry_after=retry_after)
        run = register(entries(2), *[later] * 100, max_wait=5.0, speed=10)
        assert (run.outcomes, len(run.server.batches)) == (["pending"] * 2, requests)


class TestRefusedAsAWhole:
    """400 and 413: the batch is split down to the invalid entry."""

    @pytest.mark.interface("7.3", "400")
    @pytest.mark.parametrize("selector", ["s1", None])
    def test_the_invalid_entry_is_isolated(self, register, selector):
        def before(specs, run):
            if any(spec.sign_domain == "d5.example" for spec in specs):
                raise RequestRefused("400", "a wrong entry")

        run = register(entries(50, selector), before=before, batch_size=50)
        assert run.outcomes == ["created"] * 5 + ["invalid"] + ["created"] * 44
        wrong = run.results[5]
        assert (wrong.registration.code, wrong.reason) == ("400", "a wrong entry")
        assert (len(run.server.registered), run.warned) == (49, [])

    def test_a_batch_that_is_too_large_is_split(self, register):
        asked = []

        def before(specs, run):
            asked.append(len(specs))
            if len(specs) > 3:
                raise RequestRefused("413", "too large")

        run = register(entries(27), before=before)
        assert run.outcomes == ["created"] * 27
        (told,) = run.warned  # later batches have the accepted size
        assert "--batch-size 3" in told
        assert asked == [9, 4, 2, 2, 5, 2, 3] + [3] * 6

    def test_five_batches_with_only_refused_entries_end_the_run(self, register):
        run = register(entries(20), *[RequestRefused("400", "no")] * 99, batch_size=2)
        assert run.outcomes == ["invalid"] * 10 + ["pending"] * 10
        assert "no usable answer to 5 batches in a row" in run.engine.stopped.message


class TestTheEnd:
    """A lasting failure ends the run: what was not sent is `pending`."""

    @pytest.mark.parametrize("error", [NoService("404"), AuthenticationError("refused")])
    def test_at_once(self, register, error):
        run = register(entries(6), None, error, batch_size=2)
        assert run.outcomes == ["created"] * 2 + ["pending"] * 4
        assert len(run.server.batches) == 2
        assert run.engine.stopped is error
        assert run.engine.may_have_reached_service

    def test_when_the_service_stays_unreachable(self, register):
        run = register(entries(6), *[BOUNCED] * 4, batch_size=2)
        assert (run.outcomes, len(run.server.batches)) == (["pending"] * 6, 4)
        assert run.engine.stopped is BOUNCED
        assert not run.engine.may_have_reached_service

    def test_after_five_unanswered_batches_in_a_row(self, register):
        run = register(entries(50, None), *[LOST] * 99, batch_size=1)
        assert run.outcomes == ["unknown"] * 5 + ["pending"] * 45
        assert "5 batches in a row: timed out" in run.engine.stopped.message
