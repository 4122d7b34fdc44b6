"""The plain data that the other packages share.

Named tuples, here and elsewhere, since a frozen dataclass takes five times as long to define,
and this counts at every start of the program. For the same reason their modules do not use
`from __future__ import annotations`: its strings would be compiled again.
"""
