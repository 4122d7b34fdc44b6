"""Domain specs: from YAML to what is registered (interface 2.3), with line and column."""

from dkimctl.specs.advice import warnings
from dkimctl.specs.fields import parse_start_date, read_defaults
from dkimctl.specs.loading import load_specs, read_specs
from dkimctl.specs.names import key_name_length, parse_domain, parse_selector

__all__ = [
    "key_name_length",
    "load_specs",
    "parse_domain",
    "parse_selector",
    "parse_start_date",
    "read_defaults",
    "read_specs",
    "warnings",
]
