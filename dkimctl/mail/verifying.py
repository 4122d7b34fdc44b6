"""Verify one signature with one key, by dkimpy."""

from __future__ import annotations

from dkimctl.errors import UsageError
from dkimctl.mail.key_record import Key
from dkimctl.mail.message import Message
from dkimctl.mail.signature import Signature

_BODY_DIFFERS = "body hash mismatch"  # what dkimpy's message begins with


class NotVerifiable(Exception):
    """Nothing that is installed can verify such a signature. The text says why."""


def require_dkimpy() -> None:
    """Raise UsageError without dkimpy."""
    try:
        import dkim  # noqa: F401
    except ImportError:
        raise UsageError(
            "verifying mail needs dkimpy, which is not installed",
            hint="run `pip install 'dkimctl[mail]'`",
        ) from None


def mismatch(message: Message, signature: Signature, key: Key) -> str:
    """Why the signature is not valid with this key; "" if it is. Raises NotVerifiable.

    The signature has no fault.
    """
    import dkim

    verifier = dkim.DKIM()
    # Not through its own parser, which takes time with the square of a header's length.
    names = {name.encode("utf-8", "surrogateescape") for name in signature.signed_names}
    fields = [one for one in message.fields if one is signature.field or one.key in names]
    verifier.headers = [[field.name, field.value] for field in fields]
    verifier.body = message.squeezed_body if signature.has_relaxed_body else message.body
    signatures = [one for one in fields if one.key == signature.field.key]
    at = next(number for number, one in enumerate(signatures) if one is signature.field)
    try:
        is_valid = verifier.verify(at, dnsfunc=lambda name, timeout: key.value)
    except dkim.NaClNotFoundError:
        raise NotVerifiable("Ed25519 signatures need PyNaCl: `pip install pynacl`") from None
    except dkim.ValidationError as error:
        if str(error).startswith(_BODY_DIFFERS):
            return "the body was changed on its way: its hash differs (bh=)"
        return "malformed: dkimpy refuses its tags"
    except Exception:  # noqa: BLE001 - it raises other errors than its own at malformed data
        return "malformed: dkimpy cannot read it"
    if is_valid:
        return ""
    return "a signed header field was changed on its way, or another key has signed it"
