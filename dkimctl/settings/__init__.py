"""Settings: which profile a command works with, and what it says.

Flag, then environment, then config file, then what `login` was told, then the default.
"""

from dkimctl.settings.config import Config, load_config
from dkimctl.settings.logins import LOGIN_KEYS, login_of, logins, logins_lock, write_logins
from dkimctl.settings.paths import config_path, data_dir, state_dir
from dkimctl.settings.profile import (
    DEFAULT_PROFILE,
    SANDBOX_CLIENT_ID,
    Profile,
    profiles_with,
    require_account,
    require_ledger_account,
    resolve_profile,
)

__all__ = [
    "DEFAULT_PROFILE",
    "LOGIN_KEYS",
    "SANDBOX_CLIENT_ID",
    "Config",
    "Profile",
    "config_path",
    "data_dir",
    "load_config",
    "login_of",
    "logins",
    "logins_lock",
    "profiles_with",
    "require_account",
    "require_ledger_account",
    "resolve_profile",
    "state_dir",
    "write_logins",
]
