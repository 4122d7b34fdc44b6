"""What `login` asks for on a terminal, in the words of the options."""

from __future__ import annotations

from typing import NamedTuple

from dkimctl.cli import prompt
from dkimctl.cli.session import Session
from dkimctl.errors import DkimctlError, UsageError
from dkimctl.models.secret import Secret
from dkimctl.settings.profile import option, variable
from dkimctl.settings.values import CHECKS


class _Question(NamedTuple):
    label: str
    example: str


_QUESTIONS = {
    "auth_url": _Question("Auth URL", "https://auth.example.com"),
    "base_url": _Question("Base URL", "https://api.example.com"),
    "client_id": _Question("Client ID", "0a1b2c3d"),
}


def ask_for_missing(session: Session) -> None:
    """Ask for what no source sets; the environment counts as an answer, as options do."""
    for key, question in _QUESTIONS.items():
        if getattr(session.resolve_settings(may_be_new=True).profile, key) is None:
            session.flags[key] = _ask(session, key, question)


def ask_for_secret(session: Session, *, from_stdin: bool) -> Secret:
    return prompt.read_client_secret(
        from_stdin=from_stdin, complain=lambda error: _complain(session, "Client secret", error)
    )


def _ask(session: Session, key: str, question: _Question) -> str:
    name = option(key).name
    if not prompt.is_interactive():
        raise UsageError(
            f"{key} is not set, and there is no terminal to ask for it",
            hint=f"give {name}, or set {variable(key).name}",
        )
    try:
        return prompt.ask(
            f"{question.label} (such as {question.example})",
            CHECKS[key],
            lambda error: _complain(session, question.label, error),
        )
    except UsageError as error:
        raise UsageError(
            f"{question.label}: {error.message}",
            hint=f"give it as an option: {name} {question.example}",
        ) from None


def _complain(session: Session, label: str, error: DkimctlError) -> None:
    session.reporter.warn(f"{label}: {error.message}", hint=error.hint)
