"""The key that signs messages to a DNS server (TSIG, RFC 8945)."""

from typing import NamedTuple

from dkimctl.models.secret import Secret


class TsigKey(NamedTuple):
    """A TSIG key. `algorithm` is such as hmac-sha256; the secret is in base64, as in key files."""

    name: str
    algorithm: str
    secret: Secret
