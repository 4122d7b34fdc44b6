"""The plain data that the other packages share.

Named tuples, here and elsewhere: a frozen dataclass takes five times as long to define, which
every start of the program would pay for. For the same reason the modules of named tuples do
without `from __future__ import annotations`, whose strings are compiled again.
"""
