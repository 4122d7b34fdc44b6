"""POST /domain/dkim (interface 4.2, 7.3)."""

from __future__ import annotations

import falcon

from dkimctl.service.body import read_body, requested_domains
from dkimctl.service.registrar import Registrar
from dkimctl.service.validation import judge


class DkimResource:
    """Registers signing domains for the client that holds the token."""

    protected = True
    method = "POST"

    def __init__(self, registrar: Registrar, max_domains: int, max_body: int) -> None:
        self._registrar = registrar
        self._max_domains = max_domains
        self._max_body = max_body

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        domains = requested_domains(read_body(request, self._max_body), self._max_domains)
        entries = [judge(domain) for domain in domains]
        items = self._registrar.register(request.context.client_id, entries)
        response.media = {"items": items, "count": len(items), "total": len(items)}
