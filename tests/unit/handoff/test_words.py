"""Both languages say everything, each in its own words."""

from __future__ import annotations

import re
import string
from datetime import datetime, timedelta, timezone

import pytest

from dkimctl.handoff.providers import read_yaml
from dkimctl.handoff.sheet import Language, Words

EN, JA = (
    {key: text for key, text in words.items() if isinstance(text, str)}
    for words in (read_yaml("texts/en.yaml"), read_yaml("texts/ja.yaml"))
)
ENGLISH, JAPANESE = Words(Language.ENGLISH), Words(Language.JAPANESE)
# Names and what is typed, which are the same in Japanese.
SAME = {"DNS", "TXT", "TTL", "DKIM", "CNAME", "Linux", "macOS", "Windows", "dkimctl", "xn",
        "_domainkey", "Change in text format"}  # fmt: skip


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts_with_the_same_data():
    assert EN.keys() == JA.keys()
    for key in EN.keys() - {"date", "time"}:  # which are tested below
        text = EN[key]
        assert fields(text) - {"count"} == fields(JA[key]) - {"count"}, key


@pytest.mark.parametrize("key", JA)
def test_japanese_has_no_english_left_in_it(key):
    text = re.sub(r"\{[^}]+\}", "", JA[key])
    for word in sorted(SAME, key=len, reverse=True):
        text = text.replace(word, "")
    assert not re.findall(r"[A-Za-z]+", text)


@pytest.mark.parametrize("texts", [EN, JA], ids=["en", "ja"])
def test_no_text_is_markup_itself(texts):
    assert not [text for text in texts.values() if re.search(r"[<>&`*\[\]|\\\n]", text)]


@pytest.mark.parametrize(
    ("offset", "in_english", "in_japanese"),
    [
        (9.0, "1 March 2027, 00:05 (UTC+09:00)", "2027年3月1日(月)0:05(日本時間)"),
        (-3.5, "1 March 2027, 00:05 (UTC-03:30)", "2027年3月1日(月)0:05(UTC-03:30)"),
        (0.0, "1 March 2027, 00:05 (UTC)", "2027年3月1日(月)0:05(UTC)"),
    ],
)
def test_times_are_as_people_write_them(offset, in_english, in_japanese):
    time = datetime(2027, 3, 1, 0, 5, tzinfo=timezone(timedelta(hours=offset)))
    assert (ENGLISH.time(time), JAPANESE.time(time)) == (in_english, in_japanese)


@pytest.mark.parametrize(
    ("seconds", "in_english", "in_japanese"),
    [(0, "0 seconds", "0秒"), (60, "60 seconds (1 minute)", "60秒(1分)"),
     (3600, "3600 seconds (1 hour)", "3600秒(1時間)"),
     (5400, "5400 seconds (90 minutes)", "5400秒(90分)"),
     (172800, "172800 seconds (2 days)", "172800秒(2日)")],
)  # fmt: skip
def test_a_ttl_is_in_seconds_and_in_a_larger_unit(seconds, in_english, in_japanese):
    assert (ENGLISH.duration(seconds), JAPANESE.duration(seconds)) == (in_english, in_japanese)
