"""The domains of a mail's From field."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.errors import UsageError
from dkimctl.mail.message import Message
from dkimctl.specs.names import parse_domain

_MAX_TEXT = 4_096  # characters; reading longer ones takes long


def from_domains(message: Message) -> list[str]:
    """The domains of the From field in A-labels, each once; of several fields, those of all."""
    return list(dict.fromkeys(_domains(message)))


def _domains(message: Message) -> Iterator[str]:
    from email.utils import getaddresses

    fields = (field.value.decode("utf-8", "replace") for field in message.all(b"from"))
    text = ", ".join(field.replace("\r\n", "").strip() for field in fields)[:_MAX_TEXT]
    for _, address in getaddresses([text]):
        try:
            yield parse_domain(address.rpartition("@")[2].strip())
        except UsageError:
            continue
