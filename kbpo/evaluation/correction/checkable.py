"""Draws the rounds of expert checks that admins ordered: what an expert could check now, and with
which weight and doubt.
"""

from __future__ import annotations

import numpy as np
from django.db.models import Q

from estimators.sums import by_code
from kbpo.evaluation.data import load_data
from kbpo.experts.answers import read_checks
from kbpo.experts.draw import Frame, draw_round
from kbpo.instances.merge import RATINGS
from kbpo.instances.models import Label
from kbpo.queue import work
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data
from scoring.default import Centred
from scoring.documents import NEVER

SURE = 10
"""Checks that the votes count as, where experts say how often such votes are right"""


def tick() -> int:
    """Draw the rounds of checks that admins ordered, and return how many were drawn."""
    return work(ExpertRound, "asked", _draw)


def _draw(row: ExpertRound) -> None:
    draw_round(row, frame_of(row.track, load_data(row.track)))


def frame_of(track: Track, data: Data) -> Frame:
    """Return the targets that an expert may check now. They were drawn and are in the sample, and
    their label comes from the crowd, from imported ratings, or from readers of the document.
    """
    if not data.judged.size:
        nothing = np.zeros(0)
        return Frame(np.zeros(0, dtype=np.int64), np.zeros((0, 1)), nothing, nothing, nothing)
    arranged = Centred(data, track.criterion)
    codes, row_target = arranged.targets
    ids = data.pool.target_id[codes]
    a = data.pool.p[track.distribution][arranged.row].toarray() / arranged.row_pi[:, None]
    able = ~_unanswered(arranged)
    verdicts = np.where(able[:, None], data.f[track.criterion][arranged.at], np.nan)
    judged = ~np.isnan(verdicts)
    for criterion in data.noise:  # an expert rates a text under all, whichever people rated
        judged |= able[:, None] & ~np.isnan(data.f[criterion][arranged.at])
    a = np.where(judged, a * data.shown, 0.0)
    a = by_code(
        np.column_stack([a, _joint_recall_weights(arranged) * able]), row_target, codes.size
    )
    n, disagreement = votes_of(ids)
    able = (n > 0) & (a.sum(axis=1) > 0)
    majority = _majority_right(track, ids, n, disagreement)
    doubt = _doubt(arranged, data, verdicts, majority)
    checks = read_checks(track, ids)
    return Frame(
        target_id=ids[able],
        a=a[able],
        doubt=doubt[able],
        inclusion=np.where(data.inclusion.drawn, data.inclusion.asked, 0.0)[codes][able],
        checked=checks.e.max(axis=0)[able] if checks else np.zeros(int(able.sum())),
    )


def _unanswered(arranged: Centred) -> Bools:
    """Return (n,) whether a question about the row was not answered before its target was marked.
    Marks whose questions are still open may enter the sample later, so they can be checked.
    """
    return np.asarray(arranged.data.mark[arranged.data.pool.target[arranged.row]] >= NEVER)


def _joint_recall_weights(arranged: Centred) -> Floats:
    """Return (n,) the weight of each row in the number of true facts that all systems predict
    together, divided by its inclusion probability. 0 where a track has no recall.
    """
    if arranged.data.facts is None:
        return np.zeros(arranged.row.size)
    share = arranged.shares_of("fact").pool
    verdicts = arranged.data.f[arranged.data.base][arranged.at, 0]
    verdict_known = ~np.isnan(verdicts)
    return np.asarray(share[arranged.row] / max(share.sum(), 1.0) * verdict_known / arranged.row_pi)


def votes_of(ids: Ids) -> tuple[Ids, Floats]:
    """Return how many people answered about each target, and their disagreement. Where no question
    was answered, readers who marked the target are counted. Imported ratings count as answers. 0
    where an expert or a gold standard gave the label.
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


def imported(ids: Ids) -> Bools:
    """Return (t,) whether all ratings of a target were imported."""
    labels = Label.objects.filter(target__in=ids.tolist(), value__has_key=RATINGS)
    rated = dict[int, set[str]]()
    for target, source in labels.values_list("target_id", "source"):
        rated.setdefault(target, set()).add(source)
    elsewhere = [target for target, sources in rated.items() if sources == {Label.Source.IMPORT}]
    return np.isin(ids, elsewhere)


def _majority_right(track: Track, ids: Ids, n: Ids, disagreement: Floats) -> Floats:
    """Return (t',) the probability that the crowd's answer is right, given its votes. It is fitted
    to the checks so far for each pattern of votes.
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


def _doubt(arranged: Centred, data: Data, verdicts: Floats, majority: Floats) -> Floats:
    """Return (t',) q (1 − q) of the most doubtful row of each target. q combines the votes and the
    model's guess as if they were independent. A rating is treated as the probability that another
    person agrees.
    """
    row_target = arranged.targets[1]
    majority = majority[row_target]
    g = np.clip(data.g[arranged.criterion][arranged.row], 0.05, 0.95)
    c = np.nan_to_num(verdicts).max(axis=1)
    agrees = c * g + (1 - c) * (1 - g)
    if data.noise:  # of what was rated under other criteria alone, the model knows nothing
        agrees[np.isnan(verdicts).all(axis=1)] = 0.5
    q = majority * agrees / (majority * agrees + (1 - majority) * (1 - agrees))
    doubt = np.zeros(arranged.targets[0].size)
    np.maximum.at(doubt, row_target, q * (1 - q))
    return doubt
