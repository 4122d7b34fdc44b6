"""The provider is told by the names of a zone's servers."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.handoff.providers import provider_of, provider_with, providers

SERVERS = {
    "azure": ["ns1-03.azure-dns.com", "ns2-03.azure-dns.net", "ns4-03.azure-dns.info"],
    "cloudflare": ["ada.ns.cloudflare.com", "bob.ns.cloudflare.com"],
    "dnsimple": ["ns1.dnsimple.com", "ns2.dnsimple-edge.net", "ns4.dnsimple-edge.org"],
    "godaddy": ["ns07.domaincontrol.com", "ns08.domaincontrol.com"],
    "google": ["ns-cloud-b1.googledomains.com", "ns-cloud-b2.googledomains.com"],
    "ionos": ["ns1045.ui-dns.de", "ns1111.ui-dns.org", "ns1068.ui-dns.biz"],
    "linode": ["ns1.linode.com", "ns5.linode.com"],
    "namecheap": ["dns1.registrar-servers.com", "dns2.registrar-servers.com"],
    "ovh": ["dns19.ovh.net", "ns19.ovh.net"],
    "route53": ["ns-155.awsdns-22.com", "ns-1536.awsdns-08.co.uk", "ns-1352.awsdns-29.org"],
    "sakura": ["ns1.dns.ne.jp", "ns2.dns.ne.jp"],
}


def test_every_provider_is_tested():
    assert [provider.key for provider in providers()] == sorted(SERVERS)


@pytest.mark.parametrize("key", SERVERS)
def test_a_provider_is_told_by_its_name_servers(key):
    assert provider_of(SERVERS[key]) is provider_with(key)
    assert provider_with(key.upper()).key == key


@pytest.mark.parametrize(
    "names",
    [[], ["ns1.example.com"], ["ada.ns.cloudflare.com", "ns1.example.com"],
     ["ada.ns.cloudflare.com.example.com"], ["ada.ns.cloudflare.com\n"], ["xns1.dns.ne.jp"],
     ["nsxdns.ne.jp"]],
)  # fmt: skip
def test_other_servers_tell_nothing(names):
    assert provider_of(names) is None


def test_an_unknown_provider_is_a_usage_error():
    with pytest.raises(UsageError) as caught:
        provider_with("acme\x1b")
    assert caught.value.message == r'unknown provider "acme\x1b"'
    assert "cloudflare" in caught.value.hint
