"""Measure what the response time reveals about a client ID: unknown, wrong secret, deleted,
with a previous secret that is still valid.

    python tests/bench/guessing.py [REQUESTS]

Sends REQUESTS (20,000) of each kind in turn over one connection to a service on loopback, each as
if from another address, so that none is slowed down after failed logins. Prints
the median of each, and the share of pairs in which it took longer than a wrong secret: 50 % means
no difference, and values within the band cannot be distinguished from it.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from pathlib import Path

FORM = b"grant_type=client_credentials"
WRONG = "wrong secret"


def main(requests: int) -> None:
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as (port, data):
        kinds = {
            WRONG: "client1",
            "deleted client": "client2",
            "two secrets": "client3",
            "unknown client": "client4",
        }
        for client in ("client1", "client2", "client3"):
            operate("create", client, "--data", data)
        operate("delete", "client2", "--data", data)
        operate("rotate-secret", "client3", "--data", data)
        times = measure(port, kinds, requests)
    band = 1.96 * (1 / (6 * requests)) ** 0.5
    for kind, taken in times.items():
        share = share_longer(taken, times[WRONG])
        print(f"{kind:14} median {1e6 * statistics.median(taken):6.1f} us, longer in {share:.2%}")
    print(f"band: {0.5 - band:.2%} to {0.5 + band:.2%}")


def measure(port: int, kinds: dict[str, str], requests: int) -> dict[str, list[float]]:
    """Seconds of each response, by kind."""
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for round_ in range(requests + 100):
            address = str(ipaddress.IPv4Address("10.0.0.0") + round_)
            for kind, client in kinds.items():
                taken = ask(connection, client, address)
                if round_ >= 100:  # earlier ones warm up
                    times[kind].append(taken)
    return times


def ask(connection: http.client.HTTPConnection, client: str, address: str) -> float:
    basic = base64.b64encode(f"{client}:a secret that is wrong".encode()).decode()
    headers = {
        "Authorization": f"Basic {basic}",
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Forwarded-For": address,
    }
    started = time.perf_counter()
    connection.request("POST", "/oauth2/token", FORM, headers)
    answer = connection.getresponse()
    body = answer.read()
    taken = time.perf_counter() - started
    assert (answer.status, body) == (400, b'{"error": "invalid_client"}')
    return taken


def share_longer(taken: list[float], others: list[float]) -> float:
    """The share of pairs in which the value from `taken` is larger (Mann-Whitney U)."""
    ordered = sorted(others)
    return sum(bisect_left(ordered, one) for one in taken) / (len(taken) * len(ordered))


@contextlib.contextmanager
def serving(home: Path):
    data, log = str(home / "service.db"), home / "serve.log"
    words = [sys.executable, "-m", "dkimctl", "serve", "--port", "0", "--data", data]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*words, "--trusted-proxy", "127.0.0.1"], stderr=stderr)
    with process:
        try:
            while "then log in" not in (announced := log.read_text()):
                time.sleep(0.05)
            yield int(announced.split("http://127.0.0.1:")[1].split()[0]), data
        finally:
            process.terminate()


def operate(*words: str) -> None:
    command = [sys.executable, "-m", "dkimctl", "service", "client", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
