"""Builds the report of a track from the computed scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from django.conf import settings

from estimators.preferences import bradley_terry
from kbpo.evaluation.correction import reasons_not_corrected
from kbpo.evaluation.due import reference_submissions
from kbpo.evaluation.judges import measure_agreement
from kbpo.evaluation.worth import measure_worth
from kbpo.instances.models import Label
from kbpo.sampling.guess import VERSION
from kbpo.scores.bring import not_tuned_statement
from kbpo.scores.models import Scorer
from kbpo.scores.read import scorers_of_track
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Duels
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.build import (
    Computed,
    coarse_figures,
    make_figures,
    make_slice_figures,
    published_bootstrap_intervals,
    share_of_missed_facts,
)
from scoring.compare import LEVEL as RANKED
from scoring.compare import (
    MOST,
    Errors,
    Order,
    compare_boards,
    compare_private_runs,
    overlaps,
)
from scoring.data import Data
from scoring.report import Comparison, Details, LateScorer, Named, Report, Strength, Strengths
from scoring.saved import best_metrics, count_unjudged, savings_by_run, savings_by_scorer
from scoring.slices import Cut, Keep, SliceScore, score_cuts


def make_report(track: Track, computed: Computed, board_submissions: set[int]) -> Report:
    """Return the report of a track. `board_submissions` are the submissions on its board."""
    kind, data = kind_of(track), computed.data
    reasons = reasons_not_corrected(track, computed.checked, computed.better)
    board_judges, judges = measure_agreement(track, data, board_submissions)
    checked = computed.checked
    late = Scorer.objects.filter(pk__in=data.pool.scorers, came_late=True)
    rows = late.select_related("not_tuned_by").order_by("pk")
    report = Report(
        version=settings.VERSION,
        model=VERSION,
        scope=track.scope,
        draws={name: int(draws.row.size) for name, draws in data.draws.items()},
        targets=int(data.inclusion.drawn.sum()),
        released=float(data.inclusion.released),
        labels=Label.objects.filter(target__corpus=track.corpus_id).count(),
        documents=data.facts.n_annotated if data.facts else 0,
        of_documents=track.corpus.n_test,
        correlation=data.rho,
        misses=share_of_missed_facts(data),
        figures=make_figures(data, computed.scores, scored_submissions(track)),
        late_scorers=tuple(LateScorer(str(row), not_tuned_statement(row)) for row in rows),
        expert={name: checked.confusion(name) for name in computed.criteria} if checked else {},
        not_corrected={system: tuple(why) for system, why in reasons.items()},
        board_judges=board_judges,
        judges=judges,
    )
    if track.hides_test:
        return _public_report(track, computed, board_submissions, report)
    alone, references = computed.alone, reference_submissions(track)
    scored = set(
        Submission.objects.filter(track=track).that_have_score().values_list("pk", flat=True)
    )
    on_board = [system for system in data.systems if system in board_submissions]
    has_card = bool(alone) or any(row.needs_statement for row in scorers_of_track(track))
    used, best = _used_scorers_and_best(kind, data, computed.criteria)
    return replace(
        report,
        comparisons=compare_boards(
            ranking_order(kind), data, computed.estimates_to_compare, board_submissions, references
        ),
        private=compare_private_runs(
            data, computed.estimates_to_compare, scored, board_submissions
        ),
        # In pairwise comparisons nothing is guessed.
        saved={} if kind.opposes else savings_by_run(computed.estimates, alone, data),
        by_each=savings_by_scorer(alone, data),
        unjudged=count_unjudged(alone, data),
        used_scorers=used,
        best_scorer=best,
        worth=measure_worth(kind, data, computed.weighted_means(track.distribution))
        if has_card
        else {},
        strengths=pairwise_strengths(kind, on_board),
        bootstrap=published_bootstrap_intervals(data, computed.criteria, kind.measures.published),
    )


def make_details(track: Track, computed: Computed, board_submissions: set[int]) -> Details:
    """Return the slices of a track and the overlap of its systems; empty while the test part is
    hidden.
    """
    if track.hides_test:
        return Details()
    data = computed.data
    scored = set(
        Submission.objects.filter(track=track).that_have_score().values_list("pk", flat=True)
    )
    # With too many systems, pairs are computed for the board only.
    paired = scored if len(scored) <= MOST else board_submissions
    errors = Errors.from_data(data, paired)
    sliced = make_slice_figures(
        data, iterate_slice_scores(track, data, errors.add_errors), scored_submissions(track)
    )
    overlap = overlaps(data, track.criterion, paired)
    return Details(sliced, overlap, track.criterion if overlap else "", errors.relations)


def ranking_order(kind: Kind) -> Order:
    """Return the quantities and directions by which systems of a kind of track are ranked."""
    return Order(
        [quantity.name for quantity in kind.measures.quantities if quantity.weighed],
        kind.measures.higher_is_better,
    )


def scored_submissions(track: Track) -> set[int]:
    """Return the submissions of a track that are fully judged."""
    return set(Submission.objects.filter(track=track).scored().values_list("pk", flat=True))


def _public_report(
    track: Track, computed: Computed, board_submissions: set[int], report: Report
) -> Report:
    """Return the part of a report that is public while the test part is hidden: the guaranteed
    numbers, rounded, with ranks and tie groups.
    """
    compared = {
        key: one for key, one in computed.estimates_to_compare.items() if _is_guaranteed(track, key)
    }
    order = ranking_order(kind_of(track))
    ranked = compare_boards(
        order, computed.data, compared, board_submissions, reference_submissions(track)
    )
    return replace(
        report,
        figures=coarse_figures(
            report.figures, {key[1:4] for key in report.figures if _is_guaranteed(track, key[1:4])}
        ),
        comparisons={
            key: Comparison(
                one.systems, best=one.best, worst=one.worst, groups=one.groups, level=one.level
            )
            for key, one in ranked.items()
        },
        board_judges=report.board_judges.round_for_print(),
        judges={system: judges.round_for_print() for system, judges in report.judges.items()},
    )


def _is_guaranteed(track: Track, key: Named) -> bool:
    """Return whether a number is public while the test part is hidden: precision, recall and F1
    under the guaranteed distribution and criterion, or the means of the criteria of texts.
    """
    kind = kind_of(track)
    quantity, criterion, distribution = key[:3]
    if quantity == kind.measures.mean:
        is_criterion = criterion == track.criterion or kind.rates
        return is_criterion and distribution == track.distribution
    if quantity == "recall":
        return criterion == track.criterion
    return quantity == "f1" and (criterion, distribution) == (track.criterion, track.distribution)


def _used_scorers_and_best(
    kind: Kind, data: Data, criteria: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of the metrics and judges that the model uses, and the one that correlates
    best with people under each criterion.
    """
    if not data.pool.scorers:
        return (), {}
    labels = {metric.name: metric.label for metric in kind.metrics}
    names = {
        row.pk: labels.get(row.name, row.name) if row.source == "computed" else str(row)
        for row in Scorer.objects.filter(pk__in=data.pool.scorers)
    }
    used = tuple(names[pk] for pk in data.pool.scorers)
    best = {criterion: best_metrics(data, criterion) for criterion in criteria}
    return used, {name: used[numbers[0]] for name, numbers in best.items() if numbers}


LEVEL, SEED = 0.8, 20_180_715
FEWEST = 10
"""Inputs below which no strengths are printed, since a few could agree by chance"""


def pairwise_strengths(kind: Kind, systems: Sequence[int]) -> dict[str, Strengths]:
    """Return the strengths of systems under each criterion; empty if systems are judged one
    by one.
    """
    return {
        criterion: _fit_strengths(duels, systems)
        for criterion, duels in kind.pairwise_judgments(systems).items()
    }


def _fit_strengths(duels: Duels, systems: Sequence[int]) -> Strengths:
    """Return the strengths of systems that were compared in pairs, with intervals and ranks, the
    strongest first. If they cannot be fitted, return only the reason.
    """
    judgments = int(duels.outcome.size)
    judged = np.unique(np.concatenate([duels.left, duels.right]))
    if judged.size < 2 or np.unique(duels.cluster).size < FEWEST:
        why = f"Strengths are computed from {FEWEST} judged inputs on."
        return Strengths(judgments, why=why)
    try:
        fitted = bradley_terry(
            np.searchsorted(judged, duels.left),
            np.searchsorted(judged, duels.right),
            duels.outcome,
            cluster=np.unique(duels.cluster, return_inverse=True)[1],
        )
    except ValueError:
        why = "Some systems never lost so far, or all was a tie: their strength is unbounded."
        return Strengths(judgments, why=why)
    low, high = (np.asarray(end) for end in fitted.confidence_interval(LEVEL))
    ranks = fitted.compare(rng=np.random.default_rng(SEED), confidence_level=RANKED)[1]
    rows = tuple(
        Strength(
            system=int(systems[judged[place]]),
            strength=_finite_or_none(fitted.value[place]),
            low80=_finite_or_none(low[place]),
            high80=_finite_or_none(high[place]),
            best=int(ranks.best[place]),
            worst=int(ranks.worst[place]),
            judgments=int(fitted.n[place]),
        )
        for place in np.argsort(-fitted.value).tolist()
    )
    return Strengths(judgments, rows, float((duels.outcome == 0.5).mean()))


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def iterate_slice_scores(
    track: Track, data: Data, keep: Keep = lambda *_: None
) -> Iterator[SliceScore]:
    """Yield the precision of each system in each slice in which it has predictions, the guaranteed
    criterion first; for a stratum the recall as well.
    """
    return score_cuts(
        data, read_slices(track, data), ordered_criteria(track), has_recall(track), keep
    )


def ordered_criteria(track: Track) -> list[str]:
    """Return the criteria of a track, the guaranteed one first."""
    names = kind_of(track).measures.criterion_names()
    return [track.criterion, *(name for name in names if name != track.criterion)]


def has_recall(track: Track) -> bool:
    """Return whether slices that are a stratum have recall."""
    return track.criterion in recall_criteria(track)


def read_slices(track: Track, data: Data) -> Iterator[Cut]:
    """Yield a slice for each value of the groups that the track's kind declares. Instances without
    a value are in no slice of the group.
    """
    pool, kind = data.pool, kind_of(track)
    traits = kind.traits(pool.instance, pool.systems)
    weighed = track.distribution if track.distribution in pool.p else next(iter(pool.p))
    for name, group in kind.groups.items():
        trait = traits[group.trait]
        if group.strata:
            strata, first_rows = np.unique(pool.stratum, return_index=True)
            values = trait.names[trait.code[first_rows]].tolist()
            for stratum, value in zip(strata.tolist(), values, strict=True):
                yield Cut(name, value, pool.stratum == stratum, weighed, stratum=stratum)
        else:
            for value in group.values or filter(None, np.unique(trait.names).tolist()):
                yield Cut(name, value, trait.is_any_of(trait.names == value), weighed)
