"""`dkimctl api` and `token`: any bearer-protected request (interface 5.3), and its token."""

import re
from typing import Annotated
from urllib.parse import unquote

import typer

from dkimctl.cli.options import App, argument, option
from dkimctl.cli.report import write, write_bytes
from dkimctl.cli.session import open_session
from dkimctl.errors import ExitCode, NegativeAnswer, ServiceError, TokenRejected, UsageError
from dkimctl.input_files import read_bytes

_VALID_PATH = r"/(?!/)[!-\"$-~]*"  # printable ASCII without spaces and fragments

app = App()


@app.command("dkimctl api DELETE /send/123", "dkimctl api POST /domain/dkim --input request.json")
def api(
    ctx: typer.Context,
    method: Annotated[str, argument("METHOD",
        "HTTP method.", autocompletion=lambda: ["GET", "POST", "PUT", "PATCH", "DELETE"])],
    path: Annotated[str, argument("PATH", "Path or URL of the service.")],
    body_file: Annotated[str | None, option("--input FILE",
        "File with the request body; `-` is standard input.")] = None,
) -> int:  # fmt: skip
    """Send any bearer-protected request, and print the response.

    The response body is printed unchanged.
    """
    session = open_session(ctx)
    if not (method.isascii() and method.isalpha()):
        raise UsageError("invalid HTTP method", hint="use one such as GET, POST or DELETE")
    # The path of a URL below the base URL, or itself: no other host may get the token.
    base_url = session.account.base_url
    if path.startswith(f"{base_url}/"):
        path = path.removeprefix(base_url)
    has_dots = {".", ".."} & {*unquote(path.partition("?")[0]).split("/")}
    if has_dots or not re.fullmatch(_VALID_PATH, path):
        hint = "begin it with a slash, such as /send/123, without //, . or .. in it, and "
        raise UsageError(
            f"the path is invalid, or not below {base_url}; the token is sent only there",
            hint=f"{hint}percent-encode all but printable ASCII",
        )
    body = None if body_file is None else read_bytes(body_file)
    try:
        response = session.token_provider.call(
            lambda token: session.client.request(token, method.upper(), path, body)
        )
    except TokenRejected as error:
        write_bytes(error.body)
        raise
    write_bytes(response.body)
    status = response.status
    # A query may hold a secret.
    message = f"{base_url}{path.partition('?')[0]} answered {status}"
    if 400 <= status < 500:
        hint = "see the response body on stdout, and check the path and --base-url"
        raise NegativeAnswer(message, hint=hint)
    if not 200 <= status < 300:
        later = "try again later; check --base-url if it persists"
        redirect = "redirects are not followed: check --base-url and the path"
        raise ServiceError(message, hint=redirect if 300 <= status < 400 else later)
    return ExitCode.OK


@app.command(
    "dkimctl token",
    "token=$(dkimctl token) && curl -H @<(printf 'Authorization: Bearer %s' \"$token\") URL",
)
def token(ctx: typer.Context) -> int:
    """Print a valid access token.

    It is renewed if it expires within a minute.
    """
    session = open_session(ctx)
    hint = "read the token from stdout: `TOKEN=$(dkimctl token)`"
    write([f"{session.token_provider.token().reveal()}\n"], must_arrive=True, hint=hint)
    return ExitCode.OK
