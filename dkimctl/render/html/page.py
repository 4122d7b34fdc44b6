"""Templates: those of this package, or of another that lays out what it has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, **values: object) -> str:
    """The page that `template` makes of `values`; text in them is escaped.

    The page fetches nothing and runs no script: its security policy forbids both.
    """
    return environment(__package__).get_template(template).render(values)


def environment(package: str) -> Environment:
    """The templates of `package`; a page extends our base.html, which has the looks of all."""
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
