"""What spreadsheets make of text: a date or number in place of what was typed."""

from __future__ import annotations

import re
from datetime import date, timedelta

from dkimctl.text.escaping import quoted

_FIRST_DAY = date(1899, 12, 30)  # number 0 in spreadsheets
_ERROR = r"#[A-Z0-9/]+[!?]?"
_EXPONENT = r"[0-9]+(?:[.,][0-9]+)?E[+-]?[0-9]+"
_DAY_NUMBER = r"([0-9]{5})(?:[.,][0-9]+)?"
_DATE = r"([0-9]{1,4})[/.]([0-9]{1,2})[/.]([0-9]{1,4})(?:\s.*)?"
_AS_TEXT = "format the column as text"


def changed_by_spreadsheet(field: str, text: str) -> tuple[str, str] | None:
    """What a spreadsheet did to a value that is invalid, and what to do; None: nothing known."""
    if re.fullmatch(_ERROR, text):
        return f"{quoted(text)} is the error of a formula", "correct it in the spreadsheet"
    if field == "start_date":
        return _changed_date(text)
    if re.fullmatch(_EXPONENT, text):
        what = f"{quoted(text)} is a number that the spreadsheet shortened"
        return what, f"{_AS_TEXT}, and type the {field} again"
    if re.fullmatch(_DATE, text):
        what = f"{quoted(text)} is a date that the spreadsheet made of it"
        return what, f"{_AS_TEXT}, and type the {field} again"
    return None


def _changed_date(text: str) -> tuple[str, str] | None:
    if number := re.fullmatch(_DAY_NUMBER, text):
        shown = _FIRST_DAY + timedelta(days=int(number[1]))
        what = f"{quoted(text)} is a date that the spreadsheet shows as a number of days"
        return what, f"{_AS_TEXT}, and write {shown}T00:00+09:00, with the offset of your time zone"
    if parts := re.fullmatch(_DATE, text):
        what = f"{quoted(text)} is a date in the spreadsheet's own format, without an offset"
        year, month, day = parts.groups()
        written = f"{year}-{month:0>2}-{day:0>2}" if len(year) == len("2027") else "2027-07-01"
        return what, f"{_AS_TEXT}, and write it as {written}T00:00+09:00, with your offset"
    return None
