"""Find the class of an octoDNS provider, and make one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dkimctl.errors import UsageError
from dkimctl.models.secret import Secret
from dkimctl.publishing.providers.failures import short_line
from dkimctl.text.escaping import printable

_ID = "dkimctl"  # names the provider in octoDNS's own messages
_making = threading.Lock()  # boto3 makes no clients in two threads


def load_class(class_name: str) -> Any:
    """The class of this name. Raises UsageError, with the command that installs it."""
    _load_octodns()
    found = _find_class(class_name)
    if found is None:
        raise UsageError(
            f"there is no such class: {printable(class_name)}",
            hint="check `class` of `dns` in the config file",
        )
    if not all(hasattr(found, method) for method in ("populate", "plan", "apply")):
        raise UsageError(
            f"{printable(class_name)} is not an octoDNS provider that can change DNS",
            hint="check `class` of `dns` in the config file",
        )
    return found


def _find_class(class_name: str) -> Any:
    """None if its module does not have it."""
    module_name, _, name = class_name.rpartition(".")
    try:
        return getattr(import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        raise _no_module(class_name, error.name) from None
    except Exception as error:  # noqa: BLE001 - a module can raise anything while it is imported
        reason = short_line(str(error)) or type(error).__name__
        raise UsageError(
            f"cannot import {printable(class_name)}: {reason}",
            hint="update octodns and the package of the provider",
        ) from None


def _no_module(class_name: str, missing: str | None) -> UsageError:
    package = class_name.partition(".")[0]
    if missing == package:
        return UsageError(
            f"the package of {printable(class_name)} is not installed",
            hint=f"install it beside dkimctl: pip install {package.replace('_', '-')}",
        )
    return UsageError(
        f"cannot import {printable(class_name)}: there is no module {printable(str(missing))}",
        hint="check `class` of `dns` in the config file, and that its package is complete",
    )


def make_provider(cls: Any, settings: Mapping[str, object]) -> Any:
    """Secrets are revealed here, and in no local variable."""
    with _making:
        return cls(_ID, **{key: _revealed(value) for key, value in settings.items()})


def _load_octodns() -> None:
    _silence_libraries()
    try:
        import_module("octodns")
    except ModuleNotFoundError:
        raise UsageError(
            "`provider: octodns` needs octoDNS, which is not installed",
            hint="run `pip install 'dkimctl[octodns]'`",
        ) from None


def _silence_libraries() -> None:
    """Keep what libraries warn of off standard error: with `warnings`, or by a logger."""
    logging.captureWarnings(True)
    # Without any handler, Python writes warnings of every logger to standard error.
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())


def _revealed(value: object) -> object:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Mapping):
        return {key: _revealed(inner) for key, inner in value.items()}
    return [_revealed(item) for item in value] if isinstance(value, list) else value
