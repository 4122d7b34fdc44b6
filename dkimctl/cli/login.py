"""`dkimctl login`: prove the client credentials once, and keep them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from dkimctl import settings
from dkimctl.cli.options import examples, with_session
from dkimctl.cli.session import Session
from dkimctl.errors import CredentialsError, UsageError
from dkimctl.models import Secret

app = typer.Typer(add_completion=False)

_MAX_SECRET = 65536  # bytes
_OVERRIDING = (
    "DKIMCTL_AUTH_URL",
    "DKIMCTL_BASE_URL",
    "DKIMCTL_CLIENT_ID",
    "DKIMCTL_CLIENT_SECRET",
    "DKIMCTL_ACCESS_TOKEN",
)
