"""Reads scores of outputs by a metric or a judge: a table or JSON Lines, checked against the
existing outputs.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from formats.messages import Report, quote
from formats.tables import (
    NOTHING,
    Lines,
    Row,
    first_names_text,
    known_names_text,
    parse_identifier,
    read_rows,
)

LARGEST = 1_000_000_000
"""Largest absolute value of a score, so that squares and sums stay finite"""
OUTSIDE = f"Scores lie between −{LARGEST:,} and {LARGEST:,}"
REQUIRED = ("input_id", "value")
OPTIONAL = ("system", "metric", "version", "prompt")

Outputs = Mapping[str, Collection[str]]
"""System -> the inputs for which it has an output"""
Judge = tuple[str, str, str]
"""A metric, its version and its prompt."""


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """The score that a metric, or a judge with this version and prompt, gives one output."""

    input_id: str
    system: str
    metric: str
    value: float
    version: str
    prompt: str
    line: int


def read_scores(
    lines: Lines,
    outputs: Outputs,
    report: Report,
    *,
    system: str | None = None,
    metric: str | None = None,
    is_complete: bool = True,
    needed: Collection[str] | None = None,
    earlier_scores: Callable[[Judge], Outputs] = lambda judge: {},
    also: Mapping[str, str] = NOTHING,
) -> Iterator[ScoreRecord]:
    """Yield the usable scores in line order; messages go to the report.

    `system` and `metric` replace columns that the file does not have; `also` maps other names of
    systems to the names in `outputs`. A metric corrects human judgments only if it scores **all**
    outputs of a system. With `is_complete`, missing scores are therefore reported as errors at the
    end. All systems in `needed` (default: all systems) and all systems that the file names are
    checked; scores that a judge gave `earlier_scores` count as present. Nothing of a file with
    errors should be stored, so look at `report.errors` once the iterator is exhausted.
    """
    required = [*REQUIRED]
    required += ["system"] if system is None and len(outputs) != 1 else []
    required += ["metric"] if metric is None else []
    only = system if system is not None else next(iter(outputs), "")
    seen: dict[Judge, dict[str, dict[str, int]]] = {}
    is_any, elsewhere = False, 0
    for row in read_rows(lines, required, OPTIONAL, report):
        is_any = True
        record = _parse_record(row, only, metric or "", outputs, report, also)
        if record is None:
            elsewhere += 1
            continue
        judge = (record.metric, record.version, record.prompt)
        own = seen.setdefault(judge, {}).setdefault(record.system, {})
        if record.input_id in own:
            text = (
                f"{quote(record.metric)} has scored this output on line {own[record.input_id]}"
                " already."
            )
            report.add("consistency.score_twice", row.number, text, row.line)
            continue
        own[record.input_id] = row.number
        yield record
    if report.fatal:
        return
    if not seen:
        _report_no_scores(is_any, elsewhere, report)
    elif is_complete and not report.errors:  # else what is missing may be what could not be read
        wanted = list(outputs if needed is None else needed) if system is None else [system]
        for judge, systems in seen.items():
            asked = [*wanted, *(name for name in systems if name not in wanted)]
            _check_coverage(judge[0], systems, earlier_scores(judge), outputs, asked, report)


def read_scores_by_id(
    lines: Lines, known_ids: Collection[int], report: Report, *, metric: str | None = None
) -> Iterator[tuple[int, ScoreRecord]]:
    """Yield the usable scores of a file that refers to items by the service's numbers (`id`, as in
    questions to judges), each with its number; messages go to the report.
    """
    required = ["id", "value", *(["metric"] if metric is None else [])]
    seen: dict[tuple[str, str, str, int], int] = {}
    is_any = False
    for row in read_rows(lines, required, ("metric", "version", "prompt"), report):
        is_any = True
        number = row.finite_number("id")
        if number is None or number not in known_ids:
            text = f"The track has nothing with the id {quote(str(row.values['id']))}."
            report.add("reference.output", row.number, text, row.line)
            continue
        record = _score_record(row, str(row.values["id"]), "", metric or "", report)
        if record is None:
            continue
        key = (record.metric, record.version, record.prompt, int(number))
        if key in seen:
            text = f"{quote(record.metric)} has scored this on line {seen[key]} already."
            report.add("consistency.score_twice", row.number, text, row.line)
            continue
        seen[key] = row.number
        yield int(number), record
    if not is_any and not report.errors:
        report.add("syntax.empty", 0, "The file holds no score.")


def has_service_ids(line: str) -> bool:
    """Return whether the first line of a file of scores refers to items by the service's
    numbers.
    """
    if line.lstrip().startswith("{"):
        return '"id"' in line
    return "id" in [name.strip().strip('"').lower() for name in re.split("[\t,;]", line)]


def _report_no_scores(has_any: bool, n_unknown: int, report: Report) -> None:
    if n_unknown and set(report.by_code) <= {"reference.input", "syntax.key_unknown"}:
        text = "None of the inputs that the file names has an output here. It is for another track."
        report.add("reference.other_inputs", 0, text)
    elif not has_any and not report.errors:
        report.add("syntax.empty", 0, "The file holds no score.")


def _parse_record(
    row: Row,
    system: str,
    metric: str,
    outputs: Outputs,
    report: Report,
    also: Mapping[str, str],
) -> ScoreRecord | None:
    """Return the score of a row, or None after a message."""
    owner = parse_identifier(row.values["system"]) if "system" in row.values else system
    owner = also.get(owner, owner) if owner else None
    if owner is None or owner not in outputs:
        shown = quote(owner or str(row.values.get("system", "")))
        text = f"The system {shown} is not in this track{known_names_text(outputs)}."
        report.add("reference.system", row.number, text, row.line)
        return None
    name = parse_identifier(row.values["input_id"])
    if name is None or name not in outputs[owner]:
        shown = quote(name or str(row.values["input_id"]))
        code, text = "reference.output", f"{quote(owner)} has no output for the input {shown}."
        if not any(name in own for own in outputs.values()):
            code, text = "reference.input", f"The input {shown} is not in the corpus."
        report.add(code, row.number, text, row.line)
        return None
    return _score_record(row, name, owner, metric, report)


def _score_record(
    row: Row, name: str, owner: str, metric: str, report: Report
) -> ScoreRecord | None:
    """Return a row's score of an existing output; None after a message."""
    value = row.finite_number("value")
    if value is None:
        text = f"The value {quote(str(row.values['value']))} is no finite number."
        report.add("syntax.number", row.number, text, row.line)
        return None
    if abs(value) > LARGEST:
        text = f"{OUTSIDE}, this one does not: {quote(str(row.values['value']))}."
        report.add("syntax.number", row.number, text, row.line)
        return None
    named = (
        parse_identifier(row.values["metric"]) if row.values.get("metric") is not None else metric
    )
    more = [_parse_label(row.values.get(key)) for key in ("version", "prompt")]
    if not named or None in more:
        text = "The metric, its version and its prompt are short strings."
        report.add("syntax.value", row.number, text, row.line)
        return None
    return ScoreRecord(name, owner, named, value, more[0] or "", more[1] or "", row.number)


def _parse_label(value: object) -> str | None:
    """Return a version or the name of a prompt; empty if it is missing, None if it is not a short
    string.
    """
    return "" if value is None or value == "" else parse_identifier(value)


def _check_coverage(
    metric: str,
    systems: Outputs,
    earlier_scores: Outputs,
    outputs: Outputs,
    wanted_systems: Sequence[str],
    report: Report,
) -> None:
    """Report the outputs of the wanted systems that a metric has not scored."""
    is_first = not any(earlier_scores.get(name) for name in wanted_systems)
    if len(systems) == 1 and len(wanted_systems) > 1 and is_first:
        text = (
            f"{quote(metric)} has scores for {quote(next(iter(systems)))} alone, but there are"
            f" {len(wanted_systems)} systems. A comparison needs all of them."
        )
        report.add("consistency.one_system", 0, text)
        return
    for name in wanted_systems:
        scored = {*systems.get(name, ()), *earlier_scores.get(name, ())}
        missing = [i for i in outputs[name] if i not in scored]
        if missing:
            text = (
                f"{quote(metric)} has no score for {len(missing):,} of {len(outputs[name]):,}"
                f" outputs of {quote(name)}: {first_names_text(missing)}."
            )
            report.add("consistency.scores_missing", 0, text)
