"""Reads a submission of generated texts: one output for each input, as JSON Lines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formats.cleaning import Cleaned, clean_text
from formats.messages import Report, explain_wrong_format, quote
from formats.opening import Limits
from formats.tables import Lines, Row, first_names_text, parse_identifier, read_rows

REQUIRED = ("input_id", "output")
OPTIONAL = ("passage",)
EXPECTED = "is one output an input, with input_id and output"


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """One output of a system for one input, cleaned."""

    input_id: str
    output: str
    passage: int | None
    """The passage from which it was taken, numbered from 0"""
    line: int


def read_outputs(
    lines: Lines,
    inputs: Mapping[str, int],
    limits: Limits,
    report: Report,
) -> Iterator[OutputRecord]:
    """Yield the usable outputs in line order; messages go to the report.

    `inputs` are the ids of the corpus with their numbers of passages. An input without an output is
    reported as an error when the iterator is exhausted.
    """
    known: dict[str, int] = {}
    is_any = False
    elsewhere = 0
    for row in read_rows(lines, REQUIRED, OPTIONAL, report):
        is_any = True
        name = parse_identifier(row.values["input_id"])
        if name is None or name not in inputs:
            elsewhere += 1
            _add_message(report, "reference.input", row, _unknown_output_text(name, row))
            continue
        if name in known:
            text = (
                f"There is an output for {quote(name)} on line {known[name]} already,"
                " which is kept."
            )
            _add_message(report, "consistency.input_twice", row, text)
            continue
        output = _clean_output(row, name, limits, report)
        if output is None:
            continue
        passage = _parse_passage(row, name, inputs[name], report)
        known[name] = row.number
        yield OutputRecord(name, output.text, passage, row.number)
    if not report.fatal:
        _report_coverage(is_any, elsewhere, known, inputs, report)


def _add_message(report: Report, code: str, row: Row, text: str) -> None:
    report.add(code, row.number, text, row.line)


def _unknown_output_text(name: str | None, row: Row) -> str:
    shown = quote(name or str(row.values["input_id"]))
    return f"The input {shown} is not in the corpus. The line is dropped."


def _clean_output(row: Row, name: str, limits: Limits, report: Report) -> Cleaned | None:
    """Return the cleaned output, or None after a message."""
    value: Any = row.values["output"]
    if not isinstance(value, str):
        text = f"The output for {quote(name)} is not a string. The line is dropped."
        _add_message(report, "syntax.value", row, text)
        return None
    if len(value) > limits.output_characters:
        text = (
            f"The output for {quote(name)} has {len(value):,} characters; allowed are"
            f" {limits.output_characters:,}. The line is dropped."
        )
        _add_message(report, "limits.output", row, text)
        return None
    cleaned = clean_text(value)
    if cleaned.controls:
        text = (
            f"The output for {quote(name)} holds a control character, which no text has. The line"
            " is dropped."
        )
        _add_message(report, "syntax.control", row, text)
        return None
    if not cleaned.text:
        text = f"The output for {quote(name)} has no text that can be seen. The line is dropped."
        _add_message(report, "syntax.output_empty", row, text)
        return None
    _report_removed_characters(cleaned, name, row, report)
    return cleaned


def _report_removed_characters(cleaned: Cleaned, name: str, row: Row, report: Report) -> None:
    if cleaned.bidirectional:
        text = (
            f"The output for {quote(name)} holds marks that turn the direction of writing"
            f" ({cleaned.bidirectional}). They are removed."
        )
        _add_message(report, "syntax.bidirectional", row, text)
    if cleaned.invisible:
        text = (
            f"The output for {quote(name)} holds characters that nobody can see"
            f" ({cleaned.invisible}). They are removed."
        )
        _add_message(report, "syntax.invisible", row, text)
    if cleaned.markup:
        text = (
            f"The output for {quote(name)} holds markup, {quote(cleaned.markup)}. It is kept:"
            " people are shown it as text."
        )
        _add_message(report, "syntax.markup", row, text)


def _parse_passage(row: Row, name: str, count: int, report: Report) -> int | None:
    value = row.values.get("passage")
    if value is None or value == "":
        return None
    number = value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        number = int(value)
    if type(number) is int and 0 <= number < count:
        return number
    text = (
        f"The input {quote(name)} has no passage {quote(str(value))}; they are counted from 0 to"
        f" {count - 1}. The output is kept without it."
    )
    if count == 0:
        text = f"The input {quote(name)} has no passages. The output is kept without its passage."
    _add_message(report, "reference.passage", row, text)
    return None


def _report_coverage(
    has_any: bool,
    n_unknown: int,
    known: Mapping[str, int],
    inputs: Mapping[str, int],
    report: Report,
) -> None:
    if not known:
        if n_unknown:
            text = (
                "None of the inputs that the file names is in this corpus. It is for another one."
            )
            report.add("reference.other_inputs", 0, text)
        elif not has_any and not report.errors:
            report.add("syntax.empty", 0, "The file holds no output.")
        elif not has_any and (seems := explain_wrong_format(report, EXPECTED)):
            report.add("syntax.nothing_usable", 0, seems.strip())
        return
    missing = [name for name in inputs if name not in known]
    if missing:
        share = f"{len(missing):,} of {len(inputs):,} inputs"
        text = f"{share} have no usable output: {first_names_text(missing)}."
        report.add("consistency.input_missing", 0, text)
