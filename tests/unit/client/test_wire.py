"""What is read from responses, and from results that were saved."""

from __future__ import annotations

import json

import pytest

from dkimctl.client.wire import DecodeError, decode_reply


def item(**fields) -> dict[str, object]:
    return {"result": {"code": "201"}, "sign_domain": "example.com", "selector": "s1", **fields}


def body(*items: object, **fields) -> bytes:
    return json.dumps({"items": items, **fields}).encode()


def read(**fields):
    """The one registration of a response."""
    reply = decode_reply(body(item(**fields)))
    assert reply.faults == ()
    return reply.items[0]


class TestSaved:
    def test_it_may_have_more_items_than_any_response(self):
        """A ledger may hold 100,000; of a response, as many are an attack."""
        items = body(*[item()] * 10_001)
        assert len(decode_reply(items, is_saved=True).items) == 10_001
        with pytest.raises(DecodeError, match="far more than were requested"):
            decode_reply(items)
        assert len(decode_reply(body(*[item()] * 10_000)).items) == 10_000

    def test_only_it_may_have_items_without_a_result(self):
        unanswered = body(item(result=None), item())
        saved, response = decode_reply(unanswered, is_saved=True), decode_reply(unanswered)
        assert [one.code for one in saved.items] == [None, "201"]
        assert [one.code for one in response.items] == ["201"]
        assert "`$.items[0].result`" in response.faults[0]

    def test_only_items_that_were_retired_are(self):
        items = body(item(outcome="retired"), item(outcome="created", selector="s2"), item())
        reply = decode_reply(items, is_saved=True)
        assert reply.retired == {reply.items[0]}
        assert decode_reply(items).retired == set()

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
    def test_it_may_be_as_windows_shells_write_it(self, encoding):
        data = body(item()).decode().encode(encoding)
        assert len(decode_reply(data, is_saved=True).items) == 1
        if encoding != "utf-8-sig":  # no secret would have been redacted in it
            with pytest.raises(DecodeError):
                decode_reply(data)


@pytest.mark.parametrize(
    ("fqdn", "selector"),
    [("S1._DomainKey.Example.com", "S1"), ("a.b._domainkey.example.com", "a.b"),
     ("_domainkey.example.com", None), ("s1._domainkey.example.net", None)],
)  # fmt: skip
def test_a_selector_that_is_left_out_is_read_from_the_name(fqdn, selector):
    values = {"fqdn": fqdn, "type": "TXT", "value": "v"}
    assert read(selector=None, setting_values=values).selector == selector


@pytest.mark.parametrize(("number", "key_len"), [(1024, 1024), (1024.0, 1024), (2**53, 2**53)])
def test_a_number_may_be_written_with_a_fraction_of_zero(number, key_len):
    registration = read(key_len=number)
    assert (registration.key_len, type(registration.key_len)) == (key_len, int)


@pytest.mark.parametrize("number", [1024.5, 2**53 + 1, -(2**53) - 1, 1e300])
def test_a_number_that_is_no_length_spoils_its_item_alone(number):
    reply = decode_reply(body(item(key_len=number), item()))
    assert len(reply.items) == len(reply.faults) == 1


def test_a_saved_result_of_which_hardly_anything_can_be_read_is_refused():
    body = json.dumps({"items": [1] * 1_001}).encode()
    assert len(decode_reply(body).faults) == 1_001
    with pytest.raises(DecodeError, match=r"more than 1,000 items.* at `\$.items\[0\]`"):
        decode_reply(body, is_saved=True)
    assert len(decode_reply(body.replace(b"1, ", b"", 1), is_saved=True).faults) == 1_000


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("fields", [{"x": "\ud800"}, {"selector": "\udfff"}])
def test_an_item_with_half_a_surrogate_pair_affects_no_other(fields, is_saved):
    reply = decode_reply(body(item(), item(sign_domain="b.example", **fields)), is_saved=is_saved)
    assert [registration.sign_domain for registration in reply.items] == [
        "example.com",
        "b.example",
    ]
