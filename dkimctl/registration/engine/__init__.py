"""Register entries in batches, many at a time, and lose nothing that the service answers.

The engine plans, writes the ledger and pushes results, all in one thread; worker threads send
batches and report over a channel.
"""
