"""Writes the studies of a track as CSV tables and SVG plots."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from kbpo.evaluation.studies.pooling import HEAD, study
from kbpo.evaluation.studies.reach import reach, read_incidence, sharing
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

WIDTH, HEIGHT, MARGIN = 640, 400, 60


def write_pooling(track: Track, directory: Path) -> list[Path]:
    """Write what each system would lose under pooling without its team; return the files.

    Returns no file before two teams have judged predictions.
    """
    outcome = study(track)
    if outcome is None:
        return []
    rows = outcome.rows()
    files = [_write_csv(directory / "pooling.csv", HEAD, rows)]
    for metric in outcome.bias:
        points = [
            (float(rank), bias)
            for rank, (_, _, bias) in enumerate(outcome.ranked(metric, "f1"), 1)
            if math.isfinite(bias)
        ]
        if points:
            files.append(
                _write_svg(directory / f"pooling_{metric}.svg", points, "Rank by F1", "Bias of F1")
            )
    return files


def write_reach(track: Track, directory: Path) -> list[Path]:
    """Write how often entities recur in the corpus, among drawn documents and among draws.

    Returns no file where no entity is known.
    """
    incidence = read_incidence(track)
    if incidence is None:
        return []
    frequency = [(float(n), float(entities)) for n, entities in incidence.by_frequency()]
    files = [
        _write_csv(directory / "entities.csv", ["documents", "entities"], frequency),
        _write_svg(
            directory / "entities.svg",
            [(math.log10(x), math.log10(y)) for x, y in frequency],
            "log10 of documents that name an entity",
            "log10 of entities",
        ),
    ]
    shared = [
        [design.design, design.n, what, value, mean]
        for design in sharing(incidence)
        for what, values in (
            ("entities in n documents", design.by_documents),
            ("entities in two or more documents", list(design.shared.items())),
        )
        for value, mean in values
    ]
    head = ["design", "documents_drawn", "what", "value", "mean"]
    files.append(_write_csv(directory / "documents.csv", head, shared))
    runs = Submission.objects.filter(track=track, predictions__isnull=False).distinct()
    draws = [
        [run.full_name, kind.kind, what, name, mean]
        for run in runs.select_related("track__corpus", "team").order_by("pk")
        for kind in reach(run)
        for what, values in (("entities", kind.entities), ("draws", kind.by_stratum))
        for name, mean in values.items()
    ]
    head = ["run", "distribution", "what", "name", "mean"]
    files.append(_write_csv(directory / "draws.csv", head, draws))
    return files


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def _write_svg(path: Path, points: Sequence[tuple[float, float]], x_name: str, y_name: str) -> Path:
    """Write a scatter plot with a line at y = 0 and the range of both axes."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low_x, high_x, low_y, high_y = min(xs), max(xs), min([0.0, *ys]), max([0.0, *ys])
    across = (WIDTH - 2 * MARGIN) / ((high_x - low_x) or 1.0)
    up = (HEIGHT - 2 * MARGIN) / ((high_y - low_y) or 1.0)
    dots = "".join(
        f'<circle cx="{MARGIN + (x - low_x) * across:.1f}"'
        f' cy="{HEIGHT - MARGIN - (y - low_y) * up:.1f}" r="3.5" fill="#1c58b0"/>'
        for x, y in points
    )
    zero, bottom = HEIGHT - MARGIN + low_y * up, HEIGHT - MARGIN
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="13">'
        f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{zero:.1f}" y2="{zero:.1f}"'
        f' stroke="#888"/>{dots}'
        f'<text x="{MARGIN}" y="{bottom + 20}">{low_x:.3g}</text>'
        f'<text x="{WIDTH - MARGIN}" y="{bottom + 20}" text-anchor="end">{high_x:.3g}</text>'
        f'<text x="{WIDTH / 2}" y="{bottom + 40}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text x="{MARGIN - 8}" y="{bottom}" text-anchor="end">{low_y:.3g}</text>'
        f'<text x="{MARGIN - 8}" y="{MARGIN}" text-anchor="end">{high_y:.3g}</text>'
        f'<text x="{MARGIN}" y="{MARGIN - 20}">{escape(y_name)}</text></svg>\n',
        encoding="utf-8",
    )
    return path
