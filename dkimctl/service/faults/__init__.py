"""Fault injection: a share of the registration requests fails on purpose, to test clients.

Token requests and all others are not affected.
"""
