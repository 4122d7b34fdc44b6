"""TXT values next to the registered one, with the verdict on each, and what verifiers say.

`verifies` is what dkimpy (1.1), OpenDKIM (2.11) and Mail::DKIM (1.20230212) say of a signed mail;
where they disagree, it is False. A record that all accept is `published` or `differs`, and any
other is a fault; `note` says why where that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote_plus

from dkimctl.dns.verdicts import ACCEPTED, Verdict

PUBLISHED, DIFFERS = Verdict.PUBLISHED, Verdict.DIFFERS
MISMATCH, MALFORMED = Verdict.MISMATCH, Verdict.MALFORMED
TRUNCATED, REVOKED = Verdict.TRUNCATED, Verdict.REVOKED


Write = Callable[[str], str]


class KeyRecordCase(NamedTuple):
    """`write` makes the value from the registered one, which ends in its key of 2,048 bits.

    Control characters and non-ASCII text (as UTF-8) are part of it.
    """

    name: str
    write: Write
    verdict: Verdict
    note: str = ""  # RFC section, where verifiers accept a fault, or one refuses what is none

    @property
    def verifies(self) -> bool:
        """Whether all verifiers accept the record."""
        return (self.verdict in ACCEPTED) is not bool(self.note)


_BY_TWO = "RFC 6376 3.6.1 and 3.2 let spaces be, and 6.1.2 has no g=; Mail::DKIM alone refuses it"
_END = "RFC 6376 6.1.2: a syntax error, on which OpenDKIM would stumble if the key came after it"
_BY_ONE = ("h=sha256 : sha1", "h=sha1: sha256", "h=sha 256", "g=", "g=*user", "padding of 4")
_NOTES = {"n=\0": _END} | dict.fromkeys(_BY_ONE, _BY_TWO)

# Behind p=, as "v=DKIM1; p=KEY; …".
_ADDED = {
    PUBLISHED: (
        "", "\t", "g=*", "s=*", "t=:", "n=", "n=a=3Bb", 'n="q"', "n=\\;", "x=", "x_y=1",
        "P=other", "V=DKIM2", "K=ed25519", "H=sha1", "S=other", f"n={'x' * 1500}",
    ),
    DIFFERS: (
        "h=sha1:sha256", "h=sha256 : sha1", "h=sha1: sha256", "h=sha1 :sha256",
        "h=sha256:", "h=sha 256", "s=email ;", "t=y :s", "t=Y",
        "t=z", "g=", "g=*user", "x-y=1", "x.y=1", 'x"=1', "x\\=1", "t=y; x-y=1; z-z=2",
        "\x0b", "n=a\x0cb", "\x0bs=\x0b*\x0b",
    ),
    MISMATCH: (
        "h=", "h=*", "h=sha512:md5", "s=", "s=tlsrpt", "s=EMAIL", "s=email:tlsrpt", "s=*:email",
        "s=e mail", "s=*:", "t=y; s=other", "h=sha1", "h=SHA256", "s=em\x0bail",
    ),
    MALFORMED: (
        "n=é", "n=\x07", "n=\0",
        "\x1c", "\x85", "x\x0by=1", "1x=1", "_x=1", "-x=1", "x y=1", "x", "=1", ";", ";;x=1",
        "p=other", "v=DKIM1", "x=1; x=2",
    ),
}  # fmt: skip

# Before p=.
_HEADS = {
    PUBLISHED: (
        "", "v=DKIM1;", "v\t=\tDKIM1\t;\t", "v=DKIM1;\r\n ", "V=DKIM1; ", "k=rsa; ",
        f"v=DKIM1; n={'x' * 560}; ",
    ),
    DIFFERS: ("k=rsa; v=DKIM1; ", "v=DKIM1; t=y; "),
    MISMATCH: (
        "v=DKIM1; k=RSA; ", "v=DKIM1; k=; ", "v=DKIM1; k=r sa; ", "v=DKIM1; k=ed25519; ",
        "k=\\rsa; ",
    ),
    MALFORMED: (
        "v=DKIM2; ", "v=dkim1; ", "v=; ", "v=DK IM1; ", "v=DKIM1 ", 'v="DKIM1"; ', "v=DKIM1.0; ",
        "n=1; v=DKIM2; ", "; v=DKIM1; ", "v=DKIM1\\; ", '"v=DKIM1; ', "k=rsa; k=rsa; ",
        "v=spf1 -all; ", "v=DKIM1;\xa0", f"v=DKIM1; n={'x' * 1500}; ",
    ),
}  # fmt: skip


def _another(key: str) -> str:
    return f"{key[:60]}{'B' if key[60] != 'B' else 'C'}{key[61:]}"


def _key_of(value: str) -> str:
    return value.partition("p=")[2]


# As the value of p=, from the registered one.
_KEYS: dict[str, tuple[Verdict, Write]] = {
    "spaces around": (PUBLISHED, lambda key: f" {key} "),
    "a space between all characters": (PUBLISHED, " ".join),
    "folded": (PUBLISHED, lambda key: f"{key[:50]}\r\n {key[50:]}"),
    "bytes after it": (DIFFERS, lambda key: f"{key}AA=="),
    "3 bytes after it": (DIFFERS, lambda key: f"{key}AAAA"),
    "quoted": (DIFFERS, lambda key: f'"{key}"'),
    "quoted in parts": (DIFFERS, lambda key: f'"{key[:200]}" "{key[200:]}"'),
    "with vertical tabs around": (DIFFERS, lambda key: f"\x0b{key}\x0c"),
    "padding of 4": (DIFFERS, lambda key: f"{key} = = = ="),
    "another key": (MISMATCH, _another),
    "another key, with padding": (MISMATCH, lambda key: f"{_another(key)}=="),
    "the same key with another exponent": (MISMATCH, lambda key: f"{key[:-1]}D"),
    "without its last character": (TRUNCATED, lambda key: key[:-1]),
    "its first character": (TRUNCATED, lambda key: key[:1]),
    "no key": (REVOKED, lambda key: ""),
    "a space as key": (REVOKED, lambda key: " "),
    "an equals sign within": (MALFORMED, lambda key: f"{key[:51]}={key[51:]}"),
    "two more characters": (MALFORMED, lambda key: f"{key}AA"),
    "without its first 8 characters": (MALFORMED, lambda key: key[8:]),
    "lower case": (MALFORMED, str.lower),
    "upper case": (MALFORMED, str.upper),
    "without its plus signs": (MALFORMED, lambda key: key.replace("+", " ")),
    "as in a URL": (MALFORMED, quote_plus),
    "for a URL": (MALFORMED, lambda key: key.replace("+", "-").replace("/", "_")),
    "with a vertical tab within": (MALFORMED, lambda key: f"{key[:50]}\x0b{key[50:]}"),
    "with a backslash": (MALFORMED, lambda key: f"{key[:50]}\\{key[50:]}"),
    "with a dot after it": (MALFORMED, lambda key: f"{key}."),
    "with text after padding": (MALFORMED, lambda key: f"{key}==text"),
    "a zero-width space within": (MALFORMED, lambda key: f"{key[:50]}\u200b{key[50:]}"),
    "PEM": (MALFORMED, lambda key: f"-----BEGIN PUBLIC KEY-----{key}-----END PUBLIC KEY-----"),
    "a bare RSAPublicKey": (MALFORMED, lambda key: key[32:]),
}

# Whole values.
_VALUES: dict[str, tuple[Verdict, Write]] = {
    "as registered": (PUBLISHED, lambda value: value),
    "a semicolon at the end": (PUBLISHED, lambda value: f"{value};"),
    "without spaces": (PUBLISHED, lambda value: value.replace(" ", "")),
    "p= first": (DIFFERS, lambda value: f"p={_key_of(value)}; v=DKIM1"),
    "without its key": (TRUNCATED, lambda value: value.partition("p=")[0]),
    "its first string": (TRUNCATED, lambda value: value[:255]),
    "empty": (MALFORMED, lambda value: ""),
    "blank": (MALFORMED, lambda value: "  "),
    "SPF": (MALFORMED, lambda value: "v=spf1 -all"),
    "quoted": (MALFORMED, lambda value: f'"{value}"'),
    "escaped": (MALFORMED, lambda value: value.replace(";", "\\;")),
    "doubly": (MALFORMED, lambda value: value * 2),
    "with its name": (MALFORMED, lambda value: f"s1._domainkey TXT {value}"),
    "the key alone": (MALFORMED, _key_of),
    "all in lower case": (MALFORMED, str.lower),
    "tags in upper case": (MALFORMED, lambda value: f"V=DKIM1; K=RSA; P={_key_of(value)}"),
}


def _cases() -> Iterator[KeyRecordCase]:
    for name, (verdict, write) in _VALUES.items():
        yield KeyRecordCase(name, write, verdict)
    for forms, text, name in (
        (_ADDED, "v=DKIM1; p={key}; {tags}", "added"),
        (_HEADS, "{tags}p={key}", "before p="),
    ):
        for verdict, each in forms.items():
            for tags in each:
                yield KeyRecordCase(
                    f"{tags!r:.40} {name}",
                    lambda value, text=text, tags=tags: text.format(key=_key_of(value), tags=tags),
                    verdict, _NOTES.get(tags, ""),
                )  # fmt: skip
    for name, (verdict, write) in _KEYS.items():
        yield KeyRecordCase(
            name, lambda value, write=write: f"v=DKIM1; k=rsa; p={write(_key_of(value))}", verdict,
            _NOTES.get(name, ""),
        )  # fmt: skip


CASES = list(_cases())
