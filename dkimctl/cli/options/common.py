"""The options of every command that works with a profile, and of the groups of commands.

They are made directly: Typer would take ten times as long to read them from a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import typer
from typer.core import TyperOption

from dkimctl.cli.output.colour import Color
from dkimctl.errors import UsageError

COMMON_PANEL = "Common options"
_PROFILE_PANEL = "Profile settings"

# What the help of a command can show. Every command with a session takes all of them.
LEDGER = ("base_url", "client_id")  # whose part of the ledger it is
ACCOUNT = ("auth_url", *LEDGER, "credential_store")
CONNECTION = ("timeout", "ca_bundle", "proxy")
SENDING = ("batch_size", "concurrency", "max_wait")

_SESSION_ONLY = ("profile", "sandbox", "config")


def session_options(shown: Collection[str]) -> list[TyperOption]:
    """The options of a command with a session; its help shows `shown` and the common ones."""
    return [*_profile_settings(shown), *_session_options(), *_stream_options(takes_session=True)]


def common_options(*, takes_session: bool) -> list[TyperOption]:
    """Those that may also stand before a command: of a group, or a command without session."""
    return [
        *(_session_options() if takes_session else ()),
        *_stream_options(takes_session=takes_session),
    ]


def version_option(show: Callable[..., None]) -> TyperOption:
    return _common(
        ["version", "--version", "-V"],
        "Show the version and exit.",
        is_flag=True,
        default=False,
        is_eager=True,
        expose_value=False,
        callback=show,
    )


def take_flags(ctx: typer.Context, options: Iterable[TyperOption]) -> dict[str, Any]:
    """Remove the values of these options, and add those that were given before the command.

    Of several, the one nearest to the command wins.
    """
    flags = {str(option.name): ctx.params.pop(str(option.name)) for option in options}
    before = ctx.parent
    while before is not None:
        for name, value in before.params.items():
            if flags.get(name) in (None, False):
                flags[name] = value
        before = before.parent
    return flags


def refuse_profile(flags: dict[str, Any], command: str) -> None:
    """Raise UsageError if an option before a command without a profile has no effect on it."""
    for name in _SESSION_ONLY:
        if flags.get(name) not in (None, False):
            raise UsageError(
                f"--{name} has no effect on `{command}`", hint="leave it out: no profile is used"
            )


def _profile_settings(shown: Collection[str]) -> list[TyperOption]:
    def option(name: str, metavar: str, help_text: str) -> TyperOption:
        return TyperOption(
            param_decls=[name, f"--{name.replace('_', '-')}"],
            type=str,
            metavar=metavar,
            help=help_text,
            hidden=name not in shown,
            rich_help_panel=_PROFILE_PANEL,
        )

    return [
        option("auth_url", "URL", "URL that issues access tokens."),
        option("base_url", "URL", "URL of the service."),
        option("client_id", "ID", "Client ID."),
        option("credential_store", "STORE", "keyring or file, for secret and token."),
        option("batch_size", "N", "Domains per request (default: 50)."),
        option("concurrency", "N", "Parallel requests (default: 8)."),
        option("timeout", "TIME", "Longest wait for an answer (default: 30s)."),
        option("max_wait", "TIME", "Longest Retry-After to honour (default: 5m)."),
        option("ca_bundle", "FILE", "PEM file of CAs to trust, not the system's."),
        option("proxy", "URL", "Proxy for all requests."),
    ]


def _session_options() -> list[TyperOption]:
    return [
        _common(["profile", "--profile", "-p"], "Profile to use.", metavar="NAME", type=str),
        _common(
            ["sandbox", "--sandbox"],
            "Use the embedded service: no account, no network.",
            is_flag=True,
            default=False,
        ),
        _common(["config", "--config"], "Config file to read.", metavar="FILE", type=str),
    ]


def _stream_options(*, takes_session: bool) -> list[TyperOption]:
    return [
        _common(
            ["color", "--color"],
            f"{', '.join(Color)} (default: auto, on a terminal).",
            metavar="WHEN",
            type=typer.main.get_click_type(annotation=Color, parameter_info=typer.Option()),
            is_eager=True,  # an invalid value is an error even before --help
        ),
        _common(
            ["verbose", "--verbose", "-v"],
            "Log requests and DNS queries; show lists in full.",
            is_flag=True,
            default=False,
            hidden=not takes_session,
        ),
        _common(
            ["quiet", "--quiet", "-q"],
            "Show only warnings and errors.",
            is_flag=True,
            default=False,
        ),
    ]


def _common(names: list[str], help_text: str, **more: Any) -> TyperOption:
    return TyperOption(param_decls=names, help=help_text, rich_help_panel=COMMON_PANEL, **more)
