"""`dkimctl api` and `token`: any bearer-protected request (interface 5.3), and its token."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

import typer

from dkimctl.cli.options import ACCOUNT, CONNECTION, App, examples
from dkimctl.cli.report import write, write_bytes
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer, ServiceError, TokenRejected, UsageError
from dkimctl.input_files import read_bytes

_VALID_PATH = r"[!-\"$-~]+"  # printable ASCII without spaces and fragments

app = App()


@app.command(
    epilog=examples(
        "dkimctl api DELETE /send/123",
        "dkimctl api POST /domain/dkim --input request.json",
    ),
    shows=(*ACCOUNT, *CONNECTION),
)
def api(
    ctx: typer.Context,
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="HTTP method.",
            autocompletion=lambda: ["GET", "POST", "PUT", "PATCH", "DELETE"],
        ),
    ],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path or URL of the service.")],
    body_file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="File with the request body; `-` is standard input."
        ),
    ] = None,
) -> int:
    """Send any bearer-protected request, and print the response.

    The response body is printed unchanged.
    """
    session = open_session(ctx)
    if not (method.isascii() and method.isalpha()):
        raise UsageError("invalid HTTP method", hint="use one such as GET, POST or DELETE")
    path = _relative_path(session.account.base_url, path)
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
    status = response.status
    if 200 <= status < 300:
        return ExitCode.OK
    url = session.account.base_url + path.partition("?")[0]  # a query may hold a secret
    if 400 <= status < 500:
        hint = "see the response body on stdout"
        if status == 404:
            hint += "; check the path, and --base-url, which precedes it"
        raise NegativeAnswer(f"{url} answered {status}", hint=hint)
    is_redirect = 300 <= status < 400
    hint = "redirects are not followed; check --base-url" if is_redirect else "try again later"
    raise ServiceError(f"{url} answered {status}", hint=hint)


@app.command(
    epilog=examples(
        "dkimctl token",
        "token=$(dkimctl token) && curl -H @<(printf 'Authorization: Bearer %s' \"$token\") URL",
    ),
    shows=(*ACCOUNT, *CONNECTION),
)
def token(ctx: typer.Context) -> int:
    """Print a valid access token.

    It is renewed if less than a minute of it is left.
    """
    session = open_session(ctx)
    write(
        [f"{session.token_provider.token().reveal()}\n"],
        must_arrive=True,
        hint="read the token from stdout: `TOKEN=$(dkimctl token)`",
    )
    return ExitCode.OK


def _relative_path(base_url: str, path: str) -> str:
    """`path`, or the path of a URL below `base_url`: no other host may get the token."""
    if "://" in path and not path.startswith("/"):
        if not path.startswith(f"{base_url}/"):
            raise UsageError(
                f"the URL is not below the profile's base URL, {base_url}",
                hint="the token is sent to that service only: give a path such as /send/123",
            )
        path = path.removeprefix(base_url)
    if not path.startswith("/") or path.startswith("//"):
        raise UsageError("invalid path", hint="begin it with one slash, such as /send/123")
    if {".", ".."} & {*unquote(path.partition("?")[0]).split("/")}:
        raise UsageError("the path has . or .. segments", hint="write it without them")
    if not re.fullmatch(_VALID_PATH, path):
        raise UsageError(
            "invalid characters in the path", hint="percent-encode all but printable ASCII"
        )
    return path
