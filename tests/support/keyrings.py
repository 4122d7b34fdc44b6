"""Modules with keyring backends, which tests write beside a command and name to it."""

from __future__ import annotations

FILE_KEYRING = """
import json, pathlib
from keyring.backend import KeyringBackend

path = pathlib.Path.cwd() / "keyring.json"

class Keyring(KeyringBackend):
    priority = 1

    def _load(self):
        return json.loads(path.read_text()) if path.exists() else {}

    def _store(self, entries):
        path.write_text(json.dumps(entries))

    def get_password(self, service, username):
        return self._load().get(service)

    def delete_password(self, service, username):
        self._store({key: text for key, text in self._load().items() if key != service})

    def set_password(self, service, username, password):
        self._store(self._load() | {service: password})
"""
# Never answers, in a thread of a pool, for which Python waits at its exit.
HUNG_KEYRING = """
import time
from concurrent.futures import ThreadPoolExecutor
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        return ThreadPoolExecutor().submit(time.sleep, 60).result()

    set_password = delete_password = get_password
"""
