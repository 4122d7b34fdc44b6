"""Ask verifiers of mail about keys: opendkim-testkey and dkimpy, through this machine's resolver.

Run as a program, in a network of its own: standard input has a JSON list of [domain, selector,
file with the private key]; standard output gets a list with what each verifier says of each: ""
if it accepts, otherwise why not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dkim
import dns.exception

_THREADS = 16  # most of them wait for servers that do not answer
_MAIL = b"""From: sender@%(domain)s
To: someone@example.net
Subject: signed

The key of this signature is in DNS.
"""
# Without it, libunbound would ask the root servers of the real world.
_CONFIG = "Nameservers 127.0.0.1\n"


def ask_opendkim(domain: str, selector: str, key: str) -> str:
    command = ["opendkim-testkey", "-x", "testkey.conf", "-d", domain, "-s", selector, "-k", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or str(done.returncode)


def ask_dkimpy(domain: str, selector: str, key: str) -> str:
    mail = _MAIL % {b"domain": domain.encode()}
    dkim.fold = lambda header, *_, **__: header  # which would break long domains in two
    header = dkim.sign(mail, selector.encode(), domain.encode(), Path(key).read_bytes())
    try:
        return "" if dkim.DKIM(header + mail).verify() else "the signature is wrong"
    except (dkim.DKIMException, dns.exception.DNSException, ValueError) as error:
        return repr(error)


def main() -> None:
    Path("testkey.conf").write_text(_CONFIG)
    questions = json.load(sys.stdin)
    with ThreadPoolExecutor(_THREADS) as pool:
        opendkim = pool.map(ask_opendkim, *zip(*questions, strict=True))
        dkimpy = pool.map(ask_dkimpy, *zip(*questions, strict=True))
        json.dump(list(zip(opendkim, dkimpy, strict=True)), sys.stdout)


if __name__ == "__main__":
    main()
