"""Validation of the entries of a registration request: interface 2.3."""

from __future__ import annotations

import pytest

from dkimctl.service.registrations import Entry, Rejection, validate_entry

DOMAIN_OF_232_OCTETS = ".".join(["d" * 57] * 4) + "d"
FIELDS = {
    "selector": "s1",
    "key_len": 2048,
    "start_date": "2021-07-01T00:00+09:00",
    "default": 0,
    "enable": True,
}


def _entry(**fields):
    return {"sign_domain": "example.com", **fields}


def _refusal(entry):
    result = validate_entry(entry)
    assert isinstance(result, Rejection)
    return result.message


@pytest.mark.interface("2.3", "mandatory")
def test_a_domain_alone_gets_the_defaults():
    assert validate_entry(_entry()) == Entry("example.com", None, 1024, None, 0, True)


@pytest.mark.interface("2.3", "enable")
def test_every_field_is_accepted():
    entry = _entry(**(FIELDS | {"default": 1, "enable": False}))
    assert validate_entry(entry) == Entry(
        "example.com", "s1", 2048, "2021-07-01T00:00+09:00", 1, False
    )


def test_names_are_converted_to_lower_case():
    result = validate_entry({"sign_domain": "Example.COM", "selector": "S1.Mail"})
    assert isinstance(result, Entry)
    assert (result.sign_domain, result.selector) == ("example.com", "s1.mail")


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    "domain",
    ["a.b", "mail.example.co.jp", "xn--r8jz45g.xn--zckzah", "1.2.3.com", "a--b.com",
     f"{'a' * 63}.com", DOMAIN_OF_232_OCTETS],
)  # fmt: skip
def test_a_domain_name_is_accepted(domain):
    assert isinstance(validate_entry(_entry(sign_domain=domain)), Entry)


@pytest.mark.interface("2.3", "sign_domain")
@pytest.mark.parametrize(
    "domain",
    [
        None,
        7,
        "",
        "com",
        "example.com.",
        "example..com",
        "-a.com",
        "a-.com",
        "_a.example.com",
        "*.example.com",
        "exämple.com",
        "example。com",
        "exam\u212ale.com",  # the Kelvin sign: a k in lower case
        "example.com\n",
        "exa mple.com",
        "192.0.2.1",
        f"{'a' * 64}.com",
        "\ud800.com",
    ],
)
def test_an_invalid_domain_name_is_refused(domain):
    assert _refusal(_entry(sign_domain=domain)).startswith("sign_domain must be")


@pytest.mark.interface("2.3", "mandatory")
def test_a_missing_domain_is_refused():
    assert _refusal({"selector": "s1"}).startswith("sign_domain must be")


@pytest.mark.interface("2.3", "selector")
@pytest.mark.parametrize("selector", ["s", "2026-01", "a.b.c", "s" * 63])
def test_a_selector_is_accepted(selector):
    assert isinstance(validate_entry(_entry(selector=selector)), Entry)


@pytest.mark.interface("2.3", "selector")
@pytest.mark.parametrize(
    "selector", [None, 20260101, "", ".", "a.", "a..b", "-a", "a_b", "12:30", "ä", "s" * 64]
)
def test_an_invalid_selector_is_refused(selector):
    assert _refusal(_entry(selector=selector)).startswith("selector must be")


def test_the_whole_name_has_at_most_253_octets():
    longest = "s" * (253 - len("._domainkey.") - len(DOMAIN_OF_232_OCTETS))
    entry = {"sign_domain": DOMAIN_OF_232_OCTETS, "selector": longest}
    assert isinstance(validate_entry(entry), Entry)
    assert "253" in _refusal({**entry, "selector": longest + "s"})


def test_the_whole_name_leaves_space_for_a_generated_selector():
    assert "253" in _refusal(_entry(sign_domain="d" + DOMAIN_OF_232_OCTETS))


@pytest.mark.interface("2.3", "key_len")
@pytest.mark.parametrize("key_len", [1024, 2048, 1024.0])
def test_a_key_length_is_accepted(key_len):
    result = validate_entry(_entry(key_len=key_len))
    assert isinstance(result, Entry)
    assert repr(result.key_len) == str(int(key_len))


@pytest.mark.interface("2.3", "key_len")
@pytest.mark.interface("8", "key-lengths")
@pytest.mark.parametrize("key_len", [None, "2048", True, 0, 512, 2047, 4096, -1024, [1024], 1e400])
def test_another_key_length_is_refused(key_len):
    assert _refusal(_entry(key_len=key_len)).startswith("key_len must be")


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    "start_date", ["2021-07-01T00:00+09:00", "2024-02-29T23:59-00:30", "0001-01-01T00:00+00:00"]
)
def test_a_start_date_is_kept_as_sent(start_date):
    result = validate_entry(_entry(start_date=start_date))
    assert isinstance(result, Entry)
    assert result.start_date == start_date


@pytest.mark.interface("2.3", "start_date")
@pytest.mark.parametrize(
    "start_date",
    [None, 20210701, "2021-07-01", "2021-07-01T00:00", "2021-07-01T00:00Z",
     "2021-07-01T00:00:00+09:00", "2021-07-01 00:00+09:00", "2021-07-01T00:00+0900",
     "2021-07-01T24:00+09:00", "2021-07-01T00:00+24:00", "2021-02-29T00:00+09:00",
     "0000-01-01T00:00+09:00", "2021-07-01T00:00+09:00\n", "\uff12021-07-01T00:00+09:00"],
)  # fmt: skip
def test_another_start_date_is_refused(start_date):
    assert _refusal(_entry(start_date=start_date)).startswith("start_date must be")


@pytest.mark.interface("2.3", "default-others")
@pytest.mark.parametrize("default", [0, 1, -1, 7.0, 2**63 - 1])
def test_default_is_any_whole_number(default):
    result = validate_entry(_entry(default=default))
    assert isinstance(result, Entry)
    assert repr(result.default) == str(int(default))


@pytest.mark.interface("2.3", "default-others")
@pytest.mark.parametrize("default", [None, "0", True, False, 0.5, 2**63, -(10**400), 1e400, [], {}])
def test_another_default_is_refused(default):
    assert _refusal(_entry(default=default)).startswith("default must be")


@pytest.mark.interface("2.3", "enable")
@pytest.mark.parametrize("enable", [None, 0, 1, "true", []])
def test_enable_is_a_boolean_only(enable):
    assert _refusal(_entry(enable=enable)).startswith("enable must be")


@pytest.mark.interface("7.3", "code-400")
def test_all_problems_are_reported_at_once():
    message = _refusal(dict.fromkeys(["sign_domain", *FIELDS]))
    assert [part.split()[0] for part in message.split("; ")] == ["sign_domain", *FIELDS]
