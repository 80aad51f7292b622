"""Reads and writes single judgments of outputs: of a study that was done elsewhere, or to score one
again.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from formats.messages import Report, quote
from formats.tables import (
    NOTHING,
    Lines,
    Row,
    known_names_text,
    parse_identifier,
    quote_formula,
    read_rows,
    unquote_formula,
)

COLUMNS = ("input_id", "system", "worker", "prompt", "value", "seconds")
REQUIRED = COLUMNS[:5]
_BREAK = re.compile(r"[\t\r\n]+")
LONGEST = 24 * 3600.0  # seconds; a longer time was not spent on one judgment


@dataclass(frozen=True, slots=True)
class JudgmentRecord:
    """One person's judgment of one output under one criterion (`prompt`)."""

    input_id: str
    system: str
    worker: str
    prompt: str
    value: float
    seconds: float | None
    line: int = 0


def read_judgments(
    lines: Lines,
    outputs: Mapping[str, Collection[str]],
    criteria: Mapping[str, tuple[float, float]],
    report: Report,
    *,
    also: Mapping[str, str] = NOTHING,
) -> Iterator[JudgmentRecord]:
    """Yield the usable judgments in line order; messages go to the report.

    `outputs` maps each system to the inputs for which it has an output, `criteria` maps each
    criterion to the ends of its scale, and `also` maps other names of systems to these names. Rows
    with an empty value are skipped.
    """
    seen: dict[tuple[str, str, str, str], int] = {}
    is_any = False
    for row in read_rows(lines, REQUIRED, COLUMNS[5:], report):
        is_any = True
        if row.values["value"] is None or str(row.values["value"]).strip() == "":
            continue
        record = _parse_record(row, outputs, criteria, report, also)
        if record is None:
            continue
        key = (record.input_id, record.system, record.worker, record.prompt)
        if key in seen:
            text = (
                f"{quote(record.worker)} has judged this output on line {seen[key]} already. The"
                " first judgment is kept."
            )
            report.add("consistency.judgment_twice", row.number, text, row.line)
            continue
        seen[key] = row.number
        yield record
    if not is_any and not report.errors:
        report.add("syntax.empty", 0, "The file holds no judgment.")


def _parse_record(
    row: Row,
    outputs: Mapping[str, Collection[str]],
    criteria: Mapping[str, tuple[float, float]],
    report: Report,
    also: Mapping[str, str],
) -> JudgmentRecord | None:
    """Return the judgment of a row, or None after a message."""
    names = {key: parse_identifier(unquote_formula(row.values[key])) for key in REQUIRED[:4]}
    shown = {key: quote(names[key] or str(row.values[key])) for key in names}
    names["system"] = also.get(str(names["system"]), names["system"])
    problem = _reference_problem(names, shown, outputs, criteria)
    if problem is not None:
        report.add(problem[0], row.number, f"{problem[1]} The line is dropped.", row.line)
        return None
    low, high = criteria[str(names["prompt"])]
    value = row.finite_number("value")
    if value is None:
        told = quote(str(row.values["value"]))
        text = f"The value {told} is no finite number. The line is dropped."
        report.add("syntax.number", row.number, text, row.line)
        return None
    if not low <= value <= high:
        text = (
            f"The value {value:g} lies outside the scale of {shown['prompt']}, {low:g} to {high:g}."
            " The line is dropped."
        )
        report.add("schema.range", row.number, text, row.line)
        return None
    return JudgmentRecord(
        str(names["input_id"]),
        str(names["system"]),
        str(names["worker"]),
        str(names["prompt"]),
        value,
        _parse_seconds(row, report),
        row.number,
    )


def _reference_problem(
    names: Mapping[str, str | None],
    shown: Mapping[str, str],
    outputs: Mapping[str, Collection[str]],
    criteria: Mapping[str, tuple[float, float]],
) -> tuple[str, str] | None:
    if names["worker"] is None:
        return "syntax.value", "The worker is a string of at most 200 characters."
    if names["prompt"] not in criteria:
        asked = ", ".join(criteria)
        return "reference.criterion", f"The track does not ask {shown['prompt']}, only {asked}."
    if names["system"] not in outputs:
        told = f"The system {shown['system']} is not in this track{known_names_text(outputs)}."
        return "reference.system", told
    if names["input_id"] not in outputs[str(names["system"])]:
        if not any(names["input_id"] in own for own in outputs.values()):
            return "reference.input", f"The input {shown['input_id']} is not in the corpus."
        return (
            "reference.output",
            f"{shown['system']} has no output for the input {shown['input_id']}.",
        )
    return None


def _parse_seconds(row: Row, report: Report) -> float | None:
    value = row.values.get("seconds")
    if value is None or value == "":
        return None
    seconds = row.finite_number("seconds")
    if seconds is not None and 0 <= seconds <= LONGEST:
        return seconds
    text = f"The time {quote(str(value))} is no number of seconds. The judgment is kept without."
    report.add("syntax.seconds", row.number, text, row.line)
    return None


def write_judgments(records: Iterable[JudgmentRecord]) -> Iterator[str]:
    """Yield the lines of a file that `read_judgments` reads, with the header; each ends in a line
    break. No name begins a formula in a spreadsheet, and line breaks in names become blanks.
    """
    buffer = io.StringIO()
    writer = csv.writer(
        buffer, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None
    )
    writer.writerow(COLUMNS)
    for record in records:
        yield _drain_buffer(buffer)
        seconds = "" if record.seconds is None else repr(record.seconds)
        names = (record.input_id, record.system, record.worker, record.prompt)
        cells = [quote_formula(_BREAK.sub(" ", name)) for name in names]
        writer.writerow([*cells, repr(record.value), seconds])
    yield _drain_buffer(buffer)


def _drain_buffer(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
