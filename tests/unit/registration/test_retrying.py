"""What is retried, how often, after how long, and what never is."""

from __future__ import annotations

import time

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
from dkimctl.models import Outcome
from fakes import entries, outcomes_of

LOST = MaybeProcessed("timed out")
BOUNCED = NotProcessed("cannot reach it")


def refuse(*domains):
    """A step that refuses every request with one of `domains`."""

    def step(specs):
        if any(spec.sign_domain in domains for spec in specs):
            raise RequestRefused("400", "a wrong entry")
        return

    return step


class TestWithSelector:
    """Every request can be repeated: 409 returns the data."""

    @pytest.mark.parametrize("failures", [1, 2, 3])
    @pytest.mark.parametrize("error", [LOST, BOUNCED, Throttled("429")])
    def test_makes_at_most_four_attempts(self, service, make_run, error, failures):
        server = service(*[error] * failures)
        run = make_run(server.send)
        assert outcomes_of(run.run(entries(2))) == ["created"] * 2
        assert len(server.batches) == failures + 1
        assert len(run.channel.waits) == failures
        assert run.engine.stopped is None

    def test_only_unanswered_entries_are_retried(
        self, ledger, service, make_run, make_registration
    ):
        failed = make_registration("d1.example", code="500", record=None)
        half = Reply((make_registration("d0.example"), failed))
        server = service(half)
        run = make_run(server.send)
        assert outcomes_of(run.run(entries(3))) == ["created"] * 3
        assert server.sent == [
            ["d0.example", "d1.example", "d2.example"],
            ["d1.example", "d2.example"],
        ]
        assert [wait[0] for wait in run.observer.waits] == [2]

    def test_an_entry_never_answered_is_unknown_and_the_rest_goes_on(self, service, make_run):
        server = service(*[LOST] * 4)
        run = make_run(server.send, batch_size=2)
        results = run.run(entries(4))
        assert outcomes_of(results) == ["unknown", "unknown", "created", "created"]
        assert results[0].reason == "timed out"
        assert run.engine.stopped is None

    def test_a_lost_request_followed_by_refusals_is_still_unknown(self, service, make_run):
        run = make_run(service(LOST, BOUNCED, BOUNCED, BOUNCED).send)
        assert outcomes_of(run.run(entries(1))) == ["unknown"]
        assert isinstance(run.engine.stopped, NotProcessed)

    def test_an_entry_that_always_gets_500_is_failed(self, service, make_run, make_registration):
        failed = Reply((make_registration("d0.example", code="500", record=None),))
        server = service(*[failed] * 4)
        assert outcomes_of(make_run(server.send).run(entries(1))) == ["failed"]
        assert len(server.batches) == 4


class TestWithoutSelector:
    """A second request could register the domain under a second selector."""

    def test_a_lost_request_is_never_retried(self, service, make_run):
        server = service(LOST)
        run = make_run(server.send, batch_size=2)
        assert outcomes_of(run.run(entries(4, None))) == ["unknown"] * 2 + ["created"] * 2
        assert server.sent == [["d0.example", "d1.example"], ["d2.example", "d3.example"]]
        assert run.channel.waits == []

    @pytest.mark.interface("2.4", "items")
    def test_a_missing_item_or_500_is_never_retried(self, service, make_run, make_registration):
        failed = make_registration("d1.example", code="500", record=None, selector=None)
        half = Reply((make_registration("d0.example", "chosen"), failed))
        server = service(half)
        results = make_run(server.send).run(entries(3, None))
        assert outcomes_of(results) == ["created", "unknown", "unknown"]
        assert len(server.batches) == 1

    @pytest.mark.parametrize("error", [BOUNCED, Throttled("429", retry_after=0.0)])
    def test_a_refused_request_is_retried(self, service, make_run, error):
        server = service(error, error)
        assert outcomes_of(make_run(server.send).run(entries(2, None))) == ["created"] * 2
        assert len(server.batches) == 3
        assert len(server.registered) == 2


class TestWaiting:
    def test_grows_with_each_attempt_and_totals_at_most_20_seconds(self, service, make_run):
        run = make_run(service(LOST, LOST, LOST, LOST).send)
        run.run(entries(1))
        first, second, third = run.channel.waits
        assert 0.5 <= first <= 1
        assert 2 <= second <= 2.5
        assert 8 <= third <= 8.5
        assert [wait[2] for wait in run.observer.waits] == ["timed out"] * 3

    @pytest.mark.interface("8", "rate")
    @pytest.mark.parametrize("error", [Throttled, MaybeProcessed])
    def test_honours_retry_after(self, service, make_run, error):
        run = make_run(service(error("wait", retry_after=7.0)).send, speed=100)
        run.run(entries(1))
        (waited,) = run.channel.waits
        assert 7 <= waited <= 7.7

    def test_totals_at_most_max_wait(self, service, make_run):
        server = service(*[MaybeProcessed("wait", retry_after=40.0)] * 4)
        run = make_run(server.send, max_wait=100.0, speed=100)
        assert outcomes_of(run.run(entries(1))) == ["unknown"]
        assert len(run.channel.waits) == 2
        assert len(server.batches) == 3

    def test_a_retry_after_above_max_wait_ends_the_run_at_once(self, service, make_run):
        run = make_run(service(Throttled("wait", retry_after=3600.0)).send, max_wait=300.0)
        assert outcomes_of(run.run(entries(2))) == ["pending"] * 2
        assert run.channel.waits == []
        assert "asks to wait 3600 s, and --max-wait allows 300 s" in run.engine.stopped.message

    def test_one_batch_refused_four_times_does_not_end_the_run(self, service, make_run):
        server = service(*[Throttled("429")] * 4)
        run = make_run(server.send, batch_size=2)
        assert outcomes_of(run.run(entries(4))) == ["pending"] * 2 + ["created"] * 2
        assert run.engine.stopped is None

    def test_a_batch_comes_back_as_often_as_the_service_says_when(self, service, make_run):
        server = service(*[Throttled("429", retry_after=10.0)] * 7, LOST)
        run = make_run(server.send, max_wait=100.0, speed=100)
        assert outcomes_of(run.run(entries(2))) == ["created"] * 2
        assert len(server.batches) == 9
        assert run.channel.waits[-1] <= 8.5, "as after other lost requests"

    @pytest.mark.parametrize("retry_after", [0.0, 1.0])
    def test_a_service_that_always_says_later_is_left_after_max_wait(
        self, service, make_run, retry_after
    ):
        server = service(*[Throttled("429", retry_after=retry_after)] * 100)
        run = make_run(server.send, max_wait=5.0, speed=10)
        assert outcomes_of(run.run(entries(2))) == ["pending"] * 2
        assert len(server.batches) == (6 if retry_after else 17)

    def test_503_with_retry_after_pauses_all_batches(self, service, make_run):
        began = []

        def send(specs):
            began.append(time.monotonic())
            if len(began) == 1:
                raise MaybeProcessed("503", retry_after=0.6)
            return service().send(specs)

        make_run(send, batch_size=1).run(entries(3, None))
        assert began[1] - began[0] >= 0.6


class TestRefusedAsAWhole:
    """400 and 413: the batch is split down to the invalid entry."""

    @pytest.mark.interface("7.3", "400")
    @pytest.mark.parametrize("selector", ["s1", None])
    def test_the_invalid_entry_is_isolated(self, service, make_run, selector):
        server = service()

        def send(specs):
            refuse("d5.example")(specs)
            return server.send(specs)

        run = make_run(send, batch_size=50)
        results = run.run(entries(50, selector))
        assert outcomes_of(results) == ["created"] * 5 + ["invalid"] + ["created"] * 44
        assert (results[5].registration.code, results[5].reason) == ("400", "a wrong entry")
        assert len(server.registered) == 49
        assert run.warned == []

    def test_a_batch_that_is_too_large_is_split(self, service, make_run):
        server, asked = service(), []

        def send(specs):
            asked.append(len(specs))
            if len(specs) > 3:
                raise RequestRefused("413", "too large")
            return server.send(specs)

        run = make_run(send)
        assert outcomes_of(run.run(entries(27))) == ["created"] * 27
        assert max(map(len, server.batches)) <= 3
        (told,) = run.warned  # later batches have the accepted size
        assert "--batch-size 3" in told
        assert asked == [9, 4, 2, 2, 5, 2, 3] + [3] * 6

    def test_an_entry_of_a_split_batch_gets_four_attempts_in_total(self, service, make_run):
        asked = []

        def send(specs):
            asked.append([spec.sign_domain for spec in specs])
            if len(specs) > 1:
                raise RequestRefused("413", "too large")
            raise LOST

        assert outcomes_of(make_run(send).run(entries(2))) == ["unknown"] * 2
        assert asked == [["d0.example", "d1.example"]] + [["d0.example"]] * 4 + [["d1.example"]] * 4

    def test_five_batches_with_only_refused_entries_end_the_run(self, make_run):
        def send(specs):
            raise RequestRefused("400", "no")

        run = make_run(send, batch_size=2)
        outcomes = outcomes_of(run.run(entries(20)))
        assert outcomes == ["invalid"] * 10 + ["pending"] * 10
        assert "no usable answer to 5 batches in a row" in run.engine.stopped.message


class TestTheEnd:
    """A lasting failure ends the run: what was not sent is `pending`."""

    @pytest.mark.parametrize("error", [NoService("404"), AuthenticationError("refused")])
    def test_at_once(self, service, make_run, error):
        server = service(None, error)
        run = make_run(server.send, batch_size=2)
        assert outcomes_of(run.run(entries(6))) == ["created"] * 2 + ["pending"] * 4
        assert len(server.batches) == 2
        assert run.engine.stopped is error
        assert run.engine.may_have_reached_service

    def test_when_the_service_stays_unreachable(self, service, make_run):
        server = service(*[BOUNCED] * 4)
        run = make_run(server.send, batch_size=2)
        assert outcomes_of(run.run(entries(6))) == ["pending"] * 6
        assert len(server.batches) == 4
        assert run.engine.stopped is BOUNCED
        assert not run.engine.may_have_reached_service

    def test_after_five_unanswered_batches_in_a_row(self, service, make_run):
        server = service(*[LOST] * 99)
        run = make_run(server.send, batch_size=1)
        counts = [result.outcome for result in run.run(entries(50, None))]
        assert counts == [Outcome.UNKNOWN] * 5 + [Outcome.PENDING] * 45
        assert "5 batches in a row: timed out" in run.engine.stopped.message

    def test_an_answer_in_between_resets_the_count(self, service, make_run):
        server = service(*[LOST, LOST, LOST, LOST, None] * 3)
        run = make_run(server.send, batch_size=1)
        expected = (["unknown"] * 4 + ["created"]) * 3
        assert outcomes_of(run.run(entries(15, None))) == expected
        assert run.engine.stopped is None
