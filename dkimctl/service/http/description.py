"""GET /openapi.yaml: the description of the interface, which is not a part of it."""

from __future__ import annotations

from functools import cache

import falcon


class DescriptionResource:
    """Serves `dkimctl/service/openapi.yaml` as `application/yaml` (RFC 9512)."""

    protected = False
    method = "GET"

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.content_type = falcon.MEDIA_YAML
        response.data = read_description()


@cache
def read_description() -> bytes:
    """The OpenAPI description, in YAML."""
    from importlib.resources import files

    return files("dkimctl.service").joinpath("openapi.yaml").read_bytes()
