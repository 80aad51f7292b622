"""Tables: columns and rows, as a part of a page, a file (CSV, tab-separated, JSON Lines) or records
of the API.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

from django.core.exceptions import SuspiciousOperation
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

from formats.tables import quote_formula
from kbpo.web.expensive import export

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in files and records, its label on pages."""

    name: str
    label: str = ""
    """Without one it stands in files and records alone"""
    value: Callable[[Any], Any] | None = None
    """Returns the value of a row; by default its item or attribute of that name"""
    cell: Callable[[Any], Any] | None = None
    """Returns what a page shows of a row; by default the value"""
    is_number: bool = False
    in_files: bool = True

    def read(self, row: Any) -> Any:
        """Return the value of a row."""
        if self.value is not None:
            return self.value(row)
        return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)

    def draw(self, row: Any) -> Any:
        """Return what a page shows of a row."""
        return self.read(row) if self.cell is None else self.cell(row)


def columns(*names: str) -> tuple[Column, ...]:
    """Return columns of files alone, named as what a row has."""
    return tuple(Column(name) for name in names)


@dataclass
class Table:
    """Rows with declared columns. `components/table.html` draws it."""

    name: str
    """What its files are called"""
    columns: Sequence[Column]
    rows: Any
    """A list or a queryset"""
    request: HttpRequest | None = None
    """Says which page is shown; without one all rows are"""
    size: int = 100
    """Rows of a page"""
    prepare: Callable[[list[Any]], Sequence[Any]] = list
    """Reads what the rows of one page, or of one part of a file, show besides"""

    @property
    def head(self) -> list[Column]:
        """The columns that pages show."""
        return [column for column in self.columns if column.label]

    @cached_property
    def page(self) -> Page[Any] | None:
        """The page that is asked for; None without a request."""
        if self.request is None:
            return None
        return Paginator(self.rows, self.size).get_page(self.request.GET.get("page"))

    @cached_property
    def body(self) -> list[list[tuple[Column, Any]]]:
        """The cells of the page, each with its column."""
        rows = self.prepare(list(self.rows if self.page is None else self.page))
        return [[(column, column.draw(row)) for column in self.head] for row in rows]

    @property
    def query(self) -> str:
        """What was chosen, as an address has it, without the page."""
        if self.request is None:
            return ""
        query = self.request.GET.copy()
        for name in ("page", "format"):
            query.pop(name, None)
        return query.urlencode()

    def records(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        """Return rows as the API tells them."""
        kept = [column for column in self.columns if column.in_files]
        prepared = self.prepare(list(rows))
        return [{column.name: column.read(row) for column in kept} for row in prepared]

    def file(self, request: HttpRequest) -> HttpResponseBase:
        """Return all rows as the file that the address asks for; one at a time of a session."""
        kept = [column for column in self.columns if column.in_files]
        values = ([column.read(row) for column in kept] for row in self._all())
        header = [column.name for column in kept]
        return export(lambda request: file_of(request, self.name, header, values))(request)

    def _all(self) -> Iterator[Any]:
        """Yield all rows, each part of them prepared at once."""
        is_query = hasattr(self.rows, "iterator")
        rest = iter(self.rows.iterator(chunk_size=PART) if is_query else self.rows)
        while part := list(islice(rest, PART)):
            yield from self.prepare(part)


PART = 2000
"""Rows that are read at once for a file"""


def file_of(
    request: HttpRequest, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Return rows as the file that `?format=` of the address asks for, each sent when it is read.
    Raises SuspiciousOperation.
    """
    form = request.GET.get("format", "")
    if form == "jsonl":
        return json_stream(f"{name}.jsonl", header, rows)
    if form not in ("csv", "tsv"):
        raise SuspiciousOperation("A file is csv, tsv or jsonl.")
    return csv_stream(f"{name}.{form}", header, rows, tabs=form == "tsv")


def link(url: str, text: object) -> SafeString:
    """Return a link, as a cell shows it; the text alone without an address."""
    return format_html('<a href="{}">{}</a>', url, text) if url else format_html("{}", text)


def code(text: object) -> SafeString:
    """Return a text in the type of code."""
    return format_html("<code>{}</code>", text)


def tag(text: object, tone: str = "") -> SafeString:
    """Return a tag: good, warn, bad or info."""
    return format_html('<span class="tag {}">{}</span>', tone, text)


class Echo:
    """A file that hands back what is written to it: a row can be sent as soon as it is made."""

    def write(self, text: str) -> str:
        return text


def csv_response(
    filename: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> HttpResponse:
    """Return the whole file, as a response that browsers save under this name."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response.writelines(lines(header, rows))
    return response


def csv_stream(
    filename: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    tabs: bool = False,
) -> StreamingHttpResponse:
    """Return the same for files that may be long: each row is sent when it is read. With `tabs`
    instead of commas.
    """
    rows = begun(rows)
    kind = "tab-separated-values" if tabs else "csv"
    response = StreamingHttpResponse(
        lines(header, rows, dialect="excel-tab" if tabs else "excel"),
        content_type=f"text/{kind}; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def json_stream(
    filename: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Return the rows as JSON Lines, each sent when it is read."""
    response = StreamingHttpResponse(
        json_lines(header, begun(rows)), content_type="application/x-ndjson; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def json_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield each row as an object, one a line."""
    for row in rows:
        record = dict(zip(header, row, strict=True))
        yield json.dumps(record, ensure_ascii=False, default=_plain) + "\n"


def begun(parts: Iterable[T]) -> Iterator[T]:
    """Return an iterator over all parts, the first of which is there by now: what waits too long
    for the database is refused while nothing is sent yet.
    """
    rest = iter(parts)
    return _after(list(islice(rest, 1)), rest)


def _after(first: list[T], rest: Iterator[T]) -> Iterator[T]:
    yield from first
    yield from rest


def _plain(value: Any) -> str:
    """Return a value that JSON does not have, as text."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def lines(
    header: Sequence[str], rows: Iterable[Sequence[Any]], dialect: str = "excel"
) -> Iterator[str]:
    """Yield the lines of the file, the header first."""
    writer = csv.writer(Echo(), dialect=dialect)
    for row in chain([header], rows):
        yield writer.writerow([cell_of(value) for value in row])


def cell_of(cell: Any) -> Any:
    """Return the cell, with a quote before a text that a spreadsheet would take for a formula.
    Numbers stay as they are: a negative one is no formula.
    """
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False)
    return quote_formula(cell) if isinstance(cell, str) else cell
