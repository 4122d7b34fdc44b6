"""Python and the libraries."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import NamedTuple

from dkimctl import __version__
from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.cli.embedded_service import INSTALL, is_installed
from dkimctl.cli.session import Session

_OLDEST_PYTHON = (3, 11)
_OF_USERS = ("service", "postgres", "octodns")  # extras
_REQUIREMENT = r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?"
_BOUND = r"(<=|>=|<|>|==)\s*([0-9.]+)"


class Requirement(NamedTuple):
    """A library, the bounds of its version, and the extra that needs it; "" for none."""

    name: str
    bounds: str
    extra: str


def check_python(_session: Session) -> Iterator[Finding]:
    running = f"Python {platform.python_version()}, dkimctl {__version__}"
    if sys.version_info < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        yield Finding("python", State.WRONG, running, f"install Python {oldest} or later")
    else:
        yield Finding("python", State.OK, running)
    if find_spec("click"):
        yield Finding(
            "python",
            State.NOTE,
            "click is installed as well, which makes commands that send requests 45 ms slower",
            "to avoid that, install dkimctl in an environment of its own, such as with pipx",
        )


def check_libraries(_session: Session) -> Iterator[Finding]:
    try:
        lines = requires("dkimctl") or []
    except PackageNotFoundError:
        yield Finding("libraries", State.UNKNOWN, "dkimctl is not installed as a package")
        return
    requirements = [one for line in lines if (one := parse_requirement(line))]
    installed = {one.name: _installed_version(one.name) for one in requirements}
    problems = [*library_problems(requirements, installed)]
    yield from problems
    if not problems:
        count = sum(one is not None for one in installed.values())
        yield Finding("libraries", State.OK, f"{count} installed, in versions that fit")


def check_service_extra(_session: Session) -> Iterator[Finding]:
    if is_installed():
        yield Finding("embedded service", State.OK, "installed")
    else:
        hint = f"run `{INSTALL}`"
        yield Finding("embedded service", State.WRONG, "it is not installed", hint)


def parse_requirement(line: str) -> Requirement | None:
    """A line of the metadata; None if it does not apply to users, or to this platform."""
    match = re.fullmatch(_REQUIREMENT, line.strip())
    if not match:
        return None
    name, bounds, marker = match[1], match[2], match[3] or ""
    extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if extra and extra[1] not in _OF_USERS:
        return None
    if "sys_platform" in marker and ("== " in marker) is not (sys.platform == "win32"):
        return None
    return Requirement(name, bounds, extra[1] if extra else "")


def library_problems(
    requirements: list[Requirement], installed: Mapping[str, str | None]
) -> Iterator[Finding]:
    """Those that are missing, or too old or new; of an extra, only the latter."""
    for name, bounds, extra in requirements:
        found = installed[name]
        hint = f"run `pip install '{name}{bounds}'`"
        if found is None and not extra:
            yield Finding("libraries", State.WRONG, f"{name} is not installed", hint)
        elif found is not None and not _fits(found, bounds):
            state = State.WARNING if extra else State.WRONG
            yield Finding("libraries", state, f"{name} {found} does not fit {bounds}", hint)


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _fits(found: str, bounds: str) -> bool:
    return all(_holds(_numbers(found), sign, _numbers(bound))
               for sign, bound in re.findall(_BOUND, bounds))  # fmt: skip


def _holds(found: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    length = max(len(found), len(bound))
    left, right = (one + (0,) * (length - len(one)) for one in (found, bound))
    return {
        ">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right,
        "==": left == right,
    }[sign]  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    """The release of a version, such as (2, 0, 30)."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()
