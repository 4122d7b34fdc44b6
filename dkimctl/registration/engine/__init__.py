"""Register entries in batches, many at a time, and lose nothing of what is answered.

The registrar plans, keeps the ledger and gives out results, all in one thread; others send
batches (dispatching) and meet it at the desk.
"""
