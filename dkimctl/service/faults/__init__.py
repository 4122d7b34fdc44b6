"""Faults on purpose: a share of the registration requests goes wrong, so that clients learn
to cope. Requests for tokens and all others are answered as ever.
"""
