"""A sheet for whoever owns the DNS as a page."""

from __future__ import annotations

from dkimctl.publication.handoff.sheet import Sheet
from dkimctl.render.handoff.page import make_page
from dkimctl.render.handoff.words import Words
from dkimctl.render.html.page import render_page
from dkimctl.render.renderer import Language
from dkimctl.text.escaping import printable


def handoff_page(sheet: Sheet, language: Language) -> str:
    from markupsafe import Markup

    def mark(data: str) -> Markup:
        return Markup("<code>{}</code>").format(printable(data))

    page = make_page(sheet, Words(language, mark, Markup))
    return render_page("handoff.html", language=page.language, page=page)
