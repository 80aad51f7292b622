"""Variance components of the judgments behind the priors: as published, and corrected.

usage: python benchmarks/price_components.py

Chaganty, Mussmann and Liang (2018) print as σ_f² the variance of the mean judgment of an output,
which still contains σ_a² times the mean of 1/c with c judgments an output; corrected, that is
subtracted. Their data (../shared/data/nlg/price2018, half of the inputs) on their scales: facets
−1, 0, 1, words edited (HTER), shares of passages. `within` is corrected and within one system, the
mean over systems. `plan` is the number of judgments that σ_f² + σ_a² asks for, published over
corrected; `most` is what a perfect metric is worth, (1 + γ)/γ.
"""

import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tables
from estimators.components import variance_components

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "nlg" / "price2018"
CRITERIA = {
    "summaries": {
        "fluency": "grammar",
        "redundancy": "redundancy",
        "overall": "overall",
        "hter": "hter",
    },
    "answers": {"any_correct": "AnyCorrect", "avg_correct": "AvgCorrect"},
}


def read_judgments(file, field):
    """Return the values (n,), the output of each, and the system of each output."""
    values, item, system = [], [], []
    with gzip.open(DATA / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for output in map(json.loads, lines):
            given = [one[field] for one in output["judgments"] if one[field] is not None]
            values += given
            item += [len(system)] * len(given)
            system.append(output["system"])
    return np.array(values, dtype=float), np.array(item), system


def variance_components_of(values, item):
    """Return the variance between annotators (σ_a²) and between outputs (σ_f²) by the published
    formulas, and the latter corrected.
    """
    found = variance_components(values, item)
    codes = np.unique(item, return_inverse=True)[1]
    means = np.bincount(codes, values) / np.bincount(codes)
    return found.sigma_a2, float(means.var(ddof=1)), found.sigma_f2


def main() -> None:
    rows = []
    for file, fields in CRITERIA.items():
        for name, field in fields.items():
            values, item, system = read_judgments(file, field)
            sigma_a2, published, corrected = variance_components_of(values, item)
            of = defaultdict(list)
            for number, owner in enumerate(system):
                for one in owner.split(";"):  # equal answers of several systems
                    of[one].append(number)
            within = [
                variance_components_of(values[k], item[k])[2] for k in _rows_by_system(of, item)
            ]
            plan = (published + sigma_a2) / (corrected + sigma_a2)
            most = (1 + corrected / sigma_a2, 1 + published / sigma_a2)
            row = [name, values.size, sigma_a2, published, corrected, float(np.mean(within))]
            rows.append([*row, most[1], most[0], plan])
    header = ["criterion", "judgments", "sigma_a2", "sigma_f2 published", "corrected", "within"]
    header += ["most published", "most corrected", "plan"]
    tables.print_and_write("price_components", header, rows)


def _rows_by_system(of, item):
    """Yield the judgments of each system."""
    for numbers in of.values():
        yield np.flatnonzero(np.isin(item, numbers))


if __name__ == "__main__":
    main()
