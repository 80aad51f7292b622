"""Prints JSON, tables, messages and progress bars."""

from __future__ import annotations

import json as json_module
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import click

from kbpo_client.summary import progress_text

SHOWN_MESSAGES = 50
SHOWN_CHARACTERS = 160
"""Greatest number of characters of a text in a line"""


def print_json(data: Any) -> None:
    """Print the data as JSON."""
    click.echo(json_module.dumps(data, indent=2, ensure_ascii=False, default=str))


def print_table(head: list[str], lines: list[list[str]]) -> None:
    """Print lines in columns, the first two left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in [head, *lines]:
        cells = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def print_rows(
    rows: list[dict[str, Any]],
    as_json: bool,
    head: list[str],
    line_of: Callable[[dict[str, Any]], list[str]],
    nothing: str = "",
) -> None:
    """Print rows as JSON or as a table; `nothing` if there are none."""
    if as_json:
        print_json(rows)
    elif nothing and not rows:
        click.echo(nothing)
    else:
        print_table(head, [line_of(row) for row in rows])


def print_messages(messages: Iterable[dict[str, Any]]) -> None:
    """Print the messages of a reader, equal ones once with their first line."""
    lines_of: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for message in messages:
        lines_of[message["severity"], message["text"], message["code"]].append(message["line"])
    for (severity, text, code), lines in list(lines_of.items())[:SHOWN_MESSAGES]:
        where = f"line {lines[0]}: " if lines[0] else ""
        more = f" (and {len(lines) - 1:,} more lines)" if len(lines) > 1 else ""
        click.echo(f"{severity:7}  {where}{text}{more} [{code}]")
    if len(lines_of) > SHOWN_MESSAGES:
        click.echo(f"… and {len(lines_of) - SHOWN_MESSAGES:,} more; --json has them.")


def status_printer() -> Callable[[dict[str, Any]], None]:
    """Return a function that prints the status of a submission to the error stream whenever it
    changes.
    """
    last = ""

    def print_if_changed(submission: dict[str, Any]) -> None:
        nonlocal last
        line = progress_text(submission)
        if line != last:
            click.echo(line, err=True)
        last = line

    return print_if_changed


@contextmanager
def progress_bar(
    label: str, size: int | None = None, file: IO[str] | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds bytes to a progress bar on the error stream. The bar is hidden
    unless the stream is a terminal.
    """
    file = file or sys.stderr
    template = "%(label)s  %(info)s" if size is None else "%(label)s  [%(bar)s]  %(info)s"
    done = 0
    endless: Iterator[int] = iter(int, 1)  # has no length, and is never read
    with click.progressbar(
        None if size is not None else endless,
        length=size,
        label=label,
        bar_template=template,
        item_show_func=lambda so_far: f"{(so_far or 0) / 1e6:,.1f} MB",
        hidden=not file.isatty(),
        file=cast(Any, file),
    ) as bar:

        def add_bytes(count: int) -> None:
            nonlocal done
            done += count
            bar.update(count, done)

        yield add_bytes
