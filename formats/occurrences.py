"""Finds the occurrences of a string value in a text: the string itself, or the written forms of a
date.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from unicodedata import normalize

from formats.splitting import Span

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DATE = re.compile(
    r"(?P<year>\d{4}|XXXX)(?:-(?P<month>\d\d|XX)(?:-(?P<day>\d\d|XX))?)?", re.IGNORECASE
)
_SPACE = re.compile(r"\s+")

Patterns = tuple[re.Pattern[str], ...]


def find_occurrences(text: str, value: str, within: Iterable[Span], is_date: bool) -> list[Span]:
    """Return the sorted spans of the value inside the given spans of the text.

    The exact string is preferred to its variants (another case; the written forms of a normalised
    date, the fullest form first): all spans are of the first variant that occurs.
    """
    within = list(within)
    if found := _find_all(text, value, within):
        return found
    patterns = _date_patterns(value) if is_date else ()
    for pattern in (*patterns, *_string_patterns(value)):
        if found := _find_pattern(text, pattern, within):
            return found
    return []


def is_same_text(text: str, gloss: str) -> bool:
    """Return whether the two are equal in Unicode's composed form, with each run of white space as
    one blank.
    """
    if text == gloss:
        return True
    return _normalize_spaces(text) == _normalize_spaces(gloss)


def _normalize_spaces(text: str) -> str:
    return _SPACE.sub(" ", normalize("NFC", text))


def _find_all(text: str, value: str, within: Sequence[Span]) -> list[Span]:
    """Return the whole-word occurrences of exactly this string."""
    spans = set()
    size = len(value)
    for begin, end in within:
        at = text.find(value, begin, end)
        while at >= 0 and size:
            if _is_whole_words(text, at, at + size):
                spans.add((at, at + size))
            at = text.find(value, at + 1, end)
    return sorted(spans)


def _is_whole_words(text: str, begin: int, end: int) -> bool:
    """Return whether the span does not begin or end inside a word."""
    inside_begin = begin > 0 and text[begin - 1].isalnum() and text[begin].isalnum()
    inside_end = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not inside_begin and not inside_end


def _find_pattern(text: str, pattern: re.Pattern[str], within: Sequence[Span]) -> list[Span]:
    spans = {match.span() for begin, end in within for match in pattern.finditer(text, begin, end)}
    return sorted(span for span in spans if span[0] < span[1] and _is_whole_words(text, *span))


@lru_cache(maxsize=4096)
def _string_patterns(value: str) -> Patterns:
    """Return patterns for the value, composed or decomposed, with any white space, in any case."""
    forms = dict.fromkeys(normalize(form, value) for form in ("NFC", "NFD"))
    words = [r"\s+".join(re.escape(word) for word in form.split()) for form in forms]
    words = [word for word in words if word]
    exact = [re.compile(word) for word in words]
    return (*exact, *(re.compile(word, re.IGNORECASE) for word in words))


@lru_cache(maxsize=4096)
def _date_patterns(value: str) -> Patterns:
    """Return patterns for the written forms of a date such as 2013-03-17, 2013-03-XX, 2013-03 or
    2013, the fullest forms first.
    """
    match = _DATE.fullmatch(value.strip())
    if match is None:
        return ()
    year, month, day = (_parse_number(match.group(part)) for part in ("year", "month", "day"))
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return ()
    forms: list[str] = []
    if month is not None and day is not None and year is not None:
        forms.append(_full_date_pattern(year, month, day))
    if month is not None and day is not None:
        forms.append(
            rf"{_month_pattern(month)}\s+{_day_pattern(day)}|{_day_pattern(day)}\s+(?:of\s+)?{_month_pattern(month)}"
        )
    if month is not None and year is not None:
        forms.append(
            rf"{_month_pattern(month)},?\s+(?:of\s+)?{year:04}|{year:04}[-/]{month:02}|0?{month}[./]{year:04}"
        )
    if month is not None:
        forms.append(_month_pattern(month))
    if year is not None:
        forms.append(f"{year:04}")
    return tuple(re.compile(rf"(?<!\w)(?:{form})(?!\w)", re.IGNORECASE) for form in forms)


def _parse_number(digits: str | None) -> int | None:
    return None if digits is None or digits.upper().startswith("X") else int(digits)


def _full_date_pattern(year: int, month: int, day: int) -> str:
    name, number = _month_pattern(month), _day_pattern(day)
    return "|".join(
        (
            rf"{name}\s+{number},?\s+{year:04}",
            rf"{number}\s+(?:of\s+)?{name},?\s+{year:04}",
            rf"{year:04}[-/.]{month:02}[-/.]{day:02}|{year:04}{month:02}{day:02}",
            rf"0?{day}[./-]\s?0?{month}[./-]\s?{year:04}",
            rf"0?{month}[/-]0?{day}[/-]{year:04}",
        )
    )


def _month_pattern(month: int) -> str:
    name = _MONTHS[month - 1]
    short = r"Sept?" if name == "September" else name[:3]
    return rf"(?:{name}|{short}\b\.?)"


def _day_pattern(day: int) -> str:
    return rf"0?{day}(?:st|nd|rd|th)?"
