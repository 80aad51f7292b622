"""Draws the rounds of expert checks that admins ordered, from the targets that an expert could
check now, each with its weight and doubt.
"""

from __future__ import annotations

import numpy as np
from django.db.models import Q

from estimators.sums import sum_by_code
from kbpo.evaluation.data import load_data
from kbpo.experts.draw import Answered, Frame, draw_round, read_checks
from kbpo.instances.merge import RATINGS
from kbpo.instances.models import Label
from kbpo.queue import handle_rows
from kbpo.sampling.models import ExpertCheck, ExpertRound, SampleBatch
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.corrected import WIDEST, Corrections
from scoring.data import Data
from scoring.default import Centred
from scoring.documents import NEVER
from scoring.double_sampling import LEAST, Checks, Corrected
from scoring.score import Score

SURE = 10
"""Weight of the prior, in checks, in the estimated probability that votes are right"""


def tick() -> int:
    """Draw the rounds of checks that admins ordered, and return how many were drawn."""
    return handle_rows(ExpertRound, "asked", _draw_round)


def _draw_round(expert_round: ExpertRound) -> None:
    draw_round(expert_round, read_frame(expert_round.track, load_data(expert_round.track)))


def read_frame(track: Track, data: Data) -> Frame:
    """Return the targets that an expert may check now (the sampling frame of a round of checks).
    They were drawn and are in the sample, and their label comes from the crowd, from imported
    ratings, or from readers of the document.
    """
    if not data.judged.size:
        nothing = np.zeros(0)
        return Frame(np.zeros(0, dtype=np.int64), np.zeros((0, 1)), nothing, nothing, nothing)
    arranged = Centred(data, track.criterion)
    codes, row_target = arranged.counted_targets
    ids = data.pool.target_id[codes]
    a = data.pool.p[track.distribution][arranged.row].toarray() / arranged.row_pi[:, None]
    able = ~_was_unanswered_before_mark(arranged)
    verdicts = np.where(able[:, None], data.f[track.criterion][arranged.judged_positions], np.nan)
    judged = ~np.isnan(verdicts)
    for criterion in data.noise:  # an expert rates a text under all, whichever people rated
        judged |= able[:, None] & ~np.isnan(data.f[criterion][arranged.judged_positions])
    a = np.where(judged, a * data.shown, 0.0)
    a = sum_by_code(
        np.column_stack([a, _joint_recall_weights(arranged) * able]), row_target, codes.size
    )
    n, disagreement = count_votes(ids)
    able = (n > 0) & (a.sum(axis=1) > 0)
    majority = _probability_majority_is_right(track, ids, n, disagreement)
    doubt = _doubt_of_targets(arranged, data, verdicts, majority)
    checks = read_checks(track, ids)
    return Frame(
        target_id=ids[able],
        a=a[able],
        doubt=doubt[able],
        inclusion=np.where(data.inclusion.drawn, data.inclusion.asked, 0.0)[codes][able],
        checked=checks.e.max(axis=0)[able] if checks else np.zeros(int(able.sum())),
    )


def _was_unanswered_before_mark(centred: Centred) -> Bools:
    """Return (n,) whether a question about the row ended unanswered before readers of the whole
    document marked its target. Rows whose questions are still open may enter the sample later, so
    they can be checked.
    """
    return np.asarray(centred.data.mark[centred.data.pool.target[centred.row]] >= NEVER)


def _joint_recall_weights(centred: Centred) -> Floats:
    """Return (n,) each row's weight in the number of true facts that all systems predict together,
    divided by its inclusion probability. 0 on tracks without recall.
    """
    if centred.data.facts is None:
        return np.zeros(centred.row.size)
    share = centred.fact_shares("fact").pool_shares
    verdicts = centred.data.f[centred.data.base][centred.judged_positions, 0]
    verdict_known = ~np.isnan(verdicts)
    return np.asarray(share[centred.row] / max(share.sum(), 1.0) * verdict_known / centred.row_pi)


def count_votes(ids: Ids) -> tuple[Ids, Floats]:
    """Return how many people answered about each target, and how far they disagree. Where no
    question was answered, readers who marked the target are counted. Imported ratings count as
    answers. 0 where an expert or a gold standard gave the label.
    """
    n, disagreement = np.zeros(ids.size, dtype=np.int64), np.zeros(ids.size)
    elsewhere, apart = np.zeros(ids.size, dtype=np.int64), np.zeros(ids.size)
    labels = (
        Label.objects.filter(target__in=ids.tolist()).exclude(value={}).order_by("created_at", "pk")
    )
    asked, settled = set[int](), set[int]()
    labels = labels.annotate(rates=Q(value__has_key=RATINGS))
    for target, source, size, share, rates in labels.values_list(
        "target_id", "source", "n", "disagreement", "rates"
    ):
        place = int(np.searchsorted(ids, target))
        if source == Label.Source.CROWD:
            n[place], disagreement[place] = max(size, 1), share
            asked.add(place)
        elif source == Label.Source.DOCUMENT and place not in asked:
            n[place], disagreement[place] = max(size, 1), share
        elif source == Label.Source.IMPORT and rates:
            elsewhere[place] += max(size, 1)
            apart[place] = max(apart[place], share)
        elif source in (Label.Source.EXPERT, Label.Source.IMPORT):
            settled.add(place)
    n, disagreement = n + elsewhere, np.maximum(disagreement, apart)
    n[list(settled)] = 0
    return n, disagreement


def find_imported(ids: Ids) -> Bools:
    """Return (t,) whether all ratings of a target were imported from files."""
    labels = Label.objects.filter(target__in=ids.tolist(), value__has_key=RATINGS)
    rated = dict[int, set[str]]()
    for target, source in labels.values_list("target_id", "source"):
        rated.setdefault(target, set()).add(source)
    elsewhere = [target for target, sources in rated.items() if sources == {Label.Source.IMPORT}]
    return np.isin(ids, elsewhere)


def _probability_majority_is_right(track: Track, ids: Ids, n: Ids, disagreement: Floats) -> Floats:
    """Return (t',) the probability that the crowd's answer is right, given its votes. It is fitted
    to the expert checks so far, for each pattern of votes.
    """
    majority = (n * (1 - disagreement) + 1) / (n + 2)
    answered = ExpertCheck.objects.filter(
        track=track, kind="check", answered_at__isnull=False, target__in=ids.tolist()
    )
    said = np.array(list(answered.values_list("target", "agrees")), dtype=np.int64).reshape(-1, 2)
    at = np.searchsorted(ids, said[:, 0])
    pattern = np.column_stack([n, np.rint(n * disagreement)])
    for votes in np.unique(pattern[at], axis=0):
        alike = (pattern == votes).all(axis=1)
        agree = said[alike[at], 1]
        prior = SURE * majority[alike]
        majority[alike] = (prior + agree.sum()) / (SURE + agree.size)
    return np.asarray(majority)


def _doubt_of_targets(centred: Centred, data: Data, verdicts: Floats, majority: Floats) -> Floats:
    """Return (t',) the doubt q (1 − q) of the most doubtful row of each target, where q is the
    probability that its judgment is right. q combines the votes and the model's guess as if they
    were independent. A rating is treated as the probability that another person agrees.
    """
    row_target = centred.counted_targets[1]
    majority = majority[row_target]
    g = np.clip(data.g[centred.criterion][centred.row], 0.05, 0.95)
    c = np.nan_to_num(verdicts).max(axis=1)
    agrees = c * g + (1 - c) * (1 - g)
    if data.noise:  # the model has no guess for what was rated under other criteria only
        agrees[np.isnan(verdicts).all(axis=1)] = 0.5
    q = majority * agrees / (majority * agrees + (1 - majority) * (1 - agrees))
    doubt = np.zeros(centred.counted_targets[0].size)
    np.maximum.at(doubt, row_target, q * (1 - q))
    return doubt


def counted_expert_checks(track: Track, data: Data) -> Checks | None:
    """Return the expert checks that correct scores; None if there are none."""
    targets = np.unique(data.pool.target[data.judged])
    ids = data.pool.target_id[targets]
    answered = read_checks(track, ids)
    if answered is None or not answered.checked.any():
        return None
    judged = SampleBatch.objects.test_part().filter(
        settled_at__lte=answered.settled_by, submission__in=data.systems
    )
    return Checks(
        target=targets,
        rounds=answered.rounds,
        pi=answered.pi,
        e=answered.e,
        checked=answered.checked,
        by_crowd=count_votes(ids)[0] > 0,
        imported=find_imported(ids),
        f=_expert_verdicts(track, data, answered),
        since=np.isin(data.systems, list(judged.values_list("submission_id", flat=True))),
    )


def _expert_verdicts(track: Track, data: Data, answered: Answered) -> dict[str, Floats]:
    """Return, for each criterion, the experts' verdicts on the judged rows, shape (k, m)."""
    pool, judged = data.pool, data.judged
    answered_rows = np.flatnonzero(
        np.isin(pool.target_id[pool.target[judged]], list(answered.values))
    )
    verdicts = {}
    verdict_of_criterion = kind_of(track).judge(
        pool.instance[judged[answered_rows]], pool.systems, answers=answered.values
    )
    for criterion, verdict in verdict_of_criterion.items():
        verdicts[criterion] = np.full((judged.size, len(pool.systems)), np.nan)
        verdicts[criterion][answered_rows] = verdict
    return verdicts


LATE = (
    "No round of expert checks could draw from its judgments yet, so its scores are not corrected."
)
BROUGHT = (
    "Some of its texts were rated elsewhere, and no round of expert checks could draw those ratings"
    " yet, so its scores are not corrected."
)
UNCOVERED = (
    "Recall and F1 are not corrected: they rest on what all systems predict together, and of some"
    " of that no round of expert checks could draw yet."
)


def reasons_not_corrected(
    track: Track, corrected: Corrected | None, corrections: Corrections
) -> dict[int, list[str]]:
    """Return, for each submission that is not fully corrected, the reasons as sentences."""
    if corrected is None:
        return {}
    reasons = {
        system: _uncorrected_reasons(track, corrected, corrections, column)
        for column, system in enumerate(corrected.data.systems)
        if corrected.data.shown[column]
    }
    return {system: sentences for system, sentences in reasons.items() if sentences}


def _uncorrected_reasons(
    track: Track, corrected: Corrected, corrections: Corrections, column: int
) -> list[str]:
    kind = kind_of(track)
    printed = _guaranteed_quantities(track, corrections.scores, column)
    too_wide = _guaranteed_quantities(track, corrections.too_wide, column) - printed
    if corrected.has_undrawable_predictions(column, track.criterion):
        return [BROUGHT if corrected.checks.since[column] and corrected.data.noise else LATE]
    if kind.measures.mean not in printed | too_wide:
        n = corrected.count_checked_targets(column)
        return [
            f"An expert has checked {n} of its judgments so far: scores are corrected from"
            f" {LEAST} checks on, for fewer say little."
        ]
    reasons = [
        f"The expert checks so far leave its corrected {name} anywhere within more than"
        f" {WIDEST * 100:.0f} points: they are too few to print it."
        for quantity, name in (
            (
                kind.measures.mean,
                kind.measures.quantity_as_printed(
                    kind.measures.mean, track.criterion
                ).label_in_text,
            ),
            ("recall", "recall"),
            ("f1", "F1"),
        )
        if quantity in too_wide
    ]
    if (
        track.criterion in recall_criteria(track)
        and corrected.data.facts is not None
        and not corrections.covered
    ):
        reasons.append(UNCOVERED)
    return reasons


def _guaranteed_quantities(track: Track, scores: list[Score], column: int) -> set[str]:
    """Return the quantities of a system among these scores under the guaranteed criterion. Its mean
    counts under the guaranteed distribution alone.
    """
    mean = kind_of(track).measures.mean
    return {
        row.quantity
        for row in scores
        if row.column == column
        and row.criterion == track.criterion
        and (row.quantity != mean or row.distribution == track.distribution)
    }
