"""Request bodies: read within a limit, decoded with care."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import falcon


class RequestRefused(falcon.HTTPBadRequest):
    """400: a registration request is wrong as a whole."""


def answer_refused_request(
    _request: falcon.Request,
    response: falcon.Response,
    refused: RequestRefused,
    _params: dict[str, Any],
) -> None:
    """Falcon error handler: a 400 has the shape of interface 2.4 as well (4.2), with no entry."""
    response.status = falcon.HTTP_BAD_REQUEST
    response.media = {"items": [], "count": 0, "total": 0, "message": refused.description}


def read_body(request: falcon.Request, max_octets: int) -> bytes:
    """The whole body, whether it comes with a length or in chunks.

    Raises falcon.HTTPContentTooLarge beyond `max_octets`, before the rest is read.
    """
    if (request.content_length or 0) > max_octets:
        raise _too_large(max_octets)
    is_chunked = request.content_length is None and request.get_header("Transfer-Encoding")
    stream = request.stream if is_chunked else request.bounded_stream
    body = stream.read(max_octets + 1)
    if len(body) > max_octets:
        raise _too_large(max_octets)
    return body


def requested_domains(body: bytes, max_domains: int) -> list[dict[str, Any]]:
    """The objects of `domains` in a registration request (interface 2.3), not yet judged.

    Raises RequestRefused for what is wrong with the request as a whole.
    """
    document = _decode(body)
    if not isinstance(document, dict):
        raise _bad("The body must be a JSON object.")
    domains = document.get("domains")
    if not isinstance(domains, list) or not all(isinstance(entry, dict) for entry in domains):
        raise _bad("domains must be an array of objects.")
    if not domains:
        raise _bad("domains is empty.")
    if len(domains) > max_domains:
        raise _bad(f"domains has {len(domains)} entries; at most {max_domains} are allowed.")
    return domains


def _decode(body: bytes) -> object:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise _bad("The body is not UTF-8.") from None
    except RecursionError:
        raise _bad("The body nests too deep.") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _bad(f"The body is not JSON: {place} cannot be read.") from None
    except ValueError:  # Python reads a number of up to 4,300 digits
        raise _bad("A number in the body has too many digits.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise _bad(f"The body is not JSON: {name} is no number there.")


def _bad(message: str) -> RequestRefused:
    return RequestRefused(description=message)


def _too_large(max_octets: int) -> falcon.HTTPContentTooLarge:
    return falcon.HTTPContentTooLarge(description=f"The body exceeds {max_octets} octets.")
