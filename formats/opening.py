"""Opens text files, packed or not, within limits: numbered lines, streamed in bounded memory, and
the JSON objects on them. The items of a file that is one JSON list are returned as lines, so every
reader of JSON Lines reads lists, too.
"""

import codecs
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from formats.messages import Report

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest file that a reader accepts, measured in bytes, lines, relations and
    characters.
    """

    upload_bytes: int = 512 * MB
    unpacked_bytes: int = 4096 * MB
    ratio: int = 200
    lines: int = 20_000_000
    line_bytes: int = 64 * 1024
    relations: int = 2_000_000
    document_characters: int = 1_000_000
    messages: int = 10_000
    output_characters: int = 200_000
    passages: int = 200

    def for_corpus(self) -> "Limits":
        """Return these limits with longer lines: a line of a corpus is a whole document with its
        offsets.
        """
        # Up to 4 bytes a character of the text, and about 25 bytes for the offsets of a token of
        # two characters.
        return replace(self, line_bytes=max(self.line_bytes, 20 * self.document_characters))

    def for_outputs(self) -> "Limits":
        """Return these limits with longer lines: a line is a whole output, twelve bytes a character
        at most.
        """
        return replace(self, line_bytes=self.line_bytes + 12 * self.output_characters)


Source = str | Path | BinaryIO

CHUNK = 128 * 1024
BEGINNING = 4096
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
_DESCRIPTOR = b"PK\x07\x08"
_OFFICE = re.compile(rb"(\[Content_Types\]\.xml|_rels/|docProps/|xl/|word/|ppt/|mimetype)")
_AS_CSV = "Export the table as CSV (UTF-8) or with tabs between the columns."
_LIST = re.compile(rb"\s*\[\s*[{\]]")
_BLANKS = re.compile(r"[ \t\r\n]*")
_MAGIC = {
    ZIP: "a ZIP archive in another one",
    b"\xd0\xcf\x11\xe0": f"an old Excel or Word file ({_AS_CSV[:-1]})",
    b"%PDF": "a PDF document",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"\x89PNG": "a picture",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "a database",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    GZIP: "gzipped twice",
}


def open_text(source: Source, limits: Limits, report: Report) -> Iterator[tuple[int, str]]:
    """Return the lines of the file with their numbers, without line ends, a byte-order mark or
    lines that are no text. The items of one JSON list are given as lines, each with the number of
    the line where it begins.

    The end of a line is `\n` or `\r\n` and nothing else. Never raises for what the file holds: what
    is wrong goes into the report, and `report.fatal` says that the lines so far are not the whole
    file.
    """
    with ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            raw: BinaryIO = stack.enter_context(open(source, "rb"))
        else:
            raw = source
        blocks = _unpacked_blocks(raw, limits, report)
        first = next(blocks, b"")
        split = _json_list_items if _LIST.match(first) else _decoded_lines
        yield from split(_prepend(first, blocks), limits, report)


def _unpacked_blocks(raw: BinaryIO, limits: Limits, report: Report) -> Iterator[bytes]:
    """Yield the content in blocks, up to the limits, unpacked if it begins like gzip."""
    compressed = _read_up_to_limit(raw, limits, report)
    first = next(compressed, b"")
    if first.startswith(ZIP):
        blocks = _unzip(first, compressed, limits, report)
    elif first.startswith(GZIP):
        blocks = _gunzip(first, compressed, limits, report)
    else:
        blocks = _prepend(first, compressed)
    beginning = True
    size = 0
    for block in blocks:
        if beginning and block:
            beginning = False
            if kind := _binary_kind(block):
                report.add(
                    "syntax.binary",
                    0,
                    f"The file is {kind}, not UTF-8 text. Nothing of it is used.",
                )
                return
            block = block.removeprefix(b"\xef\xbb\xbf")
        size += len(block)
        if size > limits.unpacked_bytes:
            allowed = limits.unpacked_bytes // MB
            report.add(
                "limits.unpacked",
                0,
                f"Unpacked, the file has more than {allowed:,} MB. Nothing of it is used.",
            )
            return
        yield block
    if not size and not report.fatal:
        report.add("syntax.empty", 0, "The file is empty.")


def _read_up_to_limit(raw: BinaryIO, limits: Limits, report: Report) -> Iterator[bytes]:
    """Yield the bytes as uploaded, in chunks, up to the limit; the first chunk is long enough to
    detect the format.
    """
    size = 0
    while chunk := raw.read(CHUNK):
        while not size and len(chunk) < BEGINNING and (more := raw.read(CHUNK)):
            chunk += more
        size += len(chunk)
        if size > limits.upload_bytes:
            allowed = limits.upload_bytes // MB
            report.add(
                "limits.upload", 0, f"The file has more than {allowed:,} MB. Nothing of it is used."
            )
            return
        yield chunk


def _prepend(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _gunzip(first: bytes, rest: Iterator[bytes], limits: Limits, report: Report) -> Iterator[bytes]:
    """Yield the unpacked blocks of one or several gzip members; a decompression bomb is detected
    before it is unpacked.
    """
    unpacker = zlib.decompressobj(31)
    packed, size, pending = len(first), 0, first
    while True:
        try:
            block = unpacker.decompress(pending, CHUNK * 4)
        except zlib.error:
            report.add("syntax.gzip_corrupt", 0, "The gzip file is damaged. Nothing of it is used.")
            return
        size += len(block)
        if _is_bomb(size, packed, limits, report):
            return
        yield block
        pending = unpacker.unconsumed_tail
        if unpacker.eof:
            pending = unpacker.unused_data
            if len(pending) < 2:
                chunk = next(rest, b"")
                packed += len(chunk)
                pending += chunk
            pending = pending.lstrip(b"\x00")
            if not pending:
                return
            if not pending.startswith(GZIP):
                report.add(
                    "syntax.gzip_trailing",
                    0,
                    "Bytes follow the end of the gzip data. They are ignored.",
                )
                return
            unpacker = zlib.decompressobj(31)
        elif not pending and len(block) < CHUNK * 4:
            pending = next(rest, b"")
            packed += len(pending)
            if not pending:
                if not report.fatal:
                    report.add(
                        "syntax.gzip_truncated",
                        0,
                        "The gzip file ends too early, as after an interrupted "
                        "transfer. Nothing of it is used.",
                    )
                return


def _is_bomb(size: int, packed: int, limits: Limits, report: Report) -> bool:
    """Return whether `packed` bytes unpack to a suspicious size; report a message if so."""
    if size <= MB or size <= limits.ratio * packed:
        return False
    text = (
        f"The file unpacks to more than {limits.ratio} times its size. Nothing of it is used;"
        " please upload it unpacked if this is right."
    )
    report.add("limits.ratio", 0, text)
    return True


def _unzip(first: bytes, rest: Iterator[bytes], limits: Limits, report: Report) -> Iterator[bytes]:
    """Yield the unpacked blocks of the only file in a ZIP archive. The archive is read sequentially
    by its local headers, since not every source can be read from its end.
    """
    pending, packed, is_read = first, len(first), False

    def has_bytes(size: int) -> bool:
        nonlocal pending, packed
        while len(pending) < size and (chunk := next(rest, b"")):
            pending, packed = pending + chunk, packed + len(chunk)
        return len(pending) >= size

    def refuse(why: str) -> None:
        if not report.fatal:
            report.add("syntax.zip", 0, f"{why} Nothing of it is used.")

    while has_bytes(4) and pending.startswith(ZIP):
        if not has_bytes(30):
            return refuse("The ZIP archive ends too early.")
        flags, method = struct.unpack_from("<HH", pending, 6)
        crc, left = struct.unpack_from("<II", pending, 14)
        name_size, extra_size = struct.unpack_from("<HH", pending, 26)
        if not has_bytes(30 + name_size + extra_size):
            return refuse("The ZIP archive ends too early.")
        name = pending[30 : 30 + name_size]
        if _OFFICE.match(name):
            kind = "an Excel workbook" if b"xl/" in pending else "an Office document"
            return refuse(f"The file is {kind}. {_AS_CSV}")
        pending = pending[30 + name_size + extra_size :]
        if name.endswith(b"/"):
            has_bytes(left)
            pending = pending[left:]
            continue
        if name.startswith(b"__MACOSX/") and is_read:
            return None
        if is_read:
            return refuse("The ZIP archive holds several files; send one of them.")
        is_read, is_described = True, bool(flags & 8)
        if flags & 1 or method not in (0, 8) or (method == 0 and is_described):
            return refuse("The ZIP archive is encrypted or packed in an unusual way.")
        unpacker, size, found = zlib.decompressobj(-15), 0, 0
        while not unpacker.eof if method else left:
            if not has_bytes(1):
                return refuse("The ZIP archive ends too early.")
            if method:
                try:
                    block = unpacker.decompress(pending, CHUNK * 4)
                except zlib.error:
                    return refuse("The ZIP archive is damaged.")
                pending = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            else:
                block, pending = pending[:left], pending[left:]
                left -= len(block)
            size, found = size + len(block), zlib.crc32(block, found)
            if _is_bomb(size, packed, limits, report):
                return None
            yield block
        if is_described:
            if not has_bytes(24) or not pending.startswith(_DESCRIPTOR):
                return refuse("The ZIP archive is damaged.")
            (crc,) = struct.unpack_from("<I", pending, 4)
            # Sizes have four bytes each, or eight in large archives.
            pending = pending[16:] if pending[16:18] == b"PK" else pending[24:]
        if found != crc:
            return refuse("The ZIP archive is damaged.")
    if not is_read:
        return refuse("The ZIP archive holds no file.")
    return None


def _json_list_items(
    blocks: Iterator[bytes], limits: Limits, report: Report
) -> Iterator[tuple[int, str]]:
    """Yield the items of one JSON list, each on one line, with the number of the line where the
    item begins. An item may be as long as a line.
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    scan = json.JSONDecoder().raw_decode
    text, at, number, count = "", 0, 1, 0

    def read_more() -> bool:
        nonlocal text, at
        block = next(blocks, None)
        text, at = text[at:] + decode(block or b"", block is None), 0
        return block is not None

    def next_character() -> str:
        nonlocal at, number
        while True:
            end = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
            number, at = number + text.count("\n", at, end), end
            if at < len(text) or not read_more():
                return text[at : at + 1]

    def refuse(why: str) -> None:
        if not report.fatal:
            report.add("syntax.json_list", number, f"{why} Nothing of the file is used.", text[at:])

    try:
        next_character()
        at += 1
        separator = next_character()
        while separator not in ("]", ""):
            next_character()
            while True:
                try:
                    _, end = scan(text, at)
                    break
                except (ValueError, RecursionError):
                    if len(text) - at > limits.line_bytes:
                        size = limits.line_bytes // 1024
                        return refuse(f"An item of the list is no JSON or longer than {size:,} KB.")
                    if not read_more():
                        return refuse("An item of the list is no JSON, or the list breaks off.")
            item, begins = text[at:end], number
            number, at, count = number + item.count("\n"), end, count + 1
            if count > limits.lines:
                allowed = f"The list has more than {limits.lines:,} items."
                report.add("limits.lines", begins, f"{allowed} Nothing of it is used.")
                return None
            if len(item) > limits.line_bytes:
                allowed = f"This item has more than {limits.line_bytes // 1024:,} KB."
                report.add("limits.line", begins, f"{allowed} It is dropped.", item[:400])
            else:
                yield begins, item.replace("\r", " ").replace("\n", " ")
            separator = next_character()
            if separator not in (",", "]"):
                return refuse("A comma or the end of the list is missing after an item.")
            at += separator == ","
        at += 1
        if not separator or next_character():
            return refuse("The list breaks off, or more follows its end.")
    except UnicodeDecodeError:
        return refuse("The list is not UTF-8.")
    report.lines = number
    return None


def _binary_kind(block: bytes) -> str:
    """Return the kind of a binary file; empty if its beginning may be text."""
    for magic, kind in _MAGIC.items():
        if block.startswith(magic):
            return kind
    return "binary" if b"\x00" in block[:BEGINNING] else ""


def _decoded_lines(
    blocks: Iterator[bytes], limits: Limits, report: Report
) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines as text; a line over the limit is skipped without being stored."""
    number, rest, skipping = 0, b"", False
    for block in blocks:
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            whole = rest + whole
            good = None if skipping else _decode_lines(whole, limits)
            if good is not None and number + len(good) <= limits.lines:
                yield from enumerate(good, number + 1)
                number += len(good)
            else:
                for line in whole.split(b"\n"):
                    number += 1
                    if number > limits.lines:
                        text = (
                            f"The file has more than {limits.lines:,} lines. Nothing of it is used."
                        )
                        report.add("limits.lines", number, text)
                        return
                    text_line = _decode_line(number, line, skipping, limits, report)
                    skipping = False
                    if text_line is not None:
                        yield number, text_line
            rest = b""
        rest += tail
        if len(rest) > limits.line_bytes:
            skipping = True
            rest = rest[: limits.line_bytes]
    report.lines = number + bool(rest)
    if rest and (skipping or not report.fatal):
        text_line = _decode_line(number + 1, rest, skipping, limits, report)
        if text_line is not None:
            yield number + 1, text_line


def _decode_lines(block: bytes, limits: Limits) -> list[str] | None:
    """Return the decoded lines of a block. Return None if it has a NUL byte, is not UTF-8, or may
    have a line that is too long; then each line has to be decoded and checked by itself.
    """
    if b"\x00" in block:
        return None
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return None
    lines = (text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text).split("\n")
    # A character has at most four bytes.
    return lines if max(map(len, lines)) * 4 < limits.line_bytes else None


def _decode_line(
    number: int, raw: bytes, too_long: bool, limits: Limits, report: Report
) -> str | None:
    """Return one line as text, or None after a message that it is too long, not UTF-8, or holds a
    NUL.
    """
    if too_long or len(raw) > limits.line_bytes:
        text = f"This line has more than {limits.line_bytes // 1024:,} KB. It is dropped."
        report.add("limits.line", number, text, raw[:400].decode("utf-8", "replace"))
        return None
    try:
        line = raw.decode()
    except UnicodeDecodeError as error:
        before = len(raw[: error.start].decode())
        text = f"Byte {error.start + 1} of this line is not UTF-8. The line is dropped."
        report.add(
            "syntax.encoding", number, text, raw.decode("utf-8", "replace"), (before, before + 1)
        )
        return None
    if "\x00" in line:
        at = line.index("\x00")
        text = "This line holds a NUL character, which no text has. It is dropped."
        report.add("syntax.control", number, text, line, (at, at + 1))
        return None
    return line.removesuffix("\r")


class _NaN(ValueError):
    """Raised for a line with NaN or an infinity, which Python writes and JSON does not have."""


def _refuse_constant(name: str) -> None:
    raise _NaN(name)


class Objects:
    """Parses the lines of a file. NaN, which pandas writes for missing values, is reported once by
    `finish`, with the number of lines.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._with_nan = 0
        self._first = (0, "")

    def parse(self, number: int, line: str) -> dict[str, Any] | None:
        """Return the object on a line; None after a message."""
        try:
            data = json.loads(line, parse_constant=_refuse_constant)
        except _NaN:
            if not self._with_nan:
                self._first = number, line
            self._with_nan += 1
            return None
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        text = "This line is not one JSON object. It is dropped."
        self._report.add("syntax.json", number, text, line)
        return None

    def finish(self) -> None:
        """Report the lines with NaN."""
        if self._with_nan:
            number, line = self._first
            lines = f"{self._with_nan:,} lines hold" if self._with_nan > 1 else "This line holds"
            are = "They are" if self._with_nan > 1 else "It is"
            text = f"{lines} NaN, which is no JSON; write null for a missing value. {are} dropped."
            self._report.add("syntax.nan", number, text, line)
