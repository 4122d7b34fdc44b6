"""The kinds of faults: what the client gets, and whether the request is processed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from random import Random
from typing import NamedTuple, NoReturn

from dkimctl.service.faults import answers
from dkimctl.service.faults.answers import Answer, json_answer


class Exchange(NamedTuple):
    """One request, and what a fault can do with it.

    `process` has the service process the request, and returns the answer; a fault that does not
    call it happens before processing. `hang_up` closes the connection.
    """

    process: Callable[[], Answer]
    hang_up: Callable[[], NoReturn]
    wait: Callable[[], None]
    retry_after: int | None
    rng: Random


Fault = Callable[[Exchange], Answer]

# As AWS API Gateway words them, which such a service may be behind.
_MESSAGES = {
    HTTPStatus.TOO_MANY_REQUESTS: "Too Many Requests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Internal Server Error",
    HTTPStatus.BAD_GATEWAY: "Bad Gateway",
    HTTPStatus.SERVICE_UNAVAILABLE: "Service Unavailable",
    HTTPStatus.GATEWAY_TIMEOUT: "Endpoint request timed out",
}
_TEMPORARY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


def _dropped(exchange: Exchange) -> Answer:
    exchange.hang_up()


def _refused(status: HTTPStatus) -> Fault:
    def refused(exchange: Exchange) -> Answer:
        answer = json_answer(status, {"message": _MESSAGES[status]})
        if status in _TEMPORARY and exchange.retry_after is not None:
            answer = answer.with_header("Retry-After", str(exchange.retry_after))
        return answer

    return refused


def _after(fault: Fault) -> Fault:
    """The same fault after the request is processed."""

    def after(exchange: Exchange) -> Answer:
        exchange.process()
        return fault(exchange)

    return after


def _slow(exchange: Exchange) -> Answer:
    answer = exchange.process()
    exchange.wait()
    return answer


def _changed(change: answers.Change) -> Fault:
    return lambda exchange: change(exchange.process(), exchange.rng)


KINDS: Mapping[str, Fault] = {
    "drop-before": _dropped,
    "drop-after": _after(_dropped),
    "429": _refused(HTTPStatus.TOO_MANY_REQUESTS),
    "500-before": _refused(HTTPStatus.INTERNAL_SERVER_ERROR),
    "500-after": _after(_refused(HTTPStatus.INTERNAL_SERVER_ERROR)),
    "502-before": _refused(HTTPStatus.BAD_GATEWAY),
    "502-after": _after(_refused(HTTPStatus.BAD_GATEWAY)),
    "503-before": _refused(HTTPStatus.SERVICE_UNAVAILABLE),
    "503-after": _after(_refused(HTTPStatus.SERVICE_UNAVAILABLE)),
    "504-before": _refused(HTTPStatus.GATEWAY_TIMEOUT),
    "504-after": _after(_refused(HTTPStatus.GATEWAY_TIMEOUT)),
    "slow": _slow,
    "truncated": _changed(answers.truncated),
    "content-type": _changed(answers.labelled_html),
    "reordered": _changed(answers.change_items(answers.reordered)),
    "missing-items": _changed(answers.change_items(answers.some_missing)),
    "item-500": _changed(answers.change_items(answers.some_failed)),
}
