"""What a command works with: its profile, and on demand credentials, client and ledger."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from dkimctl.addresses import other_loopback_urls
from dkimctl.cli import terminal
from dkimctl.cli.next_steps import given_options, options_of
from dkimctl.cli.report import Reporter, log_requests
from dkimctl.cli.sandbox import Sandbox
from dkimctl.cli.timers import installed_timer
from dkimctl.client.tokens import TokenProvider
from dkimctl.credentials import store
from dkimctl.credentials.keyring_store import KeyringStore, ReferencedSecrets
from dkimctl.credentials.store import Account, CredentialStore
from dkimctl.errors import ClientRefused, CredentialsError, UsageError
from dkimctl.files import config_path, state_dir
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Actor, Secret, Token
from dkimctl.settings import profile as profiles
from dkimctl.settings.config import Config, DnsTarget, load_config
from dkimctl.settings.values import CHECKS
from dkimctl.specs import spec_file
from dkimctl.specs.entries import Entries
from dkimctl.text import counted, printable

if TYPE_CHECKING:
    from dkimctl.client.client import Client
    from dkimctl.client.http import HttpClient
    from dkimctl.ledger.account_lock import Purpose
    from dkimctl.ledger.postgresql import Database
    from dkimctl.registration.limits import Limits
    from dkimctl.registration.retrying import Send


class Session:
    """One run of a command. Everything is created on first use and closed at the end."""

    def __init__(self, flags: dict[str, Any], reporter: Reporter, command: str = "") -> None:
        self.flags, self._command, self.reporter = flags, command, reporter
        self.reporter.command_options = given_options(flags, os.environ)
        self._resources, self._has_opened_ledger = ExitStack(), False
        if self.reporter.verbose:
            log_requests()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @cached_property
    def state_dir(self) -> Path:
        directory, by = state_dir(os.environ), os.environ.get("SUDO_USER", "root")
        is_root = sys.platform != "win32" and os.geteuid() == 0 and by != "root"
        if is_root and not (os.environ.get("DKIMCTL_STATE_DIR") or directory.exists()):
            text = f"with sudo, this is the state of root, and there is none yet: {directory}"
            self.reporter.warn(text, hint=f"to use the state of {by}, run it without sudo")
        return directory

    @property
    def ledger_file(self) -> Path:
        return self.state_dir / "ledger.db"

    @cached_property
    def ledger_place(self) -> Path | Database:
        """Where the profile's ledger is."""
        return self.find_ledger_place()

    def find_ledger_place(self, url: str | None = None) -> Path | Database:
        """The same, with a connection of its own, for a thread; or the database at `url`."""
        if (url := url or self.profile.ledger) is None:
            return self.ledger_file
        from dkimctl.ledger.postgresql import Database

        place = Database(url, self.actor)
        self._resources.callback(place.disconnect)
        return place

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

    @cached_property
    def logins(self) -> profiles.Logins:
        return profiles.read_logins(self.state_dir)[0]

    @property
    def sources(self) -> profiles.Sources:
        return profiles.Sources(
            self.flags, os.environ, self.config, str(self.config_file), self.logins, self.state_dir
        )

    @cached_property
    def settings(self) -> profiles.Settings:
        """The profile, with the source of each value. Raises UsageError for an unknown one."""
        return self.resolve_settings()

    @property
    def profile(self) -> profiles.Profile:
        return self.settings.profile

    def resolve_settings(self, *, may_be_new: bool = False) -> profiles.Settings:
        """The settings by the `flags` that there are now, perhaps of a new profile."""
        settings = profiles.resolve_settings(self.sources, may_be_new=may_be_new)
        self.reporter.command_options = options_of(settings, self.flags, self.config_file)
        return settings

    @cached_property
    def account(self) -> Account:
        """The profile's account. Raises UsageError if a URL or the client ID is missing."""
        return Account(*profiles.require_account(self.profile))

    @cached_property
    def stored_account(self) -> Account:
        """That of the credentials, whose URLs an older version may have stored not canonical."""
        profiles.require_account(self.profile)
        return _account_of(profiles.stored_login(self.profile, self.logins))

    def delete_credentials(self, login: profiles.Login) -> None:
        self._open_store(login["credential_store"]).delete(_account_of(login))

    def has_credentials(self, login: profiles.Login) -> bool:
        """Whether a secret or token of a login is stored. Raises CredentialsError."""
        entries = self._open_store(login["credential_store"]).entries(_account_of(login))
        return any(text is not None for text in entries.values())

    @cached_property
    def credentials(self) -> CredentialStore:
        """Where this run reads the secret and token."""
        return store.find_credentials(os.environ, self.stored_account, self.credential_store)

    @cached_property
    def credential_store(self) -> CredentialStore:
        """Where `login` stores the secret and token."""
        return self._open_store(self.profile.credential_store)

    def _open_store(self, kind: str) -> CredentialStore:
        if kind == "keyring":
            return self.keyring
        return store.FileStore(self.state_dir / "credentials.json")

    @cached_property
    def keyring(self) -> KeyringStore:
        """It may ask a user on a terminal to unlock it, which takes longer."""
        return KeyringStore(
            seconds=60 if terminal.is_interactive() else 3,
            notify=lambda text: self.reporter.note(f"dkimctl: {text}"),
        )

    @cached_property
    def secrets(self) -> ReferencedSecrets:
        """The secrets that the config file names; each is read when it is used."""
        return ReferencedSecrets(os.environ, self.keyring)

    @cached_property
    def client(self) -> Client:
        from dkimctl.client.client import Client
        from dkimctl.client.http import HttpClient

        account = self.account
        urls, is_sandbox = (account.auth_url, account.base_url), self.profile.is_sandbox
        http = HttpClient.in_process(self._sandbox.app) if is_sandbox else self.open_http(*urls)
        self._resources.enter_context(http)
        client = Client(auth_url=account.auth_url, base_url=account.base_url, http=http)
        if secret := os.environ.get("DKIMCTL_CLIENT_SECRET"):
            # Even if it is not sent, since a token is there.
            client.redact_credentials(account.client_id, Secret(secret))
        return client

    def open_http(self, *urls: str, longest: float = math.inf) -> HttpClient:
        """HTTP as the profile sets it; each step of a request takes `longest` seconds at most."""
        from dkimctl.client.http import HttpClient

        profile = self.profile
        shown, source = profiles.exported_proxy(os.environ) or ("", "")
        if profile.proxy:
            shown, source = profile.proxy, self.settings.sources["proxy"]
        return HttpClient.over_network(
            *urls, timeout=min(profile.timeout, longest), ca_bundle=profile.ca_bundle,
            proxy=profile.proxy, proxy_name=shown, proxy_source=source,
        )  # fmt: skip

    @cached_property
    def token_provider(self) -> TokenProvider:
        if self.profile.is_sandbox:
            return TokenProvider(issue=self._sandbox.issue_token)
        credentials, account = self.credentials, self.stored_account
        own_is_refused = False  # the one in DKIMCTL_ACCESS_TOKEN, which is the user's to remove

        def issue() -> Token:
            nonlocal own_is_refused
            # Only read when needed, because a keyring may be slow or ask to be unlocked.
            secret = credentials.get_secret(account)
            if secret is None:
                text = f"not logged in: the profile {self.profile.name} has no client secret"
                hint = "run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET; "
                raise CredentialsError(text, hint=f"{hint}--sandbox works without an account")
            client_id = self.account.client_id
            try:
                token = self.client.issue_token(client_id, secret)
            except ClientRefused as error:
                if credentials.secret_source(account) != store.IN_ENVIRONMENT:
                    raise
                # No login corrects it.
                refused = "the secret in DKIMCTL_CLIENT_SECRET"
                hint = f"set the variable to the secret of the client ID {client_id}, or unset it "
                hint += "and run `dkimctl login`"
                raise ClientRefused(error.detail, refused=refused, hint=hint) from None
            if own_is_refused:
                own_is_refused = False
                text = "the service refused the token in DKIMCTL_ACCESS_TOKEN (403), "
                hint = "unset the variable, or set it to a valid token"
                # At the end: this may be a worker thread, under the progress display.
                warn = self.reporter.warn
                self._resources.callback(warn, f"{text}so another one was obtained", hint=hint)
            return token

        def discard(token: Token) -> None:
            nonlocal own_is_refused
            credentials.discard_token(account, token)
            own_is_refused = token.obtained_at is None

        return TokenProvider(
            issue=issue, cached=credentials.get_token(account), discard=discard,
            persist=lambda token: credentials.set_token(account, token),
        )  # fmt: skip

    def connect(self) -> Send:
        """A function that sends a batch of entries to the service, from any thread."""
        # Created before there are threads, of which each would create its own.
        client, token_provider = self.client, self.token_provider
        return lambda batch: token_provider.call(lambda token: client.register(token, batch))

    @property
    def limits(self) -> Limits:
        from dkimctl.registration.limits import Limits

        profile = self.profile
        return Limits(profile.batch_size, profile.concurrency, profile.max_wait, profile.timeout)

    def read_specs(
        self, *paths: str, domains: Sequence[str] = (), stated: Mapping[str, object] | None = None
    ) -> Entries:
        return spec_file.read_specs(
            *paths, domains=domains, stated=stated,
            defaults=self.profile.defaults, warn=self.reporter.warn,
        )  # fmt: skip

    def open_ledger(self, *, for_writing: bool, place: Path | Database | None = None) -> Ledger:
        """The ledger of the profile's account, or another one; to read it creates no file.

        Warns, once, if it has domains of this machine under another of its names only: accounts at
        localhost, 127.0.0.1 and [::1] are different, but easily confused.
        """
        base_url, client_id = profiles.require_ledger_account(self.profile)
        account = {"base_url": base_url, "client_id": client_id}
        place = place or self.ledger_place
        if for_writing:
            ledger = Ledger.open(place, **account, clock=self._latest_time, actor=self.actor)
        else:
            ledger = Ledger.open_existing(place, **account)
        self._resources.enter_context(ledger)
        others = () if self._has_opened_ledger else other_loopback_urls(base_url)
        self._has_opened_ledger = True
        if others and not ledger.count_domains(base_url, client_id):
            for url in others:
                if count := ledger.count_domains(url, client_id):
                    text = f"the ledger has {counted(count, 'domain')} of {url}, and none of "
                    hint = f"if you mean that one, use --base-url {url}"
                    self.reporter.warn(f"{text}{base_url}, which is another account", hint=hint)
        return ledger

    @cached_property
    def actor(self) -> Actor:
        """The user, as the system or the environment names it, the machine, and the command."""
        import getpass  # for those that write alone
        import platform

        try:
            user = getpass.getuser()
        except (KeyError, ImportError, OSError):  # nobody by that number
            user = "unknown"
        texts = (user, platform.node() or "unknown", self._command)
        return Actor(*(printable(text)[:64] for text in texts))  # so that no event is long

    def _latest_time(self) -> float:
        """By our clock, or by the service's if that is an hour later, and has told so in this run.

        What a slow clock writes into the ledger would make keys retired too early.
        """
        client: Client | None = vars(self).get("client")
        ahead = client.offset if client else 0.0
        return time.time() + (ahead if ahead > 3600.0 else 0.0)

    @property
    def is_logged_in(self) -> bool:
        """As far as is known: a secret in a keyring is not looked for, but its login is."""
        if os.environ.get("DKIMCTL_CLIENT_SECRET") or os.environ.get("DKIMCTL_ACCESS_TOKEN"):
            return True
        if self.profile.credential_store == "file":
            try:
                entries = self.credential_store.entries(self.stored_account)
                return entries[store.Kind.SECRET] is not None
            except CredentialsError:  # `login` says what is wrong
                return False
        login = profiles.login_of(self.profile)
        return any(profiles.settings_of(stored) == login for stored in self.logins.values())

    @property
    def dns_targets(self) -> list[DnsTarget]:
        return [target for target in self.config.dns if target.is_for(self.profile.name)]

    @property
    def has_dns_targets(self) -> bool:
        return bool(self.dns_targets)

    @property
    def has_timer(self) -> bool:
        """Whether a timer runs `rotate run` for the profile, as far as this machine tells."""
        return bool(installed_timer(self.profile.name, self.state_dir))

    def lock_account(
        self, purpose: Purpose = "register", place: Path | Database | None = None
    ) -> AbstractContextManager[None]:
        """Wait until no other process does this for the profile's account, and lock it."""
        # `rotate run` waits an hour: a timer would start one after the other behind one that hangs.
        from dkimctl.ledger.account_lock import account_lock  # hashlib

        base_url, client_id = profiles.require_ledger_account(self.profile)
        what = {"rotate": "rotate run", "notify": "notification"}.get(purpose, purpose)
        place = place or self.ledger_place
        waiting = f"dkimctl: waiting for another {what} of this account to finish"
        lock: Callable[..., AbstractContextManager[None]]
        lock = partial(account_lock, place.parent) if isinstance(place, Path) else place.lock
        return lock(
            base_url=base_url, client_id=client_id, purpose=purpose,
            patience=3600 if purpose == "rotate" else math.inf,
            on_wait=lambda holder: self.reporter.note(f"{waiting} ({holder})"),
        )  # fmt: skip

    @cached_property
    def _sandbox(self) -> Sandbox:
        return self._resources.enter_context(closing(Sandbox()))


def open_session(ctx: typer.Context) -> Session:
    """The session of a command, with the options that all commands share; it ends with `ctx`."""
    names = (*CHECKS, "profile", "sandbox", "config", "color", "verbose", "quiet")
    flags = {name: ctx.meta.get(name) for name in names}
    return ctx.with_resource(Session(flags, ctx.obj, ctx.command_path.partition(" ")[2]))


def _account_of(login: profiles.Login) -> Account:
    return Account(login["auth_url"], login["base_url"], login["client_id"])
