"""Fills a template of this package; a template extends base.html, which has the looks of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, **values: object) -> str:
    """The page that `template` makes of `values`; text in them is escaped.

    The page fetches nothing and runs no script: its security policy forbids both.
    """
    return _environment().get_template(template).render(values)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    return environment
