"""Ask DNS whether what is published is what was registered."""

from dkimctl.checking.checker import Checker
from dkimctl.checking.rounds import watch
from dkimctl.checking.sources import Source, authoritative, given, recursive

__all__ = ["Checker", "Source", "authoritative", "given", "recursive", "watch"]
