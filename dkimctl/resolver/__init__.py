"""DNS look-ups: many at the same time, each server asked with measure."""

from dkimctl.resolver.addresses import Address, parse_address, system_nameservers
from dkimctl.resolver.authorities import Authorities, Zone
from dkimctl.resolver.messages import (
    NOERROR,
    NXDOMAIN,
    TXT,
    Answer,
    Question,
    question,
    rcode_name,
    txt_question,
)
from dkimctl.resolver.recursor import Recursor
from dkimctl.resolver.server import NoAnswer, NoRoute, Server
from dkimctl.resolver.zones import find_zones

__all__ = [
    "NOERROR",
    "NXDOMAIN",
    "TXT",
    "Address",
    "Answer",
    "Authorities",
    "NoAnswer",
    "NoRoute",
    "Question",
    "Recursor",
    "Server",
    "Zone",
    "find_zones",
    "parse_address",
    "question",
    "rcode_name",
    "system_nameservers",
    "txt_question",
]
