"""Draws the estimators of the methods page. Every number in a figure is computed by the estimator
that it explains.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from estimators.estimate import Estimate
from estimators.horvitz_thompson import centred, hajek
from estimators.poisson import planned_variance, select, water_fill
from estimators.pool import pool_recall
from estimators.recall import recall
from kbpo.web.components import sketch
from kbpo.web.components.drawing import Interval
from kbpo.web.components.figures import NBSP, number_text
from kbpo.web.components.sketch import Figure


@cache
def draw_thresholds() -> Figure:
    """Chances of being asked, those that others had raised and those raised now, and the numbers
    that decide.
    """
    rng = np.random.default_rng(8)
    weight = np.sort(rng.gamma(3.0, size=40))[::-1]
    p, guess, u = weight / weight.sum(), rng.beta(1.5, 1.5, 40), rng.random(40)
    doubt = np.maximum(guess * (1 - guess), 0.06)
    before = np.where(
        rng.random(40) < 0.45, rng.uniform(0.2, 0.7, 40), 0.0
    )  # predicted by systems that came earlier
    now = water_fill(p, before, doubt, target_variance=0.0035)
    asked, had = select(u, now), select(u, before)
    drawn = []
    for index in range(40):
        x, old, top = 2 + 2.46 * index, 110 - 100 * before[index], 110 - 100 * now[index]
        drawn.append(
            f'<line class="raised" x1="{x:g}%" x2="{x:g}%" y1="{old:.1f}" y2="{top:.1f}"/>'
        )
        drawn.append(f'<line class="guess" x1="{x:g}%" x2="{x:g}%" y1="110" y2="{old:.1f}"/>')
        drawn.append(sketch.dot(x, round(110 - 100 * float(u[index]), 1), "a", bool(asked[index])))
    sentence = (
        f"{int(asked.sum())} of 40 questions are asked, {int(had.sum())} of which had"
        " been asked before"
    )
    half = number_text(_half_width(planned_variance(p, now, doubt)), decimals=0)
    return Figure(
        sketch.join(
            sketch.svg("".join(drawn), 116, sentence),
            sketch.keys(
                {
                    "guess": "the chance that it had",
                    "raised": "raised now",
                    "u": "its number, asked",
                }
            ),
        ),
        "Forty questions about a new system. A column is the chance to be asked; a dot is the"
        f" question’s secret number, filled if it lies within the column. {sentence}: only"
        f" {int((asked & ~had).sum())} are new. With that the plan is ±{half} points.",
    )


def _half_width(variance: float) -> float:
    """Of an 80 % interval."""
    low, high = Estimate(0.0, variance, 0, np.zeros(0)).confidence_interval(0.8)
    return (sketch.first(high) - sketch.first(low)) / 2


WHOSE = {
    "own": "this system found it",
    "others": "only others did",
    "nobody": "no system did; people did, reading the document",
}


@cache
def draw_centred() -> Figure:
    """Return a model's guesses, the errors that people found in them, and the corrected
    estimate.
    """
    rng = np.random.default_rng(41)
    chance = np.sort(rng.beta(0.9, 0.7, 44))
    right = (rng.random(44) < chance).astype(np.float64)
    guess = np.clip(0.3 + 0.68 * chance, 0.02, 0.98)  # it ranks well and is too kind
    asked = np.flatnonzero(rng.random(44) < 0.4)
    p, pi = np.full(asked.size, 1 / 44), np.full(asked.size, 0.4)
    without = hajek(p, pi, right[asked])
    corrected = centred(p, pi, right[asked], guess[asked], float(guess.mean()))
    columns = [
        sketch.column(
            13 + 2 * index, float(guess[index]), float(right[index]) if index in asked else None
        )
        for index in range(44)
    ]
    words = sketch.text(0, 14, "right") + sketch.text(0, 114, "wrong")
    bars = [
        ("The model alone", Interval(float(guess.mean()))),
        ("Judgments alone", sketch.interval_of(without)),
        ("Both", sketch.interval_of(corrected)),
    ]
    sentence = (
        "Judgments move the model’s guess to where it should be, and the model narrows the interval"
    )
    return Figure(
        sketch.join(sketch.svg(words + "".join(columns), 122, sentence), sketch.bars(bars)),
        "Each column is what the model guesses for one prediction; a line leads from the guess to"
        f" what people said of the {asked.size} that were asked. The model alone says"
        f" {sketch.percent(float(guess.mean()))}; in truth {sketch.percent(float(right.mean()))}"
        " are right. The lines’ mean length is the correction. The 80 % interval is"
        f" {sketch.width(without)} points wide without the model and {sketch.width(corrected)}"
        " with it.",
    )


@cache
def draw_recall() -> Figure:
    """Return what a system found, what only others found and what nobody found: pooled recall
    against true recall.
    """
    own, others, nobody = 30, 20, 50
    parts = {"own": own, "others": others, "nobody": nobody}
    drawn = [sketch.stack(parts, 0)]
    pooled, true = own / (own + others), own / (own + others + nobody)
    drawn.append(
        sketch.bracket(
            own + others, 44, f"the pool: {own} of {own + others} is {sketch.percent(pooled)}"
        )
    )
    drawn.append(
        sketch.bracket(
            100, 84, f"the truth: {own} of {own + others + nobody} is {sketch.percent(true)}"
        )
    )
    sentence = (
        f"The same system has {sketch.percent(pooled)} of what the pool found and"
        f" {sketch.percent(true)} of what is true"
    )
    return Figure(
        sketch.join(sketch.svg("".join(drawn), 116, sentence), sketch.keys(WHOSE)),
        f"The {own + others + nobody} facts of some documents. {sentence}. Nothing about the system"
        " differs; only what it is measured against does.",
    )


@cache
def draw_totals() -> Figure:
    """Documents that were read, what is estimated from them and from the judgments, and recall from
    both.
    """
    rng = np.random.default_rng(20)
    n_documents, chance = 40, 0.4
    document = np.repeat(np.arange(n_documents), rng.poisson(9, n_documents))  # of every true fact
    draw = rng.random(document.size)
    own, others = draw < 0.3, (draw >= 0.3) & (draw < 0.55)
    read = np.sort(rng.choice(n_documents, 10, replace=False))
    nobody = np.bincount(document[~own & ~others], minlength=n_documents)[read]

    n_true, n_own = int((own | others).sum()), int(own.sum())
    right = np.repeat([1.0, 0.0], n_true)  # as many wrong predictions as right ones
    member = np.column_stack(
        [np.concatenate([own[own | others], rng.random(n_true) < n_own / n_true])]
    ).astype(float)
    guess = np.clip(0.5 + 0.3 * (right - 0.5) + rng.normal(0, 0.2, right.size), 0.05, 0.95)
    asked = np.flatnonzero(rng.random(right.size) < chance)
    pi, label, g = np.full(asked.size, chance), right[asked], guess[asked]
    estimate = recall(
        member[asked], pi, label, g, member.T @ guess, float(guess.sum()), nobody, n_documents
    )
    inside = np.isin(document, read)
    direct = pool_recall(
        own[inside], document=document[inside], n_annotated=read.size, n_documents=n_documents
    )

    counts = dict(zip(read.tolist(), nobody.tolist(), strict=True))
    tiles = [
        sketch.tile(2.5 + 5 * (index % 20), 4 + 22 * (index // 20), counts.get(index))
        for index in range(n_documents)
    ]
    mine, all_, missed = (
        sketch.first(estimate.totals.systems.value),
        float(estimate.totals.pool.value),
        estimate.unseen.value,
    )
    parts = {
        "own": round(mine),
        "others": round(all_) - round(mine),
        "nobody": round(float(missed)),
    }
    sentence = f"Recall is about {parts['own']} of {sum(parts.values())} facts"
    named = [
        ("From these documents alone", sketch.interval_of(direct)),
        ("From totals", sketch.interval_of(estimate.recall)),
    ]
    return Figure(
        sketch.join(
            sketch.svg("".join(tiles) + sketch.stack(parts, 56), 90, sentence),
            sketch.keys(
                WHOSE | {"nobody": "no system did: reckoned from the documents that were read"}
            ),
            sketch.bars(named),
        ),
        "Forty documents; ten were read. A number says how many true facts of a document no system"
        f" predicts: on average {nobody.mean():.1f}, so about {parts['nobody']} in all forty. How"
        f" many true facts the systems predict is estimated from {asked.size} judgments, wherever"
        f" in the corpus they lie. {sentence},"
        f" {sketch.percent(parts['own'] / sum(parts.values()))}; in truth"
        f" {sketch.percent(n_own / document.size)}. The 80{NBSP}% interval is"
        f" {sketch.width(estimate.recall)} points wide. From the ten documents alone it would be"
        f" {sketch.width(direct)}.",
    )
