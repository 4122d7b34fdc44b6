"""`rotate run`: everything that is due, one step after the other.

Each step looks at the ledger, the service or DNS before it acts, so a run can be killed anywhere.
"""
