"""Reads the judged sets of generated texts into arrays:
metrics, words and single ratings of each output.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import django
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = Path(os.environ.get("KBPO_SHARED_DATA", ROOT.parent / "shared" / "data")) / "nlg"

# The metrics are the service's own, whose models want to be known; no database is asked.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
django.setup()

from formats.judgments import read_judgments  # noqa: E402
from formats.messages import Report  # noqa: E402
from formats.opening import Limits, open_text  # noqa: E402
from formats.scores import read_scores  # noqa: E402
from kbpo.tracks.texts.metrics import Scored, compute_metrics  # noqa: E402
from kbpo.tracks.texts.track import word_weights  # noqa: E402

SETS = {
    "realsumm": {"litepyramid_recall": (0.0, 1.0)},
    "xsum_faithfulness": {
        "faithful_words": (0.0, 1.0), "faithful": (0.0, 1.0), "factual": (0.0, 1.0),
    },
    "frank": {"factuality": (0.0, 1.0)},
    "novikova2017": {
        "informativeness": (1.0, 6.0), "naturalness": (1.0, 6.0), "quality": (1.0, 6.0),
    },
    "price2018": {"overall": (-1.0, 1.0), "grammar": (-1.0, 1.0)},
}  # fmt: skip
PRICED = ("ml", "ml+rl", "pointer", "seq2seq")
OURS = ("bleu", "chrf", "rouge_1_r", "copy_rate")


@dataclass(frozen=True)
class Judged:
    """One criterion of one set: N outputs of m systems, scaled to [0, 1]."""

    name: str
    criterion: str
    systems: list[str]
    metrics: list[str]
    system: NDArray[np.int64]
    input: NDArray[np.int64]
    features: NDArray[np.float64]
    """(N, k); NaN where a metric is missing"""
    words: sparse.csr_array | None
    ratings: NDArray[np.float64]
    """(N, c) single ratings, NaN where fewer"""
    is_single: bool
    """False if the set has one aggregated number for each output, which is then used as a rating"""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Return the mean rating of every output, which is used as the truth."""
        return np.asarray(np.nanmean(self.ratings, axis=1))

    @property
    def count(self) -> NDArray[np.int64]:
        """Return the number of ratings of every output."""
        return np.asarray((~np.isnan(self.ratings)).sum(axis=1))

    def of(self, system: int) -> NDArray[np.int64]:
        """Return the indices of the outputs that a system wrote."""
        return np.flatnonzero(self.system == system)

    def standardised(self) -> NDArray[np.float64]:
        """Return metrics with mean 0 and variance 1 within each system, 0 where missing or
        constant.
        """
        z = np.zeros_like(self.features)
        for system in range(len(self.systems)):
            rows = self.of(system)
            for column in range(z.shape[1]):
                values = self.features[rows, column]
                known = np.isfinite(values)
                if known.any() and np.ptp(values[known]) > 1e-12:
                    own = (values[known] - values[known].mean()) / values[known].std()
                    z[rows[known], column] = own
        return z

    def draw(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return one rating of each of these rows, by a person drawn at random."""
        pick = np.floor(rng.random(rows.shape) * self.count[rows]).astype(np.int64)
        return np.asarray(self.ratings[rows, pick])


def has_data() -> bool:
    """Return whether the data are available; print a message if not."""
    if DATA.exists():
        return True
    print(f"skipped: there is no {DATA}; set KBPO_SHARED_DATA to the folder that holds nlg/")
    return False


def read_set(name: str, criterion: str) -> Judged:
    """Return the outputs of a set that have ratings under the criterion and any metric."""
    if name == "price2018":
        texts, ratings = _read_price2018(criterion)
        scores: dict[tuple[str, str], dict[str, float]] = {key: {} for key in texts}
        is_single = True
    else:
        texts = _read_texts(name)
        scores = _read_scores(name, texts)
        ratings, is_single = _read_ratings(name, criterion, texts)
    keys = [key for key in texts if key in ratings and key in scores]
    if any(texts[key]["output"] for key in keys):
        _add_service_metrics(keys, texts, scores)
    metrics = sorted({metric for key in keys for metric in scores[key]})
    low, high = SETS[name][criterion]
    widest = max(len(ratings[key]) for key in keys)
    table = np.full((len(keys), widest), np.nan)
    for row, key in enumerate(keys):
        table[row, : len(ratings[key])] = ratings[key]
    systems = sorted({system for _, system in keys})
    inputs: dict[str, int] = {}
    outputs = [texts[key]["output"] or "" for key in keys]
    return Judged(
        name=name,
        criterion=criterion,
        systems=systems,
        metrics=metrics,
        system=np.array([systems.index(system) for _, system in keys]),
        input=np.array([inputs.setdefault(one, len(inputs)) for one, _ in keys]),
        features=np.array([[scores[k].get(m, np.nan) for m in metrics] for k in keys]),
        words=word_weights(outputs) if any(outputs) else None,
        ratings=(table - low) / (high - low),
        is_single=is_single,
    )


def _read_price2018(
    criterion: str,
) -> tuple[dict[tuple[str, str], dict[str, str | None]], dict[tuple[str, str], list[float]]]:
    """Return the systems' summaries of price2018, which have no metrics, and their ratings."""
    with gzip.open(DATA / "price2018" / "summaries.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["system"] in PRICED]
    texts: dict[tuple[str, str], dict[str, str | None]] = {}
    ratings: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = row["input_id"], row["system"]
        said = [one[criterion] for one in row["judgments"] if one[criterion] is not None]
        if said:
            texts[key] = {"output": row["text"], "reference": row["reference"], "source": None}
            ratings[key] = said
    return texts, ratings


def _read_texts(name: str) -> dict[tuple[str, str], dict[str, str | None]]:
    with gzip.open(DATA / name / "outputs.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {(row["input_id"], row["system"]): row for row in rows}


def _outputs_by_input(texts: dict[tuple[str, str], dict[str, str | None]]) -> dict[str, set[str]]:
    outputs: dict[str, set[str]] = {}
    for key, system in texts:
        outputs.setdefault(system, set()).add(key)
    return outputs


def _read_scores(
    name: str, texts: dict[tuple[str, str], dict[str, str | None]]
) -> dict[tuple[str, str], dict[str, float]]:
    report = Report()
    lines = open_text(DATA / name / "metrics.tsv.gz", Limits(), report)
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for record in read_scores(lines, _outputs_by_input(texts), report, is_complete=False):
        scores.setdefault((record.input_id, record.system), {})[record.metric] = record.value
    return scores


def _read_ratings(
    name: str, criterion: str, texts: dict[tuple[str, str], dict[str, str | None]]
) -> tuple[dict[tuple[str, str], list[float]], bool]:
    ratings: dict[tuple[str, str], list[float]] = {}
    path = DATA / name / "judgments.tsv.gz"
    if path.exists():
        report = Report(0)
        lines = open_text(path, Limits(), report)
        for record in read_judgments(lines, _outputs_by_input(texts), SETS[name], report):
            if record.prompt == criterion:
                ratings.setdefault((record.input_id, record.system), []).append(record.value)
        return ratings, True
    with gzip.open(DATA / name / "judgments_aggregated.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            key, system, prompt, value, *_ = line.rstrip("\n").split("\t")
            if prompt == criterion:
                ratings[key, system] = [float(value)]
    return ratings, False


def _add_service_metrics(
    keys: list[tuple[str, str]],
    texts: dict[tuple[str, str], dict[str, str | None]],
    scores: dict[tuple[str, str], dict[str, float]],
) -> None:
    """Add the metrics that the service computes, and the logarithm of the length."""
    shown = [
        Scored.from_output(
            texts[key]["output"] or "",
            [texts[key]["reference"]] if texts[key]["reference"] else [],
            texts[key]["source"] or "",
        )
        for key in keys
    ]
    for key, row in zip(keys, compute_metrics(shown, (*OURS, "length")), strict=True):
        if not texts[key]["output"]:
            continue
        row["length"] = float(np.log1p(row["length"]))
        scores[key] |= {f"our {m}": value for m, value in row.items() if np.isfinite(value)}
