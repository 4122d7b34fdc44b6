"""HTML pages for people without a terminal: each is one file, and fetches nothing.

Their templates are those of this package, or of another that lays out what it has to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(package: str) -> Environment:
    """The templates of `package`; a page extends our base.html, which has the looks of all.

    Text in them is escaped. A page fetches nothing and runs no script: its security policy forbids
    both.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["printable"] = printable
    return templates
