"""Accounts of this machine under another of its names: localhost, 127.0.0.1 or [::1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dkimctl.cli.output.streams import Reporter
    from dkimctl.ledger.ledger import Ledger


def warn_of_other_names(ledger: Ledger, base_url: str, client_id: str, reporter: Reporter) -> None:
    """Warn if the ledger has domains under another name, and none under that of `base_url`.

    They are different accounts, since servers may answer differently, but easily confused.
    """
    from dkimctl.text.grouping import counted
    from dkimctl.text.urls import other_loopback_urls

    urls = other_loopback_urls(base_url)
    if not urls or ledger.count_domains(base_url, client_id):
        return
    for url in urls:
        if count := ledger.count_domains(url, client_id):
            reporter.warn(
                f"the ledger has {counted(count, 'domain')} of {url}, and none of {base_url}, "
                "which is another account",
                hint=f"if you mean that one, use --base-url {url}",
            )
