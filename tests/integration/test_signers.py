"""Mail that opendkim and rspamd sign with exported keys."""

from __future__ import annotations

import contextlib

import pytest

from dns_servers import serving
from processes import ServeProcess
from published import APEX
from signers import eventually, group_options, running_opendkim, running_rspamd, safe_place

_OLD, _FUTURE = "2020-01-01T00:00+00:00", "2099-01-01T00:00+00:00"
_SIGNERS = {"opendkim": (running_opendkim, "opendkim"), "rspamd": (running_rspamd, "_rspamd")}


class Exporter:
    """The service, a client that registers, and the operator, who exports into `path`."""

    def __init__(self, service, account, kind, path, need):
        self._service, self._account, self._kind, self._need = service, account, kind, need
        self.path = path

    def register(self, *specs):
        text = "".join(f"- {{{spec}}}\n" for spec in specs)
        done = self._service.cli("register", "-", stdin=text, env=self._account)
        assert done.status == 0, done.err

    def zone(self):
        done = self._service.cli("show-dns", "--format", "zone", env=self._account)
        assert done.status == 0, done.err
        return APEX + done.out

    def export(self, date=None):
        cli = self._service.cli
        if date:
            cli.prefix = [self._need("faketime"), "-f", f"@{date} 00:00:00"]
        group = group_options(_SIGNERS[self._kind][1])
        words = ["export", "--format", self._kind, "--output-dir", self.path, *group]
        try:
            return self._service.operate(*words)
        finally:
            cli.prefix = []

    def operate(self, *words):
        self._service.operate("registration", *words)


@pytest.fixture(params=_SIGNERS)
def kind(request):
    return request.param


@pytest.fixture
def place():
    with safe_place() as place:
        yield place


@pytest.fixture
def exporter(cli, kind, needs_tool, place):
    cli.environment["DKIMCTL_SERVICE_PASSPHRASE"] = "the keys are encrypted in the database"
    service = ServeProcess(cli)
    try:
        yield Exporter(service, service.create_client(), kind, place / "export", needs_tool)
    finally:
        service.stop()


@contextlib.contextmanager
def signing(exporter, kind, needs_tool, place):
    exporter.export()
    with _SIGNERS[kind][0](needs_tool, place, exporter.path) as signer:
        yield signer


def test_mail_is_signed_with_the_keys_in_effect(exporter, kind, needs_tool, place, tmp_path):
    exporter.register(
        "sign_domain: one.example.com, selector: s1",
        f"sign_domain: rotated.example.com, selector: s1, start_date: {_OLD}",
        "sign_domain: rotated.example.com, selector: s2",
        f"sign_domain: rotated.example.com, selector: s3, start_date: {_FUTURE}",
        f"sign_domain: future.example.com, selector: s1, start_date: {_FUTURE}",
        "sign_domain: off.example.com, selector: s1, enable: false",
        "sign_domain: replaced.example.com, selector: s1",
    )
    (tmp_path / "zone").write_text(exporter.zone())
    with (
        serving("named", tmp_path / "zone", tmp_path, needs_tool) as dns,
        signing(exporter, kind, needs_tool, place) as signer,
    ):
        signed = {name: signer.sign(f"{name}.example.com") for name in ("one", "ONE", "rotated")}
        unsigned = [signer.sign(f"{name}.example.com") for name in ("future", "off", "x", "x.one")]
        assert {name: one and one.key for name, one in signed.items()} == {
            "one": "s1._domainkey.one.example.com",
            "ONE": "s1._domainkey.one.example.com",
            "rotated": "s2._domainkey.rotated.example.com",
        }
        assert all(one.verifies(dns.ask) for one in signed.values())
        assert unsigned == [None] * 4

        exporter.operate("disable", "one.example.com", "s1")
        exporter.operate("disable", "rotated.example.com", "s2")
        exporter.operate("enable", "off.example.com", "s1")
        exporter.operate("delete", "replaced.example.com", "s1", "--yes")
        exporter.export()
        signer.reload()
        off = eventually(signer, "off.example.com", "s1._domainkey.off.example.com")
        rotated = eventually(signer, "rotated.example.com", "s1._domainkey.rotated.example.com")
        assert off.verifies(dns.ask)
        assert rotated.verifies(dns.ask)
        assert signer.sign("one.example.com") is None
        assert signer.sign("replaced.example.com") is None

        exporter.export(date="2099-01-02")
        signer.reload()
        for name, selector in {"future": "s1", "rotated": "s3"}.items():
            key = f"{selector}._domainkey.{name}.example.com"
            assert eventually(signer, f"{name}.example.com", key).verifies(dns.ask)


def test_default_is_for_mail_of_domains_without_a_key(exporter, kind, needs_tool, place, tmp_path):
    exporter.register(
        "sign_domain: one.example.com, selector: s1",
        "sign_domain: us.example.com, selector: own",
        "sign_domain: us.example.com, selector: third, default: 1",
        "sign_domain: off.example.com, selector: s1, enable: false",
    )
    (tmp_path / "zone").write_text(exporter.zone())
    with (
        serving("named", tmp_path / "zone", tmp_path, needs_tool) as dns,
        signing(exporter, kind, needs_tool, place) as signer,
    ):
        keys = {
            "one.example.com": "s1._domainkey.one.example.com",
            "us.example.com": "own._domainkey.us.example.com",
            "customer.example": "third._domainkey.us.example.com",
            "off.example.com": "third._domainkey.us.example.com",
        }
        signed = {domain: signer.sign(domain) for domain in keys}
        assert {domain: one and one.key for domain, one in signed.items()} == keys
        assert all(one.verifies(dns.ask) for one in signed.values())

        exporter.operate("disable", "us.example.com", "third")
        exporter.export()
        signer.reload()
        assert eventually(signer, "customer.example", None) is None
        assert signer.sign("us.example.com").key == "own._domainkey.us.example.com"
