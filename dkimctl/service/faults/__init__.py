"""Faults on purpose: a share of the registration requests goes wrong, so that clients learn
to cope. Requests for tokens and all others are answered as ever.
"""

from dkimctl.service.faults.middleware import Faults
from dkimctl.service.faults.plan import Plan
from dkimctl.service.faults.plan_file import read_plan

__all__ = ["Faults", "Plan", "read_plan"]
