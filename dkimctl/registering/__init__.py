"""Register entries in batches, many at a time, and lose nothing of what is answered.

The registrar plans, keeps the ledger and gives out results, all in one thread; others send
batches (dispatching) and meet it at the desk.
"""

from dkimctl.registering.registrar import Registrar
from dkimctl.registering.terms import Limits, Watcher

__all__ = ["Limits", "Registrar", "Watcher"]
