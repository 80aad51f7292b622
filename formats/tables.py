"""The rows of a table with named columns: tab- or comma-separated with a header, or JSON Lines."""

import csv
import math
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple
from unicodedata import normalize

from formats.corpus import parse_object
from formats.messages import Report, quoted

Lines = Iterator[tuple[int, str]]
DELIMITERS = "\t,;"
NAMED = 5  # ids that a message names
NOTHING: Mapping[str, str] = MappingProxyType({})
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""What a spreadsheet takes for the beginning of a formula, or strips before it looks for one."""


class Row(NamedTuple):
    """A row with its number, its line and its values by column."""

    number: int
    line: str
    values: dict[str, Any]


def read_rows(
    lines: Lines, required: Collection[str], optional: Collection[str], report: Report
) -> Iterator[Row]:
    """The rows that have all required columns; all else is in the report.

    Names of columns are compared without case; what is neither required nor optional is ignored. A
    file whose first line begins with `{` is JSON Lines.
    """
    filled = ((number, line) for number, line in lines if line and not line.isspace())
    beginning = next(filled, None)
    if beginning is None:
        return
    if beginning[1].lstrip().startswith("{"):
        yield from _from_json(chain([beginning], filled), required, optional, report)
    else:
        yield from _from_columns(beginning, filled, required, optional, report)


def _from_json(
    lines: Lines, required: Collection[str], optional: Collection[str], report: Report
) -> Iterator[Row]:
    known, unknown = {*required, *optional}, set[str]()
    for number, line in lines:
        data = parse_object(line)
        if data is None:
            text = "This line is not one JSON object without NaN. It is dropped."
            report.add("syntax.json", number, text, line)
            continue
        missing = [name for name in required if name not in data]
        if missing:
            text = f"The key {quoted(missing[0])} is missing. The line is dropped."
            report.add("syntax.key_missing", number, text, line)
            continue
        _say_unknown([key for key in data if key not in known], unknown, number, line, report)
        yield Row(number, line, data)


def _from_columns(
    header: tuple[int, str],
    lines: Lines,
    required: Collection[str],
    optional: Collection[str],
    report: Report,
) -> Iterator[Row]:
    number, line = header
    delimiter = next((mark for mark in DELIMITERS if mark in line), "\t")
    if line.lstrip().startswith("["):
        text = (
            "The file is one JSON list. Write each of its objects on a line of its own, without the"
            " brackets around them and the commas between. Nothing of the file is used."
        )
        report.add("syntax.header", number, text, line)
        return
    names = [name.strip().lower() for name in _split(line, delimiter) or []]
    missing = [name for name in required if name not in names]
    if missing or len(set(names)) < len(names):
        wanted = ", ".join(required)
        lacks = f"{quoted(missing[0])} is missing" if missing else "one name stands there twice"
        text = (
            f"The first line must name the columns {wanted}, with tabs or commas between; {lacks}."
            " Nothing of the file is used."
        )
        report.add("syntax.header", number, text, line)
        return
    known = {*required, *optional}
    _say_unknown([name for name in names if name not in known], set(), number, line, report)
    for number, line in lines:
        cells = _split(line, delimiter)
        if cells is None or len(cells) != len(names):
            count = "no" if cells is None else str(len(cells))
            text = f"This line has {count} columns, but {len(names)} are expected. It is dropped."
            report.add("syntax.columns", number, text, line)
            continue
        yield Row(number, line, dict(zip(names, cells, strict=True)))


def _split(line: str, delimiter: str) -> list[str] | None:
    """The cells of a line, or None if its quotation marks cannot be read."""
    if delimiter == "\t":
        return line.split("\t")
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), None)
    except csv.Error:
        return None


def _say_unknown(names: list[str], told: set[str], number: int, line: str, report: Report) -> None:
    for name in names:
        if name not in told and len(told) < 100:
            told.add(name)
            text = f"{quoted(name)} is not known. It is ignored, here and in all further lines."
            report.add("syntax.key_unknown", number, text, line)


def inert(text: str) -> str:
    """The text, with a quote before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def as_meant(cell: object) -> object:
    """The cell without the quote that `inert` puts before a formula."""
    if isinstance(cell, str) and cell.startswith("'") and inert(cell) != cell:
        return cell[1:]
    return cell


def identifier(value: object) -> str | None:
    """An id as text in composed Unicode, or None:
    at most 200 characters, none of them a control.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    name = normalize("NFC", str(value)).strip()
    usable = name and len(name) <= 200 and name.isprintable()
    return name if usable else None


def number_of(value: object) -> float | None:
    """The finite number that a cell or a JSON value is, or None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def but(names: Collection[str]) -> str:
    """What a sentence about a name that is not there goes on with: those that are."""
    spoken = [name for name in names if not name.isdecimal()]  # not also by their numbers
    return f"; it has {some_of(spoken)}" if spoken else ""


def some_of(names: Collection[str]) -> str:
    """Up to five of the names, quoted, and how many more there are."""
    shown = ", ".join(quoted(name) for name in sorted(names)[:NAMED])
    more = len(names) - NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown
