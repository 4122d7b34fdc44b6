"""TXT values next to the registered one, with the verdict on each, and what verifiers say.

`verifies` is what OpenDKIM (opendkim-testkey 2.11) and dkimpy (1.1) say alike; where they
disagree, it is False. A record that both accept is `published` or `differs`, and any other is a
fault; `note` says why where that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dkimctl.dns.verdicts import ACCEPTED, Verdict

PUBLISHED, DIFFERS = Verdict.PUBLISHED, Verdict.DIFFERS
MISMATCH, MALFORMED = Verdict.MISMATCH, Verdict.MALFORMED
TRUNCATED, REVOKED = Verdict.TRUNCATED, Verdict.REVOKED


class KeyRecordCase(NamedTuple):
    """`write` makes the value from the registered one, which ends in its key of 2,048 bits.

    Control characters and non-ASCII text (as UTF-8) are part of it.
    """

    name: str
    write: Callable[[str], str]
    verdict: Verdict
    note: str = ""  # RFC section, where verifiers accept a fault

    @property
    def verifies(self) -> bool:
        """Whether both verifiers accept the record."""
        return self.verdict in ACCEPTED or bool(self.note)


SYNTAX = "RFC 6376 6.1.2: a key record with a syntax error must be ignored; strict decoders do"
CASE = "RFC 6376 3.2: values are case-sensitive, and 6.1.2: h= must have the hash of the signature"
HASH = "RFC 6376 6.1.2: h= must have the hash of the signature; only its verifier checks that"

# Behind p=, as "v=DKIM1; p=KEY; …".
_ADDED = {
    PUBLISHED: (
        "", " ", "\t", "g=*", "k=rsa", "s=*", "t=", "t=:", "n=", "n=note", "n=a b  c", "n=a=b",
        "n=a=3Bb", 'n="q"', "n=\\;", "x=1", "x=", "x=1;", "x_y=1", "xY9_=1", "X=1", "P=other",
        "V=DKIM2", "K=ed25519", "H=sha1", "S=other", "x=\\", f"n={'x' * 500}", f"n={'x' * 1500}",
    ),
    DIFFERS: (
        "h=sha256", "h=sha1:sha256", "h=sha256:sha1", "h= sha256 ", "h=sha256 : sha1",
        "h=sha512:sha256", "h=sha256:", "h=:sha256", "h=sha 256", "h=\tsha256",
        "s=email", "s= email", "s=email ;",
        "t=y", "t=s", "t=y:s", "t=s:y", "t=y :s", "t=y s", "t=Y", "t=z", "t=y;",
        "g=", "g=user", "g=*user", "g=*.user",
        "x-y=1", "x.y=1", "x!=1", 'x"=1', "x\\=1", "x-=1",
        "h=sha256; s=email; t=s", "t=y; x-y=1", "x-y=1; z-z=2",
    ),
    MISMATCH: (
        "h=", "h=*", "h=sha512", "h=sha512:md5",
        "s=", "s=tlsrpt", "s=other", "s=EMAIL", "s=email:tlsrpt", "s=tlsrpt:email", "s=*:email",
        "s=email : *", "s=other:email", "s=e mail", "s=*:", "s=email; h=", "t=y; s=other",
    ),
    MALFORMED: (
        "n=é", "n=\x07", "é=1", "n=\u200b",
        "1x=1", "_x=1", "-x=1", "x y=1", "x", "=1", ";", " ;", ";;x=1",
        "p=other", "v=DKIM1", "x=1; x=2", "n=1; n=1",
    ),
}  # fmt: skip

# Before p=.
_HEADS = {
    PUBLISHED: (
        "", "v=DKIM1; ", "v=DKIM1;", " v=DKIM1; ", "v= DKIM1 ;", "v =DKIM1;", "v\t=\tDKIM1\t;\t",
        "v=DKIM1;\r\n ", "v=DKIM1;\n", "V=DKIM1; ", "k=rsa; ", "v=DKIM1; k= rsa ; ",
        f"v=DKIM1; n={'x' * 560}; ", "v=DKIM1; n=a; k=rsa; ",
    ),
    DIFFERS: ("k=rsa; v=DKIM1; ", "n=1; v=DKIM1; ", "v=DKIM1; t=y; ", "v=DKIM1; x-y=1; "),
    MISMATCH: (
        "v=DKIM1; k=RSA; ", "v=DKIM1; k=; ", "v=DKIM1; k=r sa; ", "v=DKIM1; k=rsa-sha256; ",
        "v=DKIM1; k=ed25519; ", "v=DKIM1; k=dsa; ", "k=ecdsa; ", "v=DKIM1; k=\\rsa; ",
    ),
    MALFORMED: (
        "v=DKIM2; ", "v=dkim1; ", "v=; ", "v=DK IM1; ", "v=DKIM1 ", "v=DKIM1, ", 'v="DKIM1"; ',
        "v=DKIM1:1; ", "v=DKIM1.0; ", "n=1; v=DKIM2; ", "; v=DKIM1; ", ";", "v=DKIM1;; ",
        "v=DKIM1\\; ", '"v=DKIM1; ', "k=rsa; k=rsa; ", "v=spf1 -all; ", "v=DKIM1;\xa0", "x ",
        "v=DKIM1; x y=1; ", f"v=DKIM1; n={'x' * 1500}; ",
    ),
}  # fmt: skip


def _another(key: str) -> str:
    return f"{key[:60]}{'B' if key[60] != 'B' else 'C'}{key[61:]}"


# As the value of p=, from the registered one.
_KEYS: dict[Verdict, dict[str, Callable[[str], str]]] = {
    PUBLISHED: {
        "spaces around": lambda key: f" {key} ",
        "a space within": lambda key: f"{key[:50]} {key[50:]}",
        "a space between all characters": " ".join,
        "folded": lambda key: f"{key[:50]}\r\n {key[50:]}",
    },
    DIFFERS: {
        "padding of 2": lambda key: f"{key}==",
        "padding of 4": lambda key: f"{key} = = = =",
    },
    MISMATCH: {
        "another key": _another,
        "another key, with padding": lambda key: f"{_another(key)}==",
        "the same key with another exponent": lambda key: f"{key[:-1]}D",  # AQAB is 65,537
    },
    TRUNCATED: {
        "without its last character": lambda key: key[:-1],
        "without its last 100 characters": lambda key: key[:-100],
        "its first character": lambda key: key[:1],
    },
    REVOKED: {"no key": lambda key: "", "a space as key": lambda key: " "},
    MALFORMED: {
        "padding within": lambda key: f"{key[:52]}=={key[52:]}",
        "an equals sign within": lambda key: f"{key[:51]}={key[51:]}",
        "a plus sign more": lambda key: f"{key[:50]}+{key[50:]}",
        "two more characters": lambda key: f"{key}AA",
        "without its first 8 characters": lambda key: key[8:],
        "lower case": str.lower,
        "an accent within": lambda key: f"{key[:50]}é{key[50:]}",
        "a zero-width space within": lambda key: f"{key[:50]}\u200b{key[50:]}",
        "PEM": lambda key: f"-----BEGIN PUBLIC KEY-----{key}-----END PUBLIC KEY-----",
        "a bare RSAPublicKey": lambda key: key[32:],
    },
}

# Verifiers accept these, although RFC 6376 says that they must not.
_MUST_BE_REFUSED: dict[str, tuple[Callable[[str], str], Verdict, str]] = {
    "h=sha1": (lambda key: f"v=DKIM1; p={key}; h=sha1", MISMATCH, HASH),
    "h=SHA256": (lambda key: f"v=DKIM1; p={key}; h=SHA256", MISMATCH, CASE),
    "h=sha1:SHA256": (lambda key: f"v=DKIM1; h=sha1:SHA256; p={key}", MISMATCH, CASE),
    "a vertical tab": (lambda key: f"v=DKIM1;\x0bp={key}", MALFORMED, SYNTAX),
    "a form feed": (lambda key: f"v=DKIM1;\x0cp={key}", MALFORMED, SYNTAX),
    "a null character at the end": (lambda key: f"v=DKIM1; p={key}; n=\0", MALFORMED, SYNTAX),
    "quotation mark in the key": (
        lambda key: f'v=DKIM1; p={key[:50]}"{key[50:]}', MALFORMED, SYNTAX,
    ),
    "quoted key": (lambda key: f'v=DKIM1; p="{key}"', MALFORMED, SYNTAX),
    "split key": (lambda key: f'v=DKIM1; p={key[:200]}" "{key[200:]}', MALFORMED, SYNTAX),
    "backslash in the key": (lambda key: f"v=DKIM1; p={key[:50]}\\{key[50:]}", MALFORMED, SYNTAX),
    "dot after the key": (lambda key: f"v=DKIM1; p={key}.", MALFORMED, SYNTAX),
    "text after padding": (lambda key: f"v=DKIM1; p={key}==text", MALFORMED, SYNTAX),
}  # fmt: skip

# Whole values.
_VALUES: dict[Verdict, dict[str, Callable[[str], str]]] = {
    PUBLISHED: {
        "as registered": lambda value: value,
        "a semicolon at the end": lambda value: f"{value};",
        "a space before each semicolon": lambda value: value.replace("; ", " ; "),
        "without spaces": lambda value: value.replace(" ", ""),
    },
    TRUNCATED: {
        "without its key": lambda value: value.partition("p=")[0],
        "its first string": lambda value: value[:255],
    },
    MALFORMED: {
        "empty": lambda value: "",
        "blank": lambda value: "  ",
        "SPF": lambda value: "v=spf1 -all",
        "quoted": lambda value: f'"{value}"',
        "escaped": lambda value: value.replace(";", "\\;"),
        "doubly": lambda value: value * 2,
        "with its name": lambda value: f"s1._domainkey TXT {value}",
        "the key alone": lambda value: value.partition("p=")[2],
        "percent-encoded": lambda value: value.replace("=", "%3D"),
    },
    DIFFERS: {"p= first": lambda value: f"p={value.partition('p=')[2]}; v=DKIM1"},
}


def _key_of(value: str) -> str:
    return value.partition("p=")[2]


def _cases() -> list[KeyRecordCase]:
    cases = [
        KeyRecordCase(name, write, verdict)
        for verdict, writers in _VALUES.items()
        for name, write in writers.items()
    ]
    cases += [
        KeyRecordCase(
            f"{tags!r:.40} added", lambda value, tags=tags: f"v=DKIM1; p={_key_of(value)}; {tags}",
            verdict,
        )
        for verdict, added in _ADDED.items()
        for tags in added
    ]  # fmt: skip
    cases += [
        KeyRecordCase(
            f"{head!r:.40} before p=", lambda value, head=head: f"{head}p={_key_of(value)}", verdict
        )
        for verdict, heads in _HEADS.items()
        for head in heads
    ]
    cases += [
        KeyRecordCase(
            name, lambda value, write=write: f"v=DKIM1; k=rsa; p={write(_key_of(value))}", verdict
        )
        for verdict, writers in _KEYS.items()
        for name, write in writers.items()
    ]
    return cases + [
        KeyRecordCase(name, lambda value, write=write: write(_key_of(value)), verdict, note)
        for name, (write, verdict, note) in _MUST_BE_REFUSED.items()
    ]


CASES = _cases()
