"""What happens in each fixed world, and what is kept of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kbpo.instances.models import Target
from kbpo.submissions.models import Submission
from scoring.report import Comparison, report_as_dict
from tests.test.golden.fixed_world import FixedWorld, Relation, chance, model

Lines = Iterator[tuple[str, dict[str, Any]]]


def predicts(run: str, of_true: float, of_false: float) -> Callable[[Relation], bool]:
    """What a system predicts: a share of what is true, and another one of what is not."""
    return lambda one: chance(run, "states", one.key) < (of_true if one.true else of_false)


def by_draws(files: Path) -> FixedWorld:
    """Design iid: three systems, five documents in which what is not marked is false, one sample
    half judged.
    """
    world = FixedWorld("Draws", files, "iid", half_width="0.090", nonresponse=0.04)
    world.upload("patterns", "Patterns", predicts("patterns", 0.55, 0.15))
    world.judge("patterns", "Patterns")
    world.read_in_full([1, 4, 6, 9, 12], closed=True)
    world.upload("neural", "Neural", predicts("neural", 0.8, 0.45))
    world.judge("neural", "Neural")
    world.upload("third", "Third", predicts("third", 0.6, 0.3))
    world.confirm("third", "Third")
    world.answer(len(world.waiting()) // 2)
    world.tick()
    world.upload("draft", "Third", predicts("draft", 0.5, 0.2))
    return world


def by_thresholds(files: Path) -> FixedWorld:
    """Design poisson: documents whose readers miss some; experts' judgments among the crowd's; two
    rounds of checks, of which the second is open; the sample of one system is half judged.
    """
    world = FixedWorld("Thresholds", files, "poisson", nonresponse=0.12)
    world.upload("patterns", "Patterns", predicts("patterns", 0.55, 0.15))
    world.judge("patterns", "Patterns")
    world.read_in_full([1, 4, 6, 9, 12], finds=0.7)
    world.upload("neural", "Neural", predicts("neural", 0.8, 0.45))
    world.confirm("neural", "Neural")
    world.say(world.waiting()[::9], source="expert")
    world.judge("neural", "Neural")
    world.draw_checks(40)
    world.check(28)
    world.end_checks()
    world.tick()
    world.upload("third", "Third", predicts("third", 0.6, 0.3))
    world.judge("third", "Third")
    world.draw_checks(30)
    world.check(16)
    world.upload("fourth", "Third", predicts("fourth", 0.7, 0.2))
    world.confirm("fourth", "Third")
    world.answer(len(world.waiting()) // 2)
    world.tick()
    world.upload("draft", "Neural", predicts("draft", 0.5, 0.2))
    return world


WORLDS = {
    "draws": by_draws,
    "thresholds": by_thresholds,
}
LEFT_OUT = {"id", "evaluation", "submission", "made_at"}


def kept(world: FixedWorld) -> dict[str, dict[str, Any]]:
    """What is kept of a world, each row by a name that says what it is about."""
    found: dict[str, dict[str, Any]] = {}
    for part in (
        _estimates(world),
        _looks(world),
        _evaluations(world),
        _batches(world),
        _plans(world),
    ):
        for name, row in part:
            assert name not in found, name
            found[name] = row
    return found


def _names() -> dict[int, str]:
    return dict(Submission.objects.values_list("pk", "name"))


def _estimates(world: FixedWorld) -> Lines:
    """Every figure of the last evaluation, and those of ends of stages but for slices."""
    names, last = _names(), world.track.evaluations.order_by("number").last()
    for stage, evaluation in enumerate(
        world.track.evaluations.with_full_report().order_by("number"), start=1
    ):
        title = "last" if evaluation == last else f"stage end {stage}"
        figures = dict(evaluation.report.figures)
        if evaluation == last:
            figures |= evaluation.details.figures
        for key, figure in figures.items():
            if key.method.endswith("_like"):  # tests/test/evaluation/test_documents_like.py
                continue
            name = " | ".join([title, names[key.submission], *key[1:]])
            yield "estimate | " + name, report_as_dict(figure)


def _looks(world: FixedWorld) -> Lines:
    names = _names()
    for row in model("evaluation.InterimInterval").objects.filter(submission__track=world.track):
        yield f"interim interval | {names[row.submission_id]} | {row.n}", _columns(row)


def _evaluations(world: FixedWorld) -> Lines:
    """What the last evaluation rests on, and the comparisons of systems with one another."""
    last = world.track.evaluations.order_by("number").last()
    report, details = last.report, last.details
    told = report_as_dict(report)
    kept = (
        *("scope", "draws", "targets", "released", "model", "correlation", "documents"),
        *("of_documents", "misses", "labels", "saved", "by_each", "unjudged", "strengths"),
        "not_corrected",
    )
    settings = {name: told[name] for name in kept}
    settings["standing"] = last.standing
    settings["late_scorers"] = told["late_scorers"]
    judges = {**report.judges, "all": report.board_judges}
    settings["agreement"] = {
        str(name): {"answers": one.answers, "agree": one.agree}
        for name, one in judges.items()
        if one.answers
    }
    settings["expert"] = {
        criterion: {name: value for name, value in one.items() if value is not None}
        for criterion, one in told["expert"].items()
    }
    settings["bootstrap"] = told["bootstrap"]
    relations, criterion = report_as_dict(details.relations), details.overlap_criterion
    settings["comparisons"] = {
        "|".join(key): _compared(comparison)
        for key, comparison in report.comparisons.items()
        if len(key) == 3  # about these documents
    } | {
        "parts": {
            "criterion": criterion,
            "pairs": {
                "|".join(map(str, pair)): [list(report_as_dict(part).values()) for part in parts]
                for pair, parts in details.overlap.items()
            },
        },
        "relations": relations,
    }
    for name, value in _flat(settings):
        yield f"evaluation | {name}", {"is": value}


def _compared(comparison: Comparison) -> dict[str, Any]:
    """A comparison; `df` is null where it is infinite, what is not told is not there."""
    told = report_as_dict(comparison) | {"covariance": comparison.covariance}
    df = told.pop("df")
    if comparison.best is None:
        del told["groups"]
    return {name: value for name, value in told.items() if value is not None} | {"df": df}


def _batches(world: FixedWorld) -> Lines:
    """What each batch drew, and the thresholds that it raised."""
    names = _names()
    u = dict(Target.objects.values_list("pk", "u"))
    for batch in model("sampling.SampleBatch").objects.filter(submission__track=world.track):
        title = f"batch | {names[batch.submission_id]} | {batch.distribution.kind} | {batch.stage}"
        yield title, {"size": batch.size, "seed": batch.seed}
        for name, value in _flat(batch.settings):
            yield f"{title} | {name}", {"is": value}
        for what, rows, column in (
            ("sample", batch.samples, "probability"),
            ("threshold", batch.thresholds, "pi"),
        ):
            pairs = sorted(rows.values_list("target_id", column))
            sums = {
                "n": len(pairs),
                "sum": math.fsum(p for _, p in pairs),
                "sum u": math.fsum(p * u[target] for target, p in pairs),
            }
            yield f"{title} | {what}", sums
        own = getattr(batch, "own", None)
        if own is not None:
            yield f"{title} | own", {"sum": math.fsum(np.frombuffer(own.pi, dtype="<f8").tolist())}


def _plans(world: FixedWorld) -> Lines:
    """What drafts and orders of more were told."""
    for row in Submission.objects.filter(track=world.track).order_by("pk"):
        for name, value in _flat({"status": row.status, "why": row.stage_reason, "plan": row.plan}):
            yield f"plan | {row.name} | {name}", {"is": value}
    for row in (
        model("sampling.Further")
        .objects.filter(submission__track=world.track)
        .select_related("submission")
    ):
        for name, value in _flat({"order": row.order, "plan": row.plan}):
            yield f"more | {row.submission.name} | {name}", {"is": value}


def _columns(row: Any) -> dict[str, Any]:
    names = [column.name for column in row._meta.concrete_fields if column.name not in LEFT_OUT]
    keys = ("quantity", "criterion", "distribution", "method", "slice")
    return {name: getattr(row, name) for name in names if name not in keys}


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a JSON value, by their path. Numbers of submissions are kept:
    they are fixed.
    """
    if isinstance(value, dict):
        for key, inner in sorted(value.items()):
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _flat(inner, f"{name}[{at}]")
    else:
        yield name, value


def written(rows: dict[str, dict[str, Any]]) -> str:
    """The text of a golden file: a line a row."""
    return "".join(
        f"{name}\t{json.dumps(rows[name], ensure_ascii=False)}\n" for name in sorted(rows)
    )


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a golden file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: json.loads(row) for name, _, row in (line.partition("\t") for line in lines)}
