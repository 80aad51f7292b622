"""Do intervals of mean ratings hold that contain annotator noise and the levels of few judges?

usage: python benchmarks/annotator_noise.py [REPEATS]        (default: 1,000)

Real judgments (../shared/data/nlg), resampled: inputs with replacement, then one judgment of each
output, all outputs judged. Printed is the mean over systems of how often an 80 % interval holds the
mean of all judgments of all inputs, or of the inputs that were drawn ("these").

- `upper bound`: no second opinion was drawn at random (second ratings of equal texts do not count).
- `second share`: 5 % of the outputs, at least 20 and at most 40, have a second judgment.
- `pooled as before`: what equal texts show is taken for what all show.
- `people`: eight people with levels of their own (sd 0.08 on ratings brought to 0.2 … 0.8), who
  judge equally many outputs, or one of them half of all.
"""

import csv
import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import tables
from estimators.horvitz_thompson import centred_difference_estimate
from estimators.ratings import (
    add_judge_effect,
    estimate_with_rating_noise,
    judge_effect,
    judgment_variance,
    rating_variance_of_outputs,
    verdict_variance,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "nlg"
LEVEL, PEOPLE, SD = 0.8, 8, 0.08


class Judged:
    """The single judgments of each text, and which systems wrote it."""

    def __init__(self, name, prompt):
        text_of, systems = {}, set()
        with gzip.open(DATA / name / "outputs.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                text_of[line["input_id"], line["system"]] = line["output"]
                systems.add(line["system"])
        self.systems = sorted(systems)
        ratings = defaultdict(lambda: defaultdict(list))
        writers = defaultdict(lambda: defaultdict(set))
        with gzip.open(DATA / name / "judgments.tsv.gz", "rt", encoding="utf-8") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                if row["prompt"] == prompt:
                    key, system = row["input_id"], row["system"]
                    text = text_of[key, system]
                    ratings[key][text].append(float(row["value"]))
                    writers[key][text].add(self.systems.index(system))
        self.inputs = [
            [(np.array(said), sorted(writers[key][text])) for text, said in ratings[key].items()]
            for key in sorted(ratings)
        ]
        total, count = np.zeros(len(systems)), np.zeros(len(systems))
        for texts in self.inputs:
            for said, wrote in texts:
                total[wrote] += said.mean()
                count[wrote] += 1
        self.truth = total / count

    def sample(self, n, rng, levels=None, share=None):
        """Return resampled texts: which systems wrote each (k, m), all its judgments, and of one
        rating of each output value, text and judge.
        """
        drawn = rng.integers(len(self.inputs), size=n)
        texts = [text for place in drawn for text in self.inputs[place]]
        said, wrote = zip(*texts, strict=True)
        n_wrote = np.array([len(one) for one in wrote])
        item = np.repeat(np.arange(len(texts)), n_wrote)
        member = np.zeros((len(texts), self.truth.size))
        member[item, np.concatenate(wrote)] = 1
        value = draw_one_judgment(said, item, rng)
        judge = np.full(item.size, -1)
        if levels is not None:
            judge = rng.choice(PEOPLE, size=item.size, p=share)
            value = np.clip(0.2 + 0.6 * value + levels[judge], 0, 1)
        return member, said, value, item, judge


def draw_one_judgment(said, rows, rng):
    """Return one randomly drawn judgment of each text, from all judgments of these texts."""
    sizes = np.array([one.size for one in said])
    start = np.cumsum(sizes) - sizes
    pick = (rng.random(len(rows)) * sizes[rows]).astype(int)
    return np.concatenate(said)[start[rows] + pick]


def share_of_covering_intervals(estimate, truth):
    """Return the share of systems whose interval contains the truth."""
    low, high = estimate.confidence_interval(LEVEL, method="wilson")
    return np.mean((np.asarray(low) <= truth) & (truth <= np.asarray(high)))


def estimate_means(member, said, value, item, n, how, rng):
    """Return the mean of every system, and how many ratings each text has."""
    k = len(member)
    second = int(min(max(20, 0.05 * k), 40)) if how == "second share" else 0
    drawn = rng.permutation(k)[:second]
    value = np.concatenate([value, draw_one_judgment(said, drawn, rng)])
    item = np.concatenate([item, drawn])
    count = np.bincount(item, minlength=k)
    mean = np.bincount(item, value) / count
    within = np.bincount(item, (value - mean[item]) ** 2, minlength=k)
    p, sure = member / n, np.ones(k)
    alone = centred_difference_estimate(p, sure, mean, np.full(k, 0.5), p.sum(axis=0) / 2)
    if how == "upper bound":
        verdict = np.where(member > 0, mean[:, None], np.nan)
        noise = np.broadcast_to(verdict_variance(verdict, member), member.shape)
        return estimate_with_rating_noise(alone, p, sure, sure, noise), count
    if how == "pooled as before":
        noise = within.sum() / max(value.size - k, 1)
        return estimate_with_rating_noise(alone, p, sure, count, noise), count
    random = np.isin(np.arange(k), drawn)
    variance = judgment_variance(value[random[item]], item[random[item]])
    noise = rating_variance_of_outputs(
        within * random, np.where(random, count, 1), member, variance
    )
    return estimate_with_rating_noise(alone, p, sure, count, noise, freedom=second), count


def measure_coverage(data, n, how, these, repeats):
    """Return how often intervals contain the mean of all inputs, or of `these` that were drawn."""
    rng, found = np.random.default_rng([n, repeats]), []
    for _ in range(repeats):
        member, said, value, item, _ = data.sample(n, rng)
        estimate, _ = estimate_means(member, said, value, item, n, how, rng)
        truth = data.truth
        if these:
            truth = member.T @ np.array([judgments.mean() for judgments in said]) / n
        found.append(share_of_covering_intervals(estimate, truth))
    return float(np.mean(found))


def measure_coverage_with_judges(data, n, half, repeats, *, term):
    """Return the coverage where eight people have levels of their own, with their term in the
    variance or without it; one of them gives `half` of the answers, or all give equally many.
    """
    rng, found = np.random.default_rng([n, repeats, half]), []
    first = 0.5 if half else 1 / PEOPLE
    share = np.array([first, *[(1 - first) / (PEOPLE - 1)] * (PEOPLE - 1)])
    for _ in range(repeats):
        member, said, value, item, judge = data.sample(n, rng, rng.normal(0, SD, PEOPLE), share)
        estimate, count = estimate_means(member, said, value, item, n, "upper bound", rng)
        if term:
            mean = np.bincount(item, value) / count
            of_systems = (member.T @ mean) / member.sum(axis=0)
            centre = (member @ of_systems) / member.sum(axis=1)
            effect = judge_effect(value - centre[item], judge, item)
            sure = np.ones(len(member))
            crossed = add_judge_effect(estimate, member / n, sure, judge, item, effect, count=count)
            estimate = crossed.estimate
        found.append(share_of_covering_intervals(estimate, 0.2 + 0.6 * data.truth))
    return float(np.mean(found))


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rows, people = [], []
    for name, prompt, sizes in (
        ("xsum_faithfulness", "faithful_words", (50, 100)),
        ("xsum_faithfulness", "faithful", (50, 100)),
        ("realsumm", "litepyramid_recall", (50,)),
    ):
        data = Judged(name, prompt)
        for n in sizes:
            row = [f"{name}, {prompt}", n, measure_coverage(data, n, "upper bound", False, repeats)]
            row.append(measure_coverage(data, n, "second share", True, repeats))
            shared = name == "realsumm"
            row.append(
                measure_coverage(data, n, "pooled as before", True, repeats) if shared else ""
            )
            rows.append(row)
            people.append([f"{name}, {prompt}", n])
            for half in (False, True):
                for term in (False, True):
                    people[-1].append(
                        measure_coverage_with_judges(data, n, half, repeats, term=term)
                    )
    header = ["judgments", "inputs", "upper bound", "second share, these", "pooled, these"]
    print(f"coverage of {LEVEL:.0%} intervals, mean over systems, {repeats:,} repeats\n")
    tables.print_and_write("annotator_noise", header, rows)
    header = [
        "judgments",
        "inputs",
        "equal, without",
        "equal",
        "half by one, without",
        "half by one",
    ]
    print(f"\n{PEOPLE} people with levels of their own, without and with their term\n")
    tables.print_and_write("annotator_noise_people", header, people)


if __name__ == "__main__":
    main()
