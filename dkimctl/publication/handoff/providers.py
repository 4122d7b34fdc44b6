"""DNS providers: how each is recognized, and what its panel expects.

Only what is documented stands here, at the address in `source`. To add one, add an entry to
PROVIDERS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.text.escaping import quoted


class ValueForm(StrEnum):
    """How the value of a TXT record is entered."""

    WHOLE = "whole"  # in one piece, without quotes
    STRINGS = "strings"  # as quoted strings of at most 255 characters


class Trait(StrEnum):
    """What to know about a panel."""

    ADDS_ZONE = "adds_zone"  # to the host
    ADDS_QUOTES = "adds_quotes"  # around what is entered
    SPLITS = "splits"  # long values into strings
    PROXIES = "proxies"  # records of other types
    TEXT_MODE = "text_mode"  # takes strings, where its form is limited


class Provider(NamedTuple):
    """A provider; `hosts` is a pattern for the names of its servers.

    Without their names, the fields of its panel are not documented, or not in English. `limit` is
    that of a value, in characters; None: none is documented.
    """

    key: str
    name: str
    hosts: str
    source: str
    name_field: str = ""
    value_field: str = ""
    form: ValueForm = ValueForm.WHOLE
    limit: int | None = None
    traits: tuple[Trait, ...] = ()


PROVIDERS = (
    Provider(
        "azure",
        "Azure DNS",
        r"ns\d+-\d+\.azure-dns\.(com|net|org|info)",
        "https://learn.microsoft.com/azure/dns/dns-zones-records#txt-records",
        name_field="Name",
        value_field="Value",
        limit=4096,
        traits=(
            Trait.ADDS_ZONE,
            Trait.SPLITS,
        ),
    ),
    Provider(
        "cloudflare",
        "Cloudflare",
        r"[a-z0-9-]+\.ns\.cloudflare\.com",
        "https://developers.cloudflare.com/dns/manage-dns-records/reference/dns-record-types/#txt",
        name_field="Name",
        value_field="Content",
        limit=2048,
        traits=(Trait.ADDS_ZONE, Trait.ADDS_QUOTES, Trait.SPLITS, Trait.PROXIES),
    ),
    Provider(
        "dnsimple",
        "DNSimple",
        r"ns\d+\.dnsimple(-edge)?\.(com|net|org)",
        "https://support.dnsimple.com/articles/txt-record-format",
        limit=1000,
        traits=(Trait.ADDS_QUOTES,),
    ),
    Provider(
        "godaddy",
        "GoDaddy",
        r"[a-z0-9-]+\.domaincontrol\.com",
        "https://www.godaddy.com/help/add-a-txt-record-19232",
        name_field="Name",
        value_field="Value",
        limit=1024,
        traits=(Trait.ADDS_ZONE,),
    ),
    Provider(
        "google",
        "Google Cloud DNS",
        r"ns-cloud-[a-z]\d\.googledomains\.com",
        "https://www.mailhardener.com/blog/how-to-enter-txt-values-in-google-cloud-dns",
        name_field="DNS name",
        form=ValueForm.STRINGS,
        traits=(Trait.ADDS_ZONE,),
    ),
    Provider(
        "ionos",
        "IONOS",
        r"[a-z0-9-]+\.ui-dns\.(biz|com|de|org)",
        "https://www.ionos.de/hilfe/domains/mailserver-und-verwandte-records-konfigurieren/"
        "e-mail-authentifizierung-mit-dkim",
        name_field="Hostname",
        traits=(Trait.ADDS_ZONE,),
    ),
    Provider(
        "linode",
        "Akamai Cloud (Linode)",
        r"ns\d\.linode\.com",
        "https://www.linode.com/docs/products/networking/dns-manager/guides/txt-record/",
        name_field="Hostname",
        value_field="Value",
        traits=(Trait.ADDS_ZONE, Trait.ADDS_QUOTES, Trait.SPLITS),
    ),
    Provider(
        "namecheap",
        "Namecheap",
        r"[a-z0-9-]+\.registrar-servers\.com",
        "https://www.namecheap.com/support/knowledgebase/article.aspx/1340/2176/"
        "namecheap-private-email-records-for-domains-with-thirdparty-dns/",
        name_field="Host",
        value_field="Value",
        traits=(Trait.ADDS_ZONE,),
    ),
    Provider(
        "ovh",
        "OVHcloud",
        r"d?ns\d+\.ovh\.(ca|net)",
        "https://github.com/ovh/docs/blob/develop/pages/web_cloud/domains/dns_zone_edit/"
        "guide.en-gb.md",
        limit=255,
        traits=(Trait.TEXT_MODE,),
    ),
    Provider(
        "route53",
        "Amazon Route 53",
        r"ns-\d+\.awsdns-\d+\.(com|net|org|co\.uk)",
        "https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/"
        "ResourceRecordTypes.html#TXTFormat",
        name_field="Record name",
        value_field="Value",
        form=ValueForm.STRINGS,
        limit=4000,
        traits=(Trait.ADDS_ZONE,),
    ),
    Provider(
        "sakura",
        "Sakura Internet (さくらインターネット)",
        r"ns\d\.dns\.ne\.jp",
        "https://help.sakura.ad.jp/domain/2712/",
        limit=255,
    ),
)


def provider_of(hosts: Iterable[str]) -> Provider | None:
    """The provider of all these name servers (lower case, without trailing dot), if it is known."""
    names = list(hosts)
    for provider in PROVIDERS if names else ():
        if all(re.fullmatch(provider.hosts, name) for name in names):
            return provider
    return None


def provider_with(key: str) -> Provider:
    """The provider with this key. Raises UsageError."""
    for provider in PROVIDERS:
        if provider.key == key.lower():
            return provider
    raise UsageError(
        f"unknown provider {quoted(key)}",
        hint=f"write one of {', '.join(provider.key for provider in PROVIDERS)}; for others, leave "
        "it out",
    )
