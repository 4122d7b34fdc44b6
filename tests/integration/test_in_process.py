"""The client with the embedded service, in one process and with one clock."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from dkimctl.client.client import Client
from dkimctl.client.http import HttpClient
from dkimctl.client.tokens import TokenProvider
from dkimctl.errors import (
    AuthenticationError,
    MaybeProcessed,
    RequestRefused,
    ServiceError,
    TokenRejected,
)
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import DomainSpec, Outcome, Result
from dkimctl.models.secret import Secret, Token
from dkimctl.registration import outcomes
from dkimctl.registration.engine import RegistrationEngine
from dkimctl.registration.limits import Limits
from dkimctl.registration.outcomes import match
from dkimctl.registration.preflight import Planner
from dkimctl.service import clients
from dkimctl.service.app import create_app
from dkimctl.service.database import Store, open_store
from dkimctl.service.key_pairs import KeyPair
from fakes import Clock

START = 1_796_000_000.0  # 2026-11-30T00:53:20Z
HOUR = 3600
SPEC = DomainSpec("example.com", "s1", 2048, "2027-07-01T00:00+09:00", 0, True)
UNKNOWN = Secret("unknown")


class Account:
    """A client of the service, and its connection."""

    def __init__(self, store: Store, client: Client) -> None:
        made = clients.create_client(store)
        self.id, self._secret = made.client_id, Secret(made.secret)
        self._client = client

    def issue(self) -> Token:
        return self._client.issue_token(self.id, self._secret)

    def register(self, *specs: DomainSpec, token: Secret | None = None) -> list[Result]:
        reply = self._client.register(token or self.issue().access_token, specs)
        answers = match(specs, reply.items).answers
        return [
            outcomes.of_answer(spec, answer)
            for spec, answer in zip(specs, answers, strict=True)
            if answer is not None
        ]


@pytest.fixture
def clock() -> Clock:
    """`now` is the time of both sides, in seconds since the epoch."""
    return Clock(START)


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    store = open_store(tmp_path / "service.db")
    yield store
    store.close()


@pytest.fixture
def connect(store, clock, key_records) -> Callable[..., Client]:
    """A connection to the service on `store`; keywords change the service."""

    def connect(**changes) -> Client:
        options = {
            "clock": clock,
            "make_key": lambda key_len: KeyPair(key_records[key_len], b""),
        }
        app = create_app(store, **(options | changes))
        return Client(
            auth_url="http://auth.invalid",
            base_url="http://service.invalid",
            http=HttpClient.in_process(app),
            clock=clock,
        )

    return connect


@pytest.fixture
def client(connect) -> Iterator[Client]:
    with connect() as client:
        yield client


@pytest.fixture
def account(store, client) -> Account:
    return Account(store, client)


@pytest.fixture
def start_run(account, clock) -> Callable[..., SimpleNamespace]:
    """Begin a run of `account`: `register` uses a TokenProvider, `issued` has the tokens it got."""

    def start(cached: Token | None = None) -> SimpleNamespace:
        issued: list[Token] = []
        token_provider = TokenProvider(
            issue=account.issue, cached=cached, persist=issued.append, clock=clock
        )

        def register(spec: DomainSpec) -> list[Result]:
            return token_provider.call(lambda token: account.register(spec, token=token))

        return SimpleNamespace(register=register, issued=issued)

    return start


class TestTokens:
    """Interface 3.1, 5.1, 5.2, 8."""

    @pytest.mark.interface("3.1", "reuse")
    @pytest.mark.interface("8", "token-reuse")
    def test_one_token_is_used_for_59_minutes(self, start_run, clock):
        run = start_run()
        for seconds in (0, 1, 1800, 1738):
            clock.now += seconds
            run.register(SPEC)
        assert [token.expires_at for token in run.issued] == [START + HOUR]
        clock.now += 1
        run.register(SPEC)
        assert [token.expires_at for token in run.issued][1:] == [START + 3540 + HOUR]

    @pytest.mark.interface("3.1", "expiry")
    @pytest.mark.interface("5.2", "expired")
    @pytest.mark.interface("8", "token-lifetime")
    def test_a_token_is_accepted_until_its_last_second(self, account, clock):
        token = account.issue()
        clock.now = token.expires_at - 0.5
        assert account.register(SPEC, token=token.access_token)
        clock.now = token.expires_at
        with pytest.raises(TokenRejected, match="403"):
            account.register(SPEC, token=token.access_token)

    @pytest.mark.interface("3.1", "several", "independent")
    def test_a_second_token_does_not_affect_the_first(self, account, clock):
        first = account.issue()
        clock.now += 1800
        second = account.issue()
        assert (first.expires_at, second.expires_at) == (START + HOUR, START + 1800 + HOUR)
        for token in (first, second, first):
            assert account.register(SPEC, token=token.access_token)
        clock.now = first.expires_at
        with pytest.raises(TokenRejected):
            account.register(SPEC, token=first.access_token)
        assert account.register(SPEC, token=second.access_token)

    @pytest.mark.interface("3.1", "expired")
    @pytest.mark.interface("5.2", "expired")
    def test_a_cached_token_that_has_expired_is_replaced_once(self, account, start_run, clock):
        token = account.issue()
        clock.now += HOUR
        run = start_run(Token(token.access_token, math.inf))
        assert run.register(SPEC)[0].outcome is Outcome.CREATED
        assert len(run.issued) == 1

    @pytest.mark.interface("5.2", "missing", "unauthorized")
    @pytest.mark.interface("5.3", "missing")
    @pytest.mark.parametrize(("token", "status"), [(Secret(""), 401), (UNKNOWN, 403)])
    def test_a_missing_token_is_401_and_an_unknown_one_403(self, client, account, token, status):
        with pytest.raises(TokenRejected, match=str(status)) as caught:
            account.register(SPEC, token=token)
        said = {401: "Unauthorized", 403: "Forbidden"}[status]
        assert json.loads(caught.value.body) == {"message": said}
        with pytest.raises(TokenRejected, match=str(status)):
            client.request(token, "DELETE", "/send/123")


class TestClientStates:
    """Interface 3.2."""

    @pytest.mark.interface("3.1", "issue")
    @pytest.mark.interface("3.2", "active")
    @pytest.mark.interface("5.1", "bearer")
    def test_an_active_client_gets_tokens_that_work(self, account):
        assert account.register(SPEC)[0].outcome is Outcome.CREATED

    @pytest.mark.interface("3.2", "disabled", "disabled-use", "enable")
    @pytest.mark.interface("5.2", "disabled")
    def test_tokens_of_a_disabled_client_are_rejected_until_it_is_enabled(self, store, account):
        before = account.issue().access_token
        clients.disable_client(store, account.id)
        during = account.issue().access_token
        for token in (before, during):
            with pytest.raises(TokenRejected, match="403") as caught:
                account.register(SPEC, token=token)
            assert "temporarily disabled" in caught.value.hint
        clients.enable_client(store, account.id)
        assert account.register(SPEC, token=during)[0].outcome is Outcome.CREATED

    @pytest.mark.interface("3.2", "deleted", "restore")
    def test_a_deleted_client_gets_no_token_and_its_last_one_is_rejected(self, store, account):
        last = account.issue().access_token
        clients.delete_client(store, account.id)
        with pytest.raises(AuthenticationError, match="invalid_client") as caught:
            account.issue()
        assert "deleted" in caught.value.hint
        with pytest.raises(TokenRejected, match="403"):
            account.register(SPEC, token=last)

    @pytest.mark.interface("5.1", "credentials")
    @pytest.mark.interface("7.1", "invalid_client")
    def test_a_wrong_secret_gets_no_token(self, client, account):
        with pytest.raises(AuthenticationError, match="invalid_client"):
            client.issue_token(account.id, Secret("wrong"))


class TestRegistering:
    """Interface 2.3, 2.4, 3.3, 4.2, 7.3."""

    @pytest.mark.interface("2.3", "default-others")
    @pytest.mark.interface("3.3", "enable")
    @pytest.mark.interface("4.2", "created")
    def test_the_stated_attributes_are_registered(self, account):
        stated = SPEC._replace(default=1, enable=False)
        omitted = DomainSpec("example.org", key_len=2048)
        first, second = account.register(stated, omitted)
        assert (first.outcome, second.outcome) == (Outcome.CREATED, Outcome.CREATED)
        assert first.registration[:6] == stated[:6]
        assert (first.registration.code, first.registration.message) == ("201", "created")
        assert first.registration.record.fqdn == "s1._domainkey.example.com"
        assert second.registration.selector
        expected = f"{second.registration.selector}._domainkey.example.org"
        assert second.registration.record.fqdn == expected

    @pytest.mark.interface("2.3", "key_len-default", "start_date-default", "default")
    @pytest.mark.interface("2.3", "enable-default")
    @pytest.mark.interface("2.4", "regist_date")
    def test_omitted_attributes_get_the_services_defaults(self, account):
        (result,) = account.register(DomainSpec("example.com"))
        registration = result.registration
        assert result.outcome is Outcome.CREATED
        assert (registration.key_len, registration.default, registration.enable) == (1024, 0, True)
        assert registration.start_date == "2026-11-30T00:53+00:00"
        assert registration.regist_date == "2026-11-30T00:53:20+00:00"

    @pytest.mark.interface("7.3", "code-409-own")
    def test_a_repeated_request_returns_the_registered_data(self, account):
        (first,) = account.register(SPEC)
        (again,) = account.register(SPEC)
        assert again.outcome is Outcome.EXISTS
        assert again.registration.code == "409"
        assert again.registration.record == first.registration.record
        assert again.registration.regist_date == first.registration.regist_date

    @pytest.mark.interface("3.3", "change")
    def test_a_repeated_request_with_other_attributes_changes_nothing(self, account):
        (first,) = account.register(SPEC)
        (other,) = account.register(SPEC._replace(enable=False))
        assert (other.outcome, other.registration.enable) == (Outcome.DIFFERS, True)
        assert other.reason == "enable: asked for false, registered true"
        assert other.registration.record == first.registration.record
        assert account.register(SPEC)[0].outcome is Outcome.EXISTS

    @pytest.mark.interface("7.3", "code-409-other")
    def test_a_registration_of_another_client_is_taken_and_has_no_data(
        self, store, client, account
    ):
        account.register(SPEC)
        (result,) = Account(store, client).register(SPEC)
        assert (result.outcome, result.registration.code) == (Outcome.TAKEN, "409")
        assert (result.registration.record, result.registration.key_len) == (None, None)

    @pytest.mark.interface("4.2", "codes")
    @pytest.mark.interface("7.3", "code-500")
    @pytest.mark.interface("8", "key-lengths")
    def test_invalid_and_failing_entries_do_not_affect_others(self, store, connect, key_records):
        short = {1024: KeyPair(key_records[1024], b"")}
        with connect(make_key=short.__getitem__) as client:
            good, wrong, failing = Account(store, client).register(
                DomainSpec("a.example"), SPEC._replace(key_len=512), SPEC._replace(selector="s2")
            )
        assert good.outcome is Outcome.CREATED
        assert (wrong.outcome, wrong.registration.code) == (Outcome.INVALID, "400")
        assert wrong.reason == "key_len must be the number 1024 or 2048"
        assert (failing.outcome, failing.registration.code) == (Outcome.FAILED, "500")
        assert "retry later" in failing.reason

    @pytest.mark.interface("8", "batch-size")
    def test_too_many_entries_are_refused_together(self, account):
        specs = [SPEC._replace(selector=f"s{number}") for number in range(51)]
        with pytest.raises(RequestRefused, match="at most 50") as caught:
            account.register(*specs)
        assert caught.value.status == "400"
        assert len(account.register(*specs[:50])) == 50

    @pytest.mark.interface("8", "body-size")
    def test_too_large_a_request_is_refused(self, store, connect):
        with (
            connect(max_body=100) as client,
            pytest.raises(RequestRefused, match="exceeds 100 octets") as caught,
        ):
            Account(store, client).register(SPEC)
        assert caught.value.status == "413"

    @pytest.mark.interface("7.1", "500")
    @pytest.mark.interface("7.3", "500")
    def test_an_unexpected_error_is_not_an_answer(self, store, account, connect):
        def broken_clock() -> float:
            raise OSError

        token = account.issue().access_token
        with connect(clock=broken_clock) as client:
            with pytest.raises(MaybeProcessed, match="500: Internal Server Error"):
                client.register(token, [SPEC])
            with pytest.raises(ServiceError, match="500: Internal Server Error"):
                Account(store, client).issue()


class TestOtherRequests:
    """Interface 4.3, 5.3, 7.4."""

    @pytest.mark.interface("4.3", "unknown")
    @pytest.mark.interface("5.3", "success")
    def test_a_delivery_is_cancelled_once(self, store, client, account):
        delivery_id = clients.add_delivery(store, account.id)
        token = account.issue().access_token
        answer = client.request(token, "DELETE", f"/send/{delivery_id}")
        assert answer.status == 200
        assert json.loads(answer.body) == {"items": [{"delivery_id": delivery_id}]}
        assert client.request(token, "DELETE", f"/send/{delivery_id}").status == 404

    @pytest.mark.interface("4.3", "other-endpoints")
    @pytest.mark.parametrize(
        ("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", "/domain/dkim", 405)]
    )
    def test_other_statuses_include_the_services_message(
        self, client, account, method, path, status
    ):
        answer = client.request(account.issue().access_token, method, path)
        assert answer.status == status
        assert list(json.loads(answer.body)) == ["message"]


class TestClocks:
    """Interface 3.1: a token lasts an hour, by whose clock it may."""

    @pytest.mark.parametrize("jump", [-HOUR, HOUR])
    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_a_clock_that_jumps_during_a_run_loses_nothing(
        self, store, clock, connect, tmp_path, jump, side
    ):
        clocks, issued, jumped = {"ours": clock, "theirs": Clock(START)}, [], []

        class Watch:
            def settled(self, results) -> None:
                if not jumped:
                    jumped.append(side)
                    clocks[side].now += jump

            waiting = ending = tick = lambda *_: None

        with (
            connect(clock=lambda: clocks["theirs"].now) as client,
            Ledger.open(
                tmp_path / "ledger.db",
                base_url="https://x.example",
                client_id="me",
                clock=clock,
            ) as ledger,
        ):
            account = Account(store, client)
            token_provider = TokenProvider(issue=account.issue, persist=issued.append, clock=clock)
            engine = RegistrationEngine(
                ledger,
                Planner(ledger),
                lambda: (
                    lambda specs: token_provider.call(lambda token: client.register(token, specs))
                ),
                observer=Watch(),
                warn=lambda text: None,
                limits=Limits(batch_size=2, concurrency=2),
            )
            specs = [DomainSpec(f"d{number}.example", "s1", 2048) for number in range(20)]
            results = []
            engine.run(specs, results.append)
            assert [result.outcome for result in results] == [Outcome.CREATED] * 20
            assert jumped == [side]
            assert len(issued) <= 2
            assert len(list(ledger.all())) == 20
