"""Selectors from a template, for entries that have none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime

from dkimctl.dkim import MAX_NAME
from dkimctl.errors import UsageError, naming
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.names import key_name_length, parse_selector
from dkimctl.text.escaping import quoted

_DIRECTIVES = "YymdHMSjGV"  # of strftime: those that give only digits, on every platform
_PLACEHOLDER = "{domain}"
_HASH_LENGTH = 8  # hexadecimal digits
_HINT = (
    f"write a template such as s%Y%m; it may contain %{' %'.join(_DIRECTIVES)} for the date, and "
    f"{_PLACEHOLDER}"
)


class SelectorTemplate:
    """Text in which %Y and the like stand for `now`, and {domain} for a hash of the domain.

    Raises UsageError if it does not give a selector. `option` is where errors say it was written.
    """

    def __init__(self, template: str, now: datetime, *, option: str = "--assign-selector") -> None:
        self._option = option
        source = f"in {option}: {quoted(template)}"
        if not template:
            raise UsageError(f"in {option}: the template is empty", hint=_HINT)
        if not template.isascii():
            raise UsageError(f"{source} contains non-ASCII characters", hint=_HINT)
        if unknown := re.search(rf"%(?![{_DIRECTIVES}]).?", template):
            raise UsageError(f"{source} contains {quoted(unknown[0])}", hint=_HINT)
        if re.search(r"[{}]", template.replace(_PLACEHOLDER, "")):
            raise UsageError(f"{source} contains a brace outside {_PLACEHOLDER}", hint=_HINT)
        self._text = now.strftime(template)
        with naming(option):
            parse_selector(self.selector("example.com"))

    def check(self, specs: Iterable[DomainSpec]) -> None:
        """Raises UsageError that names the domains for which the selector is too long."""
        without_selector = (spec.sign_domain for spec in specs if spec.selector is None)
        too_long = [
            domain
            for domain in without_selector
            if key_name_length(domain, self.selector(domain)) > MAX_NAME
        ]
        if too_long:
            raise UsageError(
                f"in {self._option}: SELECTOR._domainkey.DOMAIN has more than {MAX_NAME} "
                f"octets for {', '.join(too_long)}",
                hint=f"a DNS name has at most {MAX_NAME} octets: use a shorter template",
            )

    def assign(self, spec: DomainSpec) -> DomainSpec:
        """`spec` with a selector."""
        return spec._replace(selector=self.selector(spec.sign_domain))

    def selector(self, sign_domain: str) -> str:
        digest = hashlib.sha256(sign_domain.encode("utf-8", "surrogatepass")).hexdigest()
        return self._text.replace(_PLACEHOLDER, digest[:_HASH_LENGTH])
