"""Fakes that more than one test module needs: of the clock, a terminal, and the service."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable

from dkimctl.client.wire import Reply
from dkimctl.errors import TokenRejected
from dkimctl.models import DomainSpec, Registration, Result, Secret, Token

Step = Exception | Reply | Callable[[list[DomainSpec]], Reply] | None


class Clock:
    """Advances only by `sleep`, or when `now` (in seconds) is set."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.sleeps.append(seconds)
        self.now += seconds


class Terminal(io.StringIO):
    """Text that is written to it; it claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class RegistrationService:
    """Registers the entries it is sent, from any thread.

    The `script` has a step for each request, and None for the usual answer: an error to raise, a
    reply, or a function of the entries. A pair that is registered already gets 409 with the data;
    an entry without a selector gets a new one each time.
    """

    def __init__(
        self, make_registration: Callable[..., Registration], script: Iterable[Step] = ()
    ) -> None:
        self.script = iter(script)
        self.batches: list[list[DomainSpec]] = []
        self.registered: dict[tuple[str, str], Registration] = {}
        self._make_registration = make_registration
        self._lock = threading.Lock()

    def send(self, specs: Iterable[DomainSpec]) -> Reply:
        with self._lock:
            self.batches.append(list(specs))
            step = next(self.script, None)
        if isinstance(step, Exception):
            raise step
        if callable(step):
            return step(specs)
        return self.answer(specs) if step is None else step

    def answer(self, specs: Iterable[DomainSpec]) -> Reply:
        with self._lock:
            return Reply(tuple(map(self._register, specs)))

    def _register(self, spec: DomainSpec) -> Registration:
        pair = spec.sign_domain, spec.selector or f"chosen{len(self.registered)}"
        if pair in self.registered:
            return self.registered[pair]._replace(code="409")
        self.registered[pair] = self._make_registration(*pair)
        return self.registered[pair]

    @property
    def sent(self) -> list[list[str]]:
        """The domains of each request, in the order of the requests."""
        return [[spec.sign_domain for spec in batch] for batch in self.batches]


class TokenService:
    """Issues numbered tokens that last an hour from `now`, and rejects those in `rejected`.

    `status` is that of a rejection.
    """

    def __init__(self, now: float, rejected: tuple[str, ...] = (), status: int = 403) -> None:
        self.now = now
        self.status = status
        self.rejected = rejected
        self.issued = 0
        self.used: list[str] = []

    def issue(self) -> Token:
        self.issued += 1
        return Token(Secret(f"new{self.issued}"), self.now + 3600, self.now)

    def request(self, token: Secret) -> str:
        self.used.append(token.reveal())
        if token.reveal() in self.rejected:
            raise TokenRejected("no", status=self.status)
        return "answer"


def entries(count: int, selector: str | None = "s1") -> list[DomainSpec]:
    """So many entries, each with this selector."""
    return [DomainSpec(f"d{number}.example", selector) for number in range(count)]


def outcomes_of(results: Iterable[Result]) -> list[str]:
    return [str(result.outcome) for result in results]
