"""Reads what systems are run on (inputs) and what they write (outputs): JSON Lines."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from formats.limits import Limits
from formats.messages import FormatError, Report, quoted
from formats.opening import Source, open_text

_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
NAMED = 10
"""Inputs without an output that are named in one message"""


@dataclass(frozen=True, slots=True)
class Input:
    """What systems are run on; what a line does not give is empty."""

    key: str
    source: str = ""
    question: str = ""
    passages: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What a system wrote for one input, as people will see it."""

    line: int
    input: str
    text: str
    passage: int | None = None
    """The passage that it was taken from, counted from 0"""


def shown(text: str) -> str:
    """The text as people see it: composed characters, without those that nobody sees or that turn
    the direction of reading, lines without blanks at their ends.

    Examples
    --------
    >>> shown("A\\u202eB \\n")
    'AB'
    """
    lines = _UNSEEN.sub("", normalize("NFC", text)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def read_inputs(source: Source, limits: Limits) -> list[Input]:
    """The inputs of a file, in their order. Raises FormatError with the line that is wrong."""
    report = Report()
    inputs: dict[str, Input] = {}
    for number, line in open_text(source, limits.for_corpus(), report):
        if not line.strip():
            continue
        fields = _object(line)
        if fields is None:
            raise FormatError(f"Line {number} is not one JSON object.")
        key = fields.get("input_id")
        if not isinstance(key, str) or not 1 <= len(key) <= 200 or _UNSTORABLE.search(key):
            raise FormatError(f"Line {number} needs an input_id: a text of 1 to 200 characters.")
        if key in inputs:
            raise FormatError(f"Line {number} has the input_id {quoted(key)} a second time.")
        inputs[key] = Input(
            key,
            _string(fields, "source", number),
            _string(fields, "question", number),
            _strings(fields, "passages", number),
            _strings(fields, "references", number),
        )
    for message in report:
        if message.severity == "error":
            raise FormatError(message.text)
    if not inputs:
        raise FormatError("The file has no input.")
    return list(inputs.values())


def read_outputs(
    source: Source,
    known: Collection[str] | Mapping[str, int],
    limits: Limits,
    report: Report,
    tell: Callable[[int], None] = lambda line: None,
) -> Iterator[Output]:
    """Yields the usable outputs of a file, one an input; all else is in the report. `known` are the
    inputs; with how many passages each has, an output may say which one it was taken from.
    """
    answered: dict[str, int] = {}
    for number, line in open_text(source, limits.for_outputs(), report):
        report.lines = number
        tell(number)
        if not line.strip():
            continue
        report.relation_lines += 1
        output = _output(number, line, known, limits, report)
        if output is None:
            continue
        if output.input in answered:
            text = (
                f"The input {quoted(output.input)} has an output on line"
                f" {answered[output.input]} already. The first one is used."
            )
            report.add("consistency.input_twice", number, text, line)
            continue
        answered[output.input] = number
        yield output
    missing = [key for key in known if key not in answered]
    if missing and not report.fatal:
        named = ", ".join(quoted(key) for key in missing[:NAMED])
        more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
        text = f"No usable output for {len(missing):,} of {len(known):,} inputs: {named}{more}."
        report.add("consistency.input_missing", 0, text)


def _output(
    number: int,
    line: str,
    known: Collection[str] | Mapping[str, int],
    limits: Limits,
    report: Report,
) -> Output | None:
    """The output of a line; None if it cannot be used, and the report says why."""
    fields = _object(line)
    if fields is None:
        text = "This line is not one JSON object. It is dropped."
        report.add("syntax.json", number, text, line)
        return None
    for key in ("input_id", "output"):
        if key not in fields:
            text = f"The key {quoted(key)} is missing. The line is dropped."
            report.add("syntax.key_missing", number, text, line)
            return None
        if not isinstance(fields[key], str):
            text = f"The value of {quoted(key)} must be a text. The line is dropped."
            report.add("syntax.value", number, text, line)
            return None
    if fields["input_id"] not in known:
        text = f"The track has no input {quoted(fields['input_id'])}. The line is dropped."
        report.add("reference.input", number, text, line)
        return None
    if _UNSTORABLE.search(fields["output"]):
        text = "The output holds a character that no text has. The line is dropped."
        report.add("syntax.control", number, text, line)
        return None
    output = shown(fields["output"])
    if not output:
        text = "The output is empty: there is nothing to judge. The line is dropped."
        report.add("syntax.value", number, text, line)
        return None
    if len(output) > limits.output_characters:
        text = (
            f"The output has {len(output):,} characters; at most {limits.output_characters:,} are"
            " taken. The line is dropped."
        )
        report.add("limits.output", number, text, line)
        return None
    passage = fields.get("passage")
    if passage is not None and not _names_a_passage(passage, fields["input_id"], known):
        text = (
            f"There is no passage {quoted(str(passage))} of the input {quoted(fields['input_id'])}:"
            " they are counted from 0. The output is used without."
        )
        report.add("reference.passage", number, text, line)
        passage = None
    return Output(number, fields["input_id"], output, passage)


def _names_a_passage(said: Any, key: str, known: Collection[str] | Mapping[str, int]) -> bool:
    return type(said) is int and isinstance(known, Mapping) and 0 <= said < known[key]


def _object(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _string(fields: dict[str, Any], key: str, number: int) -> str:
    value = fields.get(key) or ""
    if not isinstance(value, str) or _UNSTORABLE.search(value):
        raise FormatError(f"Line {number}: {key} must be a text.")
    return value


def _strings(fields: dict[str, Any], key: str, number: int) -> tuple[str, ...]:
    values = fields.get(key) or []
    if not isinstance(values, list):
        raise FormatError(f"Line {number}: {key} must be a list of texts.")
    return tuple(_string({key: value}, key, number) for value in values)
