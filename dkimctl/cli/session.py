"""What a command works with: its profile, and on demand credentials, client and ledger."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from dkimctl.cli import prompt
from dkimctl.cli.options import SHARED
from dkimctl.cli.output.named_commands import given_options, options_of
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import UsageError
from dkimctl.settings.config import Config, load_config
from dkimctl.settings.logins import read_logins, read_used_profile, stored_login
from dkimctl.settings.profile import (
    Profile,
    Settings,
    require_account,
    require_ledger_account,
    resolve_settings,
)
from dkimctl.system.directories import config_path, state_dir

if TYPE_CHECKING:
    from dkimctl.cli.embedded_service import Sandbox
    from dkimctl.client.client import Client
    from dkimctl.client.http import HttpClient
    from dkimctl.client.tokens import TokenProvider
    from dkimctl.credentials.account import Account
    from dkimctl.credentials.referenced import ReferencedSecrets
    from dkimctl.credentials.sources import StoreKind
    from dkimctl.credentials.store import CredentialStore
    from dkimctl.ledger.account_lock import Holder, Purpose
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.models.registration import DomainSpec
    from dkimctl.registration.limits import Limits
    from dkimctl.registration.retrying import Send

# Seconds to wait for a keyring, which may ask a user on a terminal to unlock it.
_KEYRING_TIMEOUT = 3.0
_INTERACTIVE_KEYRING_TIMEOUT = 60.0


class Session:
    """One run of a command. Everything is created on first use and closed at the end."""

    def __init__(self, flags: dict[str, Any], reporter: Reporter) -> None:
        self.flags = flags
        self.reporter = reporter
        self.reporter.command_options = given_options(flags, os.environ)
        self._resources = ExitStack()
        self._stores: dict[StoreKind, CredentialStore] = {}
        self._has_opened_ledger = False
        if self.reporter.verbose:
            from dkimctl.cli.output.request_log import log_requests

            log_requests()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @cached_property
    def state_dir(self) -> Path:
        return state_dir(os.environ)

    @property
    def ledger_file(self) -> Path:
        return self.state_dir / "ledger.db"

    @cached_property
    def config_file(self) -> Path:
        flag = self.flags["config"]
        if flag == "":
            raise UsageError("in --config: the file name is empty", hint="write --config FILE")
        return config_path(flag, os.environ)

    @cached_property
    def config(self) -> Config:
        required = bool(self.flags["config"] or os.environ.get("DKIMCTL_CONFIG"))
        return load_config(self.config_file, required=required)

    def set_flag(self, key: str, value: str) -> None:
        """Use `value` as if it were given as an option; call it before reading `settings`."""
        self.flags[key] = value

    @cached_property
    def settings(self) -> Settings:
        """The profile, with the source of each value."""
        return self.resolve_settings()

    @property
    def profile(self) -> Profile:
        return self.settings.profile

    def resolve_settings(self, *, may_be_new: bool = False) -> Settings:
        """The profile, combined from all sources. Raises UsageError for an unknown one."""
        settings = resolve_settings(
            flags=self.flags,
            environ=os.environ,
            config=self.config,
            config_file=str(self.config_file),
            logins=self.logins,
            used=lambda: read_used_profile(self.state_dir),
            may_be_new=may_be_new,
        )
        self.reporter.command_options = options_of(settings, self.flags)
        return settings

    @cached_property
    def logins(self) -> Mapping[str, Mapping[str, str]]:
        """The stored logins by profile name."""
        return read_logins(self.state_dir)

    @cached_property
    def account(self) -> Account:
        """The profile's account. Raises UsageError if a URL or the client ID is missing."""
        from dkimctl.credentials.account import Account

        return Account(*require_account(self.profile))

    @cached_property
    def stored_account(self) -> Account:
        """The account by which its credentials are looked up.

        Until the next login, its URLs are as an older version stored them, not canonical.
        """
        require_account(self.profile)
        return _account_of(stored_login(self.profile, self.logins))

    def delete_credentials(self, login: Mapping[str, Any]) -> None:
        """Delete the secret and token of a stored login."""
        self._open_store(login["credential_store"]).delete(_account_of(login))

    def has_credentials(self, login: Mapping[str, Any]) -> bool:
        """Whether a secret or token of a login is stored. Raises CredentialsError."""
        entries = self._open_store(login["credential_store"]).entries(_account_of(login))
        return any(text is not None for text in entries.values())

    @cached_property
    def credentials(self) -> CredentialStore:
        """Where this run reads the secret and token."""
        from dkimctl.credentials.sources import find_credentials

        return find_credentials(os.environ, self.stored_account, self.credential_store)

    @cached_property
    def credential_store(self) -> CredentialStore:
        """Where `login` stores the secret and token."""
        return self._open_store(self.profile.credential_store)

    def _open_store(self, kind: StoreKind) -> CredentialStore:
        from dkimctl.credentials.sources import open_store

        if kind not in self._stores:
            self._stores[kind] = open_store(
                kind, self.state_dir, seconds=_keyring_timeout(), notify=self._note
            )
        return self._stores[kind]

    @cached_property
    def secrets(self) -> ReferencedSecrets:
        """The secrets that the config file names; each is read when it is used."""
        from dkimctl.credentials.keyring_store import KeyringStore
        from dkimctl.credentials.referenced import ReferencedSecrets

        keyring = KeyringStore(seconds=_keyring_timeout(), notify=self._note)
        return ReferencedSecrets(os.environ, keyring)

    def _note(self, text: str) -> None:
        self.reporter.note(f"dkimctl: {text}")

    @cached_property
    def client(self) -> Client:
        from dkimctl.client.client import Client
        from dkimctl.models.secret import Secret

        client = Client(
            auth_url=self.account.auth_url, base_url=self.account.base_url, http=self._http()
        )
        if secret := os.environ.get("DKIMCTL_CLIENT_SECRET"):
            # Even if it is not sent, since a token is there.
            client.redact_credentials(self.account.client_id, Secret(secret))
        return self._resources.enter_context(client)

    @cached_property
    def token_provider(self) -> TokenProvider:
        from dkimctl.client.tokens import TokenProvider

        if self.profile.is_sandbox:
            return TokenProvider(issue=self._sandbox.issue_token)
        from dkimctl.cli.tokens import open_token_provider

        return open_token_provider(self)

    def at_end(self, callback: Callable[..., object], *args: Any, **options: Any) -> None:
        """Call `callback` when the session is closed."""
        self._resources.callback(callback, *args, **options)

    def connect(self) -> Send:
        """A function that sends a batch of entries to the service, from any thread."""
        # Created before there are threads, of which each would create its own.
        client, token_provider = self.client, self.token_provider
        return lambda batch: token_provider.call(lambda token: client.register(token, batch))

    @property
    def limits(self) -> Limits:
        """The limits of a registration run."""
        from dkimctl.registration.limits import Limits

        profile = self.profile
        return Limits(profile.batch_size, profile.concurrency, profile.max_wait, profile.timeout)

    def read_specs(self, *paths: str, domains: Sequence[str] = ()) -> list[DomainSpec]:
        """The entries of spec files, and then of `domains`, with the profile's defaults."""
        from dkimctl.specs.spec_file import read_specs

        warn = self.reporter.warn
        return read_specs(*paths, domains=domains, defaults=self.profile.defaults, warn=warn)

    def open_ledger(self, *, for_writing: bool) -> Ledger:
        """The ledger of the profile's account; opening it to read creates no file.

        The first time, warns if the user may mean another account.
        """
        from dkimctl.cli.loopback import warn_of_other_names
        from dkimctl.ledger.ledger import Ledger

        base_url, client_id = require_ledger_account(self.profile)
        open_ = Ledger.open if for_writing else Ledger.open_existing
        ledger = open_(self.ledger_file, base_url=base_url, client_id=client_id)
        self._resources.enter_context(ledger)
        if not self._has_opened_ledger:
            self._has_opened_ledger = True
            warn_of_other_names(ledger, base_url, client_id, self.reporter)
        return ledger

    @property
    def has_dns_targets(self) -> bool:
        """Whether the config file says how to change DNS for the profile."""
        return any(target.is_for(self.profile.name) for target in self.config.dns)

    def lock_account(self) -> AbstractContextManager[None]:
        """Wait until no other process registers for the profile's account, and lock it."""
        from dkimctl.ledger.account_lock import Purpose

        return self._lock(Purpose.REGISTER, "register")

    def lock_rotation(self) -> AbstractContextManager[None]:
        """Wait until no other `rotate run` of the profile's account is running, and lock it.

        For an hour at most: a timer would start one after the other behind a run that hangs.
        """
        from dkimctl.ledger.account_lock import Purpose

        return self._lock(Purpose.ROTATE, "rotate run", patience=3600)

    def lock_notices(self) -> AbstractContextManager[None]:
        """Wait until no other process sends notices of the profile's account, and lock it."""
        from dkimctl.ledger.account_lock import Purpose

        return self._lock(Purpose.NOTIFY, "notification")

    def _lock(
        self, purpose: Purpose, command: str, patience: float = math.inf
    ) -> AbstractContextManager[None]:
        from dkimctl.ledger.account_lock import account_lock

        def announce(holder: Holder) -> None:
            self.reporter.note(
                f"dkimctl: waiting for another {command} of this account to finish ({holder})"
            )

        base_url, client_id = require_ledger_account(self.profile)
        return account_lock(
            self.state_dir,
            base_url=base_url,
            client_id=client_id,
            on_wait=announce,
            purpose=purpose,
            patience=patience,
        )

    def _http(self) -> HttpClient:
        from dkimctl.client.http import HttpClient

        profile = self.profile
        if profile.is_sandbox:
            return HttpClient.in_process(self._sandbox.app)
        return HttpClient.over_network(
            timeout=profile.timeout, ca_bundle=profile.ca_bundle, proxy=profile.proxy
        )

    @cached_property
    def _sandbox(self) -> Sandbox:
        from dkimctl.cli.embedded_service import Sandbox

        return self._resources.enter_context(Sandbox())


def open_session(ctx: typer.Context) -> Session:
    """The session of a command, with the options that all commands share; it ends with `ctx`."""
    flags = {name: ctx.meta.get(name) for name in SHARED}
    return ctx.with_resource(Session(flags, ctx.obj))


def _keyring_timeout() -> float:
    return _INTERACTIVE_KEYRING_TIMEOUT if prompt.is_interactive() else _KEYRING_TIMEOUT


def _account_of(login: Mapping[str, Any]) -> Account:
    from dkimctl.credentials.account import Account

    return Account(login["auth_url"], login["base_url"], login["client_id"])
