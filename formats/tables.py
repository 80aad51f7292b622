"""Reads the rows of a table with named columns: separated by tabs, commas or semicolons with a
header, or JSON Lines.
"""

import csv
import math
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple
from unicodedata import normalize

from formats.messages import Report, quote
from formats.opening import Objects

Lines = Iterator[tuple[int, str]]
DELIMITERS = "\t,;"
LONGEST_RECORD = 4_000_000
"""Greatest number of characters of a row, more than the longest output"""
_R_QUOTE = re.compile(r'\\"(?!\t|$)')
NAMED = 5  # ids that a message names
NOTHING: Mapping[str, str] = MappingProxyType({})
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""Beginnings of a cell that a spreadsheet interprets as a formula, or strips before looking
for one
"""


class Row(NamedTuple):
    """A row with its number, its text and its values by column."""

    number: int
    """Number of the line on which it begins"""
    line: str
    values: dict[str, Any]
    decimal_comma: bool = False
    """Whether `0,5` is a number, since semicolons separate the columns"""

    def finite_number(self, column: str) -> float | None:
        """Return the finite number in a column; None if there is none."""
        value = self.values[column]
        if self.decimal_comma and isinstance(value, str):
            value = value.replace(",", ".", 1)
        return parse_number(value)


class Table(NamedTuple):
    """A table whose header has been read."""

    header: int
    """Line number of the header"""
    line: str
    names: list[str]
    """Names of the columns, as written in the file"""
    delimiter: str
    rows: Iterator[tuple[int, str, list[str]]]
    """Line number, text and cells of each row"""


def read_rows(
    lines: Lines, required: Collection[str], optional: Collection[str], report: Report
) -> Iterator[Row]:
    """Yield the rows that have all required columns; messages go to the report.

    Names of columns are compared without case; columns that are neither required nor optional are
    ignored. A file whose first line begins with `{` is JSON Lines.
    """
    beginning = next(((n, line) for n, line in lines if line and not line.isspace()), None)
    if beginning is None:
        return
    lines = chain([beginning], lines)
    if beginning[1].lstrip().startswith("{"):
        yield from _rows_from_json(lines, required, optional, report)
    else:
        yield from _rows_from_columns(lines, required, optional, report)


def _rows_from_json(
    lines: Lines, required: Collection[str], optional: Collection[str], report: Report
) -> Iterator[Row]:
    known, unknown, objects = {*required, *optional}, set[str](), Objects(report)
    for number, line in lines:
        if not line or line.isspace():
            continue
        data = objects.parse(number, line)
        if data is None:
            continue
        missing = [name for name in required if name not in data]
        if missing:
            text = f"The key {quote(missing[0])} is missing. The line is dropped."
            report.add("syntax.key_missing", number, text, line)
            continue
        _report_unknown_columns(
            [key for key in data if key not in known], unknown, number, line, report
        )
        yield Row(number, line, data)
    objects.finish()


def _rows_from_columns(
    lines: Lines, required: Collection[str], optional: Collection[str], report: Report
) -> Iterator[Row]:
    table = open_table(lines, report)
    if table is None:
        return
    names = [name.strip().lower() for name in table.names]
    missing = [name for name in required if name not in names]
    if missing or len(set(names)) < len(names):
        wanted = ", ".join(required)
        lacks = f"{quote(missing[0])} is missing" if missing else "one name stands there twice"
        text = (
            f"The first line must name the columns {wanted}, with tabs or commas between; {lacks}."
            " Nothing of the file is used."
        )
        report.add("syntax.header", table.header, text, table.line)
        return
    known = {*required, *optional, ""}  # a column without a name holds the numbers of the rows
    unknown = [name for name in names if name not in known]
    _report_unknown_columns(unknown, set(), table.header, table.line, report)
    for number, line, cells in table.rows:
        if len(cells) != len(names):
            text = (
                f"This line has {len(cells)} columns, but {len(names)} are expected. It is dropped."
            )
            report.add("syntax.columns", number, text, line)
            continue
        yield Row(number, line, dict(zip(names, cells, strict=True)), table.delimiter == ";")


def open_table(lines: Lines, report: Report) -> Table | None:
    """Return the table in a file, whose first line names the columns; None after a message.

    Cells are quoted as in RFC 4180: they may contain line breaks, and doubled quotation marks. In a
    table with tabs a quotation mark is an ordinary character, unless the header is quoted, as R
    does. R also escapes quotation marks with a backslash, and adds a column of row names that the
    header lacks.
    """
    beginning = next(((n, line) for n, line in lines if line and not line.isspace()), None)
    if beginning is None:
        return None
    header = beginning[1]
    delimiter = next((mark for mark in DELIMITERS if mark in header), "\t")
    is_quoted = delimiter != "\t" or header.startswith('"')
    by_r = is_quoted and delimiter == "\t"
    split = _quoted_records if is_quoted else _plain_records
    records = split(chain([beginning], lines), delimiter, by_r, report)
    first = next(records, None)
    if first is None:
        return None
    number, line, names = first
    second = next(records, None)
    has_row_names = (
        header.startswith('"') and second is not None and len(second[2]) == len(names) + 1
    )
    if has_row_names:
        names = ["", *names]
    return Table(
        number, line, names, delimiter, chain([second] if second is not None else [], records)
    )


def _plain_records(
    lines: Lines, delimiter: str, _by_r: bool, _report: Report
) -> Iterator[tuple[int, str, list[str]]]:
    for number, line in lines:
        if line and not line.isspace():
            yield number, line, line.split(delimiter)


class _TooLong(Exception):
    """Raised if a record has more characters than `LONGEST_RECORD`."""


def _quoted_records(
    lines: Lines, delimiter: str, by_r: bool, report: Report
) -> Iterator[tuple[int, str, list[str]]]:
    csv.field_size_limit(2 * LONGEST_RECORD)
    held: list[tuple[int, str]] = []  # the lines of the record that is being read

    def yield_record_lines() -> Iterator[str]:
        size = 0
        for number, line in lines:
            size = len(line) if not held else size + len(line)
            held.append((number, line))
            if size > LONGEST_RECORD:
                raise _TooLong
            yield (_R_QUOTE.sub('""', line) if by_r else line) + "\n"

    reader = csv.reader(yield_record_lines(), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except _TooLong:
            return _report_unclosed_quote(held, report)
        except csv.Error as error:
            if "unexpected end" in str(error):
                return _report_unclosed_quote(held, report)
            number, text = held[0][0], "\n".join(line for _, line in held)
            where = f" from line {number} to {held[-1][0]}" if len(held) > 1 else ""
            sentence = (
                f"This row{where} cannot be read: inside a quoted cell a quotation mark is written"
                " twice, and a carriage return stands nowhere else. It is dropped."
            )
            report.add("syntax.columns", number, sentence, text)
            held.clear()
            continue
        if cells is None:
            return None
        number, text = held[0][0], "\n".join(line for _, line in held)
        is_blank = not text or text.isspace()
        held.clear()
        if not is_blank:
            yield number, text, cells


def _report_unclosed_quote(record_lines: list[tuple[int, str]], report: Report) -> None:
    """Report a quotation mark that is not closed."""
    number, line = record_lines[0]
    at = line.rfind('"')
    text = (
        "A quotation mark that is opened on this line is not closed, so what follows would be one"
        " cell. Nothing of the file is used."
    )
    report.add("syntax.quote", number, text, line, (max(0, at), max(0, at) + 1))


def _report_unknown_columns(
    names: list[str], reported: set[str], number: int, line: str, report: Report
) -> None:
    for name in names:
        if name not in reported and len(reported) < 100:
            reported.add(name)
            text = f"{quote(name)} is not known. It is ignored, here and in all further lines."
            report.add("syntax.key_unknown", number, text, line)


def quote_formula(text: str) -> str:
    """Return the text, prefixed with a quote if a spreadsheet would interpret it as a formula."""
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def unquote_formula(cell: object) -> object:
    """Return the cell without the quote that `quote_formula` adds."""
    if isinstance(cell, str) and cell.startswith("'") and quote_formula(cell) != cell:
        return cell[1:]
    return cell


def parse_identifier(value: object) -> str | None:
    """Return an id as text in composed Unicode; None if it has more than 200 characters or a
    control character.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    name = normalize("NFC", str(value)).strip()
    usable = name and len(name) <= 200 and name.isprintable()
    return name if usable else None


def parse_number(value: object) -> float | None:
    """Return a cell or a JSON value as a finite number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        value = value.strip()
        if "_" in value or not value.isascii():
            return None  # `1_5` and digits of other scripts, which Python would read
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def known_names_text(names: Collection[str]) -> str:
    """Return the end of a sentence about an unknown name, which lists the known ones."""
    spoken = [name for name in names if not name.isdecimal()]  # not also by their numbers
    return f"; it has {first_names_text(spoken)}" if spoken else ""


def first_names_text(names: Collection[str]) -> str:
    """Return up to five of the names, quoted, and the number of the others."""
    shown = ", ".join(quote(name) for name in sorted(names)[:NAMED])
    more = len(names) - NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown
