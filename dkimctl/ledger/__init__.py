"""What the service answered and what is in flight, per account, in one SQLite file."""

from dkimctl.ledger.intents import Intent, Pair
from dkimctl.ledger.ledger import Ledger

__all__ = ["Intent", "Ledger", "Pair"]
