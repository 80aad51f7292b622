"""Tables with declared columns, as HTML, CSV, TSV, JSON Lines or API records."""

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
from kbpo.web.expensive import limit_exports

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in files and records, its label on pages."""

    name: str
    label: str = ""
    """Label on pages; a column without one is in files and records only"""
    value: Callable[[Any], Any] | None = None
    """Function that returns the value of a row; by default its item or attribute of that name"""
    cell: Callable[[Any], Any] | None = None
    """Function that returns what a page shows for a row; by default the value"""
    is_number: bool = False
    in_files: bool = True

    def get_value(self, row: Any) -> Any:
        """Return the value of a row in this column."""
        if self.value is not None:
            return self.value(row)
        return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)

    def draw(self, row: Any) -> Any:
        """Return the HTML of a cell."""
        return self.get_value(row) if self.cell is None else self.cell(row)


def columns_named(*names: str) -> tuple[Column, ...]:
    """Return columns for files, each named like the field of a row."""
    return tuple(Column(name) for name in names)


@dataclass
class Table:
    """Rows with declared columns; `components/table.html` renders it."""

    name: str
    """Name of its files"""
    columns: Sequence[Column]
    rows: Any
    """A list or a queryset"""
    request: HttpRequest | None = None
    """Selects the page; without a request all rows are shown"""
    size: int = 100
    """Number of rows on a page"""
    prepare: Callable[[list[Any]], Sequence[Any]] = list
    """Function that loads further data for the rows of one page, or of one block of a file"""

    @property
    def head(self) -> list[Column]:
        """Return the columns shown on pages."""
        return [column for column in self.columns if column.label]

    @cached_property
    def page(self) -> Page[Any] | None:
        """Return the requested page; None without a request."""
        if self.request is None:
            return None
        return Paginator(self.rows, self.size).get_page(self.request.GET.get("page"))

    @cached_property
    def body(self) -> list[list[tuple[Column, Any]]]:
        """Return the rows of the page, as pairs of column and cell."""
        rows = self.prepare(list(self.rows if self.page is None else self.page))
        return [[(column, column.draw(row)) for column in self.head] for row in rows]

    @property
    def query_string(self) -> str:
        """Return the query string without the page."""
        if self.request is None:
            return ""
        query = self.request.GET.copy()
        for name in ("page", "format"):
            query.pop(name, None)
        return query.urlencode()

    def records(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        """Return rows as API records."""
        kept = [column for column in self.columns if column.in_files]
        prepared = self.prepare(list(rows))
        return [{column.name: column.get_value(row) for column in kept} for row in prepared]

    def file(self, request: HttpRequest) -> HttpResponseBase:
        """Return all rows as a file, one export at a time for each session."""
        kept = [column for column in self.columns if column.in_files]
        values = ([column.get_value(row) for column in kept] for row in self._iterate_rows())
        header = [column.name for column in kept]
        return limit_exports(lambda request: table_file(request, self.name, header, values))(
            request
        )

    def _iterate_rows(self) -> Iterator[Any]:
        """Yield all rows, prepared in blocks."""
        is_query = hasattr(self.rows, "iterator")
        rest = iter(self.rows.iterator(chunk_size=PART) if is_query else self.rows)
        while part := list(islice(rest, PART)):
            yield from self.prepare(part)


PART = 2000
"""Number of rows that are read at once for a file"""


def table_file(
    request: HttpRequest, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Return rows as a streamed file in the format of `?format=`. Raises SuspiciousOperation."""
    form = request.GET.get("format", "")
    if form == "jsonl":
        return json_stream(f"{name}.jsonl", header, rows)
    if form not in ("csv", "tsv"):
        raise SuspiciousOperation("A file is csv, tsv or jsonl.")
    return csv_stream(f"{name}.{form}", header, rows, tabs=form == "tsv")


def link_html(url: str, text: object) -> SafeString:
    """Return a link for a cell; plain text without an address."""
    return format_html('<a href="{}">{}</a>', url, text) if url else format_html("{}", text)


def code_html(text: object) -> SafeString:
    """Return text in the style of code."""
    return format_html("<code>{}</code>", text)


def tag_html(text: object, tone: str = "") -> SafeString:
    """Return a tag: good, warn, bad or info."""
    return format_html('<span class="tag {}">{}</span>', tone, text)


class Echo:
    """A file object that returns what is written, so that each row can be streamed."""

    def write(self, text: str) -> str:
        return text


def csv_download(
    filename: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> HttpResponse:
    """Return a complete CSV file for download."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response.writelines(csv_lines(header, rows))
    return response


def csv_stream(
    filename: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    tabs: bool = False,
) -> StreamingHttpResponse:
    """Return a streamed CSV file for download, with tabs if `tabs`."""
    rows = start_iterating(rows)
    kind = "tab-separated-values" if tabs else "csv"
    response = StreamingHttpResponse(
        csv_lines(header, rows, dialect="excel-tab" if tabs else "excel"),
        content_type=f"text/{kind}; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def json_stream(
    filename: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> StreamingHttpResponse:
    """Return the rows as streamed JSON Lines."""
    response = StreamingHttpResponse(
        json_lines(header, start_iterating(rows)),
        content_type="application/x-ndjson; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def json_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield each row as a line of JSON."""

    def json_default(value: Any) -> str:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    for row in rows:
        record = dict(zip(header, row, strict=True))
        yield json.dumps(record, ensure_ascii=False, default=json_default) + "\n"


def start_iterating(parts: Iterable[T]) -> Iterator[T]:
    """Return an iterator whose first part is already computed, so that a slow query fails before
    the response starts.
    """
    rest = iter(parts)
    return chain(list(islice(rest, 1)), rest)


def csv_lines(
    header: Sequence[str], rows: Iterable[Sequence[Any]], dialect: str = "excel"
) -> Iterator[str]:
    """Yield the lines of the file, the header first."""
    writer = csv.writer(Echo(), dialect=dialect)
    for row in chain([header], rows):
        yield writer.writerow([csv_cell(value) for value in row])


def csv_cell(cell: Any) -> Any:
    """Return the cell; text that a spreadsheet would interpret as a formula is prefixed with a
    quote.
    """
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False)
    return quote_formula(cell) if isinstance(cell, str) else cell
