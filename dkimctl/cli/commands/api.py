"""`dkimctl api`: any bearer-protected request (interface 5.3)."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output.streams import write_bytes
from dkimctl.cli.session import Session
from dkimctl.errors import (
    DkimctlError,
    ExitCode,
    NegativeAnswer,
    ServiceError,
    TokenRejected,
    UsageError,
)
from dkimctl.strict_yaml.source import read_bytes

_SENDABLE = r"[!-\"$-~]+"  # printable ASCII without blanks, and no fragment

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "dkimctl api DELETE /send/123",
        "dkimctl api POST /domain/dkim --input request.json",
    )
)
@with_session
def api(
    session: Session,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="The HTTP method.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="A path, or URL, of the service.")],
    body_file: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE", help="Send this body; `-` is standard input."),
    ] = None,
) -> int:
    """Send any bearer-protected request, and print the body of its answer as it came."""
    _check_method(method)
    path = _below(session.account.base_url, path)
    body = None if body_file is None else read_bytes(body_file)
    content_type = None if body is None else "application/json"
    try:
        response = session.token_provider.call(
            lambda token: session.client.request(
                token, method.upper(), path, body=body, content_type=content_type
            )
        )
    except TokenRejected as error:
        write_bytes(error.body)
        raise
    write_bytes(response.body)
    if 200 <= response.status < 300:
        return ExitCode.OK
    raise _refusal(response.status)


def _check_method(method: str) -> None:
    if not (method.isascii() and method.isalpha()):
        raise UsageError("this is no HTTP method", hint="such as GET, POST or DELETE")


def _below(base_url: str, path: str) -> str:
    """`path`, or of a whole URL what follows `base_url`: nobody else is sent the token."""
    if "://" in path and not path.startswith("/"):
        if not path.startswith(f"{base_url}/"):
            raise UsageError(
                f"the URL is not below that of the profile, {base_url}",
                hint="the token goes nowhere else: give a path such as /send/123",
            )
        path = path.removeprefix(base_url)
    if not path.startswith("/") or path.startswith("//"):
        raise UsageError("this is no path of the service", hint="begin it with one slash: /send/1")
    if {".", ".."} & {*unquote(path.partition("?")[0]).split("/")}:
        raise UsageError("the path has steps of dots", hint="they may lead out of the service")
    if not re.fullmatch(_SENDABLE, path):
        raise UsageError(
            "the path cannot be sent as it is", hint="percent-encode what is not plain ASCII"
        )
    return path


def _refusal(status: int) -> DkimctlError:
    text = f"the service answered {status}"
    if 400 <= status < 500:
        return NegativeAnswer(text, hint="the body on stdout may say why")
    if 300 <= status < 400:
        return ServiceError(text, hint="no redirect is followed with a token; check --base-url")
    return ServiceError(text, hint="try again later")
