"""`dkimctl api`: any bearer-protected request (interface 5.3)."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from dkimctl.cli.options import examples, with_session
from dkimctl.cli.output import write_bytes
from dkimctl.cli.session import Session
from dkimctl.documents import read_bytes
from dkimctl.errors import (
    DkimctlError,
    ExitCode,
    NegativeAnswer,
    ServiceError,
    TokenRejected,
    UsageError,
)

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
    path: Annotated[str, typer.Argument(metavar="PATH", help="The path below the service's URL.")],
    body_file: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE", help="Send this body; `-` is standard input."),
    ] = None,
) -> int:
    """Send any bearer-protected request, and print the body of its answer as it came."""
    _check(method, path)
    body = None if body_file is None else read_bytes(body_file)
    content_type = None if body is None else "application/json"
    try:
        response = session.authorizer.call(
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


def _check(method: str, path: str) -> None:
    if not (method.isascii() and method.isalpha()):
        raise UsageError(f"{method} is no HTTP method", hint="such as GET, POST or DELETE")
    if not path.startswith("/") or path.startswith("//"):
        raise UsageError(
            f"{path} is no path of the service", hint="begin it with one slash: /send/123"
        )
    if not re.fullmatch(_SENDABLE, path):
        raise UsageError(
            f"{path} cannot be sent as it is", hint="percent-encode what is not plain ASCII"
        )


def _refusal(status: int) -> DkimctlError:
    text = f"the service answered {status}"
    if 400 <= status < 500:
        return NegativeAnswer(text, hint="the body on stdout may say why")
    return ServiceError(text, hint="try again later")
