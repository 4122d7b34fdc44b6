"""DNS look-ups: many at the same time, each server asked with measure."""

from dkimctl.resolver.addresses import Address, parse_address, system_nameservers
from dkimctl.resolver.authorities import Authorities, Zone
from dkimctl.resolver.messages import (
    NXDOMAIN,
    TXT,
    USEFUL,
    Answer,
    Question,
    question,
    rcode_name,
    txt_question,
)
from dkimctl.resolver.recursor import Recursor
from dkimctl.resolver.server import NoAnswer, NoRoute, Server, SilentHost
from dkimctl.resolver.zones import find_zones

__all__ = [
    "NXDOMAIN",
    "TXT",
    "USEFUL",
    "Address",
    "Answer",
    "Authorities",
    "NoAnswer",
    "NoRoute",
    "Question",
    "Recursor",
    "Server",
    "SilentHost",
    "Zone",
    "find_zones",
    "parse_address",
    "question",
    "rcode_name",
    "system_nameservers",
    "txt_question",
]
