"""The inputs of a track of generated texts, as JSON Lines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from formats.cleaning import clean_text
from formats.messages import Report, quote
from formats.opening import Limits, Objects
from formats.tables import parse_identifier

_TEXTS = ("source", "question", "prompt", "split", "part", "cluster")
_LISTS = ("passages", "references")
_KEYS = frozenset({"input_id", *_TEXTS, *_LISTS})


@dataclass(frozen=True, slots=True)
class InputRecord:
    """An input: a source to summarise, a question with passages, or both, and the references that
    people wrote for it. Where texts are rated by themselves, only the id is needed.
    """

    input_id: str
    source: str
    question: str
    passages: tuple[str, ...]
    references: tuple[str, ...]
    prompt: str
    """The instruction that the systems were given, if there are several."""
    split: str
    line: int
    part: str = ""
    """"dev" or "test"; empty if the file does not say"""
    cluster: str = ""
    """Inputs with the same cluster are in the same part"""


class _Bad(Exception):
    """Raised for a defect because of which the input is dropped; has a code and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def read_inputs(
    lines: Iterable[tuple[int, str]], limits: Limits, report: Report
) -> Iterator[InputRecord]:
    """Yield the usable inputs. An input with an error is reported with its line, and dropped."""
    known: dict[str, int] = {}
    unknown_keys: set[str] = set()
    objects = Objects(report)
    for number, line in lines:
        if not line or line.isspace():
            continue
        data = objects.parse(number, line)
        if data is None:
            continue
        try:
            record = _parse_record(data, number, limits, report, line)
            if record.input_id in known:
                raise _Bad(
                    "consistency.input_id",
                    f"The input id {quote(record.input_id)} is that of line"
                    f" {known[record.input_id]} already.",
                )
        except _Bad as defect:
            report.add(defect.code, number, str(defect), line)
            continue
        for key in sorted(data.keys() - _KEYS - unknown_keys):
            unknown_keys.add(key)
            text = (
                f"The key {quote(key)} is not known. It is ignored, here and in all further lines."
            )
            report.add("syntax.key_unknown", number, text, line)
        known[record.input_id] = number
        yield record
    objects.finish()


def _parse_record(
    data: dict[str, Any], number: int, limits: Limits, report: Report, line: str
) -> InputRecord:
    if "input_id" not in data:
        raise _Bad("syntax.key_missing", "The input has no input_id.")
    name = parse_identifier(data["input_id"])
    if name is None:
        raise _Bad(
            "syntax.value",
            "The input_id is a string of at most 200 characters that can be printed.",
        )
    texts = {key: _check_text(data.get(key), key, name, limits) for key in _TEXTS}
    lists = {key: _check_texts(data.get(key), key, name, limits) for key in _LISTS}
    if len(lists["passages"]) > limits.passages:
        raise _Bad(
            "limits.passages",
            f"The input {quote(name)} has {len(lists['passages']):,} passages; allowed are"
            f" {limits.passages:,}.",
        )
    if texts["part"] not in ("", "dev", "test"):
        raise _Bad("syntax.value", f"The part of {quote(name)} is “dev” or “test”.")
    return InputRecord(
        name,
        texts["source"],
        texts["question"],
        lists["passages"],
        lists["references"],
        texts["prompt"],
        texts["split"],
        number,
        texts["part"],
        texts["cluster"],
    )


def _check_text(value: object, key: str, name: str, limits: Limits) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Bad("syntax.value", f"{quote(key)} of {quote(name)} is not a string.")
    if len(value) > limits.document_characters:
        raise _Bad(
            "limits.document",
            f"{quote(key)} of {quote(name)} has {len(value):,} characters; allowed are"
            f" {limits.document_characters:,}.",
        )
    cleaned = clean_text(value)
    if cleaned.controls:
        raise _Bad(
            "syntax.control",
            f"{quote(key)} of {quote(name)} holds a control character, which no text has.",
        )
    return cleaned.text


def _check_texts(value: object, key: str, name: str, limits: Limits) -> tuple[str, ...]:
    """Return texts in their order without empty ones; a string becomes a list of one."""
    values = [value] if isinstance(value, str) else value
    if values is None:
        return ()
    if not isinstance(values, list):
        raise _Bad("syntax.value", f"{quote(key)} of {quote(name)} is not a list.")
    texts = []
    for item in values:
        if item is None:
            raise _Bad("syntax.value", f"{quote(key)} of {quote(name)} holds null.")
        texts.append(_check_text(item, key, name, limits))
    if key == "references":
        texts = [text for text in texts if text]
    return tuple(texts)
