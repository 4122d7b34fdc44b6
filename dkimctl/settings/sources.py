"""Where a value of a profile comes from."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class SourceKind(StrEnum):
    """The sources of settings, in the order of precedence."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    CONFIG = "config"
    PROFILE_USE = "profile use"  # of the profile's name only
    LOGIN = "login"  # of a profile's values only
    DEFAULT = "default"


class Source(NamedTuple):
    """`name` is the option, the variable or the path of the config file; "" for the others."""

    kind: SourceKind
    name: str = ""

    def __str__(self) -> str:
        words = {
            SourceKind.OPTION: "option",
            SourceKind.ENVIRONMENT: "environment variable",
            SourceKind.CONFIG: "config file",
        }
        return f"{words.get(self.kind, self.kind)} {self.name}".rstrip()


DEFAULT = Source(SourceKind.DEFAULT)
LOGIN = Source(SourceKind.LOGIN)
PROFILE_USE = Source(SourceKind.PROFILE_USE)


def option(key: str) -> Source:
    return Source(SourceKind.OPTION, f"--{key.replace('_', '-')}")


def variable(key: str) -> Source:
    return Source(SourceKind.ENVIRONMENT, f"DKIMCTL_{key.upper()}")
