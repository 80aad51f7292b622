"""Files of rows: CSV, tab-separated, JSON Lines or zip."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

from django.http import HttpResponse, StreamingHttpResponse

from formats.tables import inert

T = TypeVar("T")


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
    return inert(cell) if isinstance(cell, str) else cell


MADE = (1980, 1, 1, 0, 0, 0)
"""When every file in it was made, as it says: the same contents are the same bytes"""


class _Sent(io.RawIOBase):
    """What a zip file is written to whose beginning is sent before its end is made."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.waiting += data
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since it was last taken."""
        part = bytes(self.waiting)
        self.waiting.clear()
        return part


def zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield a zip file of files that have a name and blocks; what is gzipped is not packed
    again.
    """
    sent = _Sent()
    with zipfile.ZipFile(sent, "w") as folder:
        for name, blocks in files:
            entry = zipfile.ZipInfo(name, MADE)
            entry.compress_type = (
                zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED
            )
            with folder.open(entry, "w", force_zip64=True) as target:
                for block in blocks:
                    target.write(block)
                    if part := sent.taken():
                        yield part
            yield sent.taken()
    yield sent.taken()
