"""The items of a registration response (interface 2.4), with their codes (7.3)."""

from __future__ import annotations

from typing import Any

from dkimctl.service.registrations import Registration
from dkimctl.service.validation import Entry, Rejection

Item = dict[str, Any]


def created(registration: Registration) -> Item:
    return {"result": _result("201", "created"), **_registered_data(registration)}


def already_registered(registration: Registration, client_id: str) -> Item:
    """The registered data only if the client who asks is the one who registered it."""
    result = _result("409", "already registered")
    if registration.client_id == client_id:
        return {"result": result, **_registered_data(registration)}
    return {
        "result": result,
        "sign_domain": registration.sign_domain,
        "selector": registration.selector,
    }


def rejected(rejection: Rejection) -> Item:
    return {"result": _result("400", rejection.message), **_names(rejection)}


def failed(entry: Entry) -> Item:
    message = "unexpected error while registering; retry later"
    return {"result": _result("500", message), **_names(entry)}


def _result(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message}


def _names(entry: Entry | Rejection) -> dict[str, str]:
    names = {"sign_domain": entry.sign_domain, "selector": entry.selector}
    return {field: name for field, name in names.items() if name is not None}


def _registered_data(registration: Registration) -> Item:
    return {
        "sign_domain": registration.sign_domain,
        "selector": registration.selector,
        "key_len": registration.key_len,
        "start_date": registration.start_date,
        "default": registration.default,
        "enable": registration.enable,
        "setting_values": {
            "fqdn": f"{registration.selector}._domainkey.{registration.sign_domain}",
            "type": "TXT",
            "value": registration.value,
        },
        "regist_date": registration.regist_date,
    }
