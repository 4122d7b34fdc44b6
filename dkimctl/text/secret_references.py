"""What stands for a secret in the config file: `env/NAME` or `keyring/NAME`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast

from dkimctl.errors import UsageError

HINT = "write env/NAME for an environment variable, or keyring/NAME for an entry of the keyring"

_START = r"(?:env|keyring)/"  # compiled when it is first used
_REFERENCE = r"(env)/([A-Za-z_][A-Za-z0-9_]{0,199})|(keyring)/([A-Za-z0-9_.@+/-]{1,200})"


class SecretReference(NamedTuple):
    """An environment variable, or an entry of the keyring. `str` is how it is written."""

    store: Literal["env", "keyring"]
    name: str

    def __str__(self) -> str:
        return f"{self.store}/{self.name}"


def parse_reference(text: str) -> SecretReference | None:
    """The reference that `text` is; None for any other text.

    Raises UsageError, which does not quote the text, for a reference whose name is invalid.
    """
    if not re.match(_START, text):
        return None
    match = re.fullmatch(_REFERENCE, text)
    if match is None:
        hint = "use letters, digits and _; in a name of the keyring also . - + @ and /"
        raise UsageError("the name after env/ or keyring/ is invalid", hint=hint)
    store, name = filter(None, match.groups())
    return SecretReference(cast('Literal["env", "keyring"]', store), name)


def variables_in(value: object) -> Iterator[str]:
    """The environment variables that a text, or any text in a list or mapping, refers to."""
    for one in values_in(value):
        reference = parse_reference(one) if isinstance(one, str) else None
        if reference is not None and reference.store == "env":
            yield reference.name


def values_in(value: object) -> Iterator[object]:
    """The values in nested lists and mappings; of any other value, itself."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from values_in(inner)
    elif isinstance(value, list):
        for item in value:
            yield from values_in(item)
    else:
        yield value
