"""Which door a submitted file comes through, and the claims that it makes, whatever the door."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, cast

from formats.docred import read_docred
from formats.json_lines import read_json_lines
from formats.limits import Limits
from formats.lookup import CorpusLookup
from formats.messages import Report
from formats.opening import Source, open_text
from formats.relation import RelationClaim
from formats.schema import Schema
from formats.tac_kb import read_tac_kb

Door = Literal["tac_kb", "mention_level", "json_lines", "docred"]
SNIFFED = 200

_MENTION_LEVEL = re.compile(r".+:\d+-\d+\t")


def sniff(lines: Iterator[str]) -> Door | None:
    """Return the door that the first lines of a file are made for, or None if they are made for
    none.
    """
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.lstrip().startswith("{"):
            return "docred" if '"h_idx"' in line else "json_lines"
        if line.startswith(":"):
            return "tac_kb"
        if _MENTION_LEVEL.match(line):
            return "mention_level"
        if line.count("\t") >= 2:
            return "tac_kb"  # a broken line among entity lines, most likely
    return None


def read_claims(
    source: Source, corpus: CorpusLookup, schema: Schema, limits: Limits, report: Report
) -> Iterator[RelationClaim]:
    """Return the usable claims of a submitted file, in the order of its lines; messages go to the
    report.

    Nothing may be stored for good before the iterator has ended and `report.fatal` is still False.
    """
    reopen, close = _reopenable(source)
    try:

        def open_lines(into: Report) -> Iterator[tuple[int, str]]:
            return open_text(reopen(), limits, into)

        preview = Report(0)
        door = sniff(line for _, line in islice(open_lines(preview), SNIFFED))
        if door == "tac_kb":
            yield from read_tac_kb(open_lines, corpus, schema, limits, report)
        elif door == "json_lines":
            yield from read_json_lines(open_lines(report), corpus, schema, limits, report)
        elif door == "docred":
            yield from read_docred(open_lines(report), corpus, schema, limits, report)
        else:
            _refuse(open_lines(report), door, report)
    finally:
        close()


def _refuse(lines: Iterator[tuple[int, str]], door: Door | None, report: Report) -> None:
    """Report why the file cannot be read: a fault of its text first, of its format otherwise."""
    first = next(lines, None)
    if report.fatal:
        return
    for _ in lines:
        if report.fatal:
            return
    line = first[1] if first else ""
    if door == "mention_level":
        text = (
            "This is a mention-level file. The service reads TAC KBP knowledge bases and JSON Lines"
            " so far."
        )
    elif line.lstrip().startswith("["):
        text = (
            "This looks like a JSON array of something else than objects. JSON Lines have one"
            " object a line."
        )
    elif line.lstrip().startswith("<"):
        text = (
            "This looks like XML or a page of the web, not like a knowledge base. Nothing of"
            " it is used."
        )
    else:
        text = (
            "The file is neither a TAC KBP knowledge base (tab-separated) nor JSON Lines. Nothing"
            " of it is used."
        )
    report.add("syntax.format", first[0] if first else 0, text, line)


def _reopenable(source: Source) -> tuple[Callable[[], Source], Callable[[], None]]:
    """Return a function that gives the source from its beginning each time, and one that
    clears up.
    """
    if isinstance(source, str | Path):
        return lambda: source, lambda: None
    stream: BinaryIO = source
    close: Callable[[], None] = _do_nothing
    if not stream.seekable():
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the function that is returned
        shutil.copyfileobj(stream, spool)
        stream, close = cast(BinaryIO, spool), spool.close
    start = stream.tell() if stream is source else 0

    def rewind() -> BinaryIO:
        stream.seek(start)
        return stream

    return rewind, close


def _do_nothing() -> None:
    """Do nothing: the caller closes a stream of its own."""
