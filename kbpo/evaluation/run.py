"""Step 10: labels, samples and probabilities become an Evaluation and its Estimates; debounced;
stage ends are kept.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Max

from estimators.design import Design
from estimators.estimate import Estimate as Found
from kbpo import clock
from kbpo.evaluation import judges
from kbpo.evaluation.compare.by_relation import Errors
from kbpo.evaluation.compare.overlap import MOST, parts
from kbpo.evaluation.compare.ranks import comparisons, is_ranked, with_private
from kbpo.evaluation.correction.read import checks_of
from kbpo.evaluation.correction.why import not_corrected
from kbpo.evaluation.data import read
from kbpo.evaluation.flips import log_flips
from kbpo.evaluation.leaderboard import BOOTSTRAP, half_width, headlines
from kbpo.evaluation.live import store_interim_interval
from kbpo.evaluation.models import Estimate, Evaluation, Rescoring
from kbpo.evaluation.preferences import strengths
from kbpo.evaluation.printed import replace_since
from kbpo.evaluation.slices.estimate import slice_scores
from kbpo.evaluation.words import figure_text, no_width_text
from kbpo.evaluation.worth import worth
from kbpo.instances.models import Label
from kbpo.queue import nudge, one_at_a_time, work
from kbpo.sampling.designs import design_of
from kbpo.sampling.designs.base import Realised
from kbpo.sampling.guess import VERSION
from kbpo.sampling.left_open import keep_answered
from kbpo.sampling.models import (
    DocumentSample,
    ExpertCheck,
    ExpertRound,
    Sample,
    SampleBatch,
)
from kbpo.scores.bring import statement_of
from kbpo.scores.models import Score as Scoring
from kbpo.scores.models import Scorer
from kbpo.scores.read import scorers_of
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import class_of, kind_of
from scoring.corrected import Corrections, corrections
from scoring.data import ABOUT_THESE, THESE, Data
from scoring.double_sampling import Corrected
from scoring.inputs import about_inputs_like, expected_variance
from scoring.published import bootstrapped
from scoring.saved import UNAIDED, beside, best_metrics, by_each, saved, unaided, unjudged
from scoring.score import (
    DEFAULT,
    PUBLISHED,
    Key,
    Score,
    default_estimates,
    found_share,
    scores,
)
from scoring.slices import SliceScore

log = logging.getLogger(__name__)

REST = 5
"""A live score is made again only after this many times what the last one took: scoring never
fills a worker."""

NEWEST = 10_000
"""Labels, counted from the newest, among which one may appear late."""
LONGEST_REST = 60.0
"""Seconds after which everything is counted again, whether or not anything seems to have come."""

NO_LABEL = "Nothing that this system predicts has a label yet."
COUNTS_NOT = (
    "Labels of what this system predicts exist, but none counts yet: questions that come before"
    " them still wait."
)
TOO_FEW = (
    "Too few of the draws that it rests on, as published, have a label that counts, or documents"
    " that were read carry what is known."
)
NOT_ALL = (
    "By itself a system’s recall is known once all that it links in the documents that were read is"
    " judged."
)
PRINTED_METHODS = tuple(
    f"{method}{population}"
    for method in (DEFAULT, "expert", UNAIDED)
    for population in ("", ABOUT_THESE)
)
"""How the guaranteed numbers of a shared track are made while it is open"""
OF_BOTH = "It is made of a precision and a recall, one of which is not known."


def tick() -> int:
    """How many tracks were looked at because their scores may be stale. Where nothing has come,
    nothing is written: a write would be news to every step.
    """
    for track in Track.objects.filter(rescoring__isnull=True).exclude(status="draft"):
        Rescoring.objects.get_or_create(track=track, defaults={"status": "watching"})
    now = clock.now()
    stale = []
    for row in Rescoring.objects.filter(status="watching").select_related("track"):
        try:
            if _is_due(row, now):
                stale.append(row.pk)
        except Exception:  # one track's bug must not keep the others waiting: `work` notes it
            log.exception("Track %s could not be looked at", row.track_id)
            stale.append(row.pk)
    return work(Rescoring, "watching", _watch, where={"pk__in": stale}) if stale else 0


def _is_due(row: Rescoring, now: datetime) -> bool:
    """Whether a track is to be scored, or what was seen of it to be noted, now. The end of a stage
    waits for no debounce; but while nothing comes in, none ends.
    """
    if row.next_try_at <= now:
        return _Seen.now(row).is_news
    if row.state.get("signs") == signs_of(row.track) or not finished(row.track):
        return False
    Rescoring.objects.filter(pk=row.pk).update(next_try_at=now)
    return True


@dataclass(frozen=True)
class _Seen:
    """What a look at a track finds."""

    signs: dict[str, Any]
    state: dict[str, Any]
    ended: list[Submission]
    counted: bool
    """Whether history was read for it"""
    is_stale: bool
    """Whether its scores are"""
    is_news: bool
    """Whether anything is otherwise than the row says"""

    @classmethod
    def now(cls, row: Rescoring) -> _Seen:
        """Return what is to be seen of a row's track."""
        signs = signs_of(row.track)
        same = row.state.get("signs") == signs
        counts = not same or cache.get(_counted(row)) is None
        state = state_of(row.track, None if counts else row.state.get("labels"))
        ended = finished(row.track) if counts else []
        is_stale = bool(ended) or any(row.state.get(name) != state[name] for name in state)
        if counts and not is_stale:
            cache.set(_counted(row), True, LONGEST_REST)
        return cls(signs, state, ended, counts, is_stale, is_stale or not same)


def _counted(row: Rescoring) -> str:
    """What is kept for `LONGEST_REST` once all was counted and is as the row says."""
    return f"counted.{row.pk}.{row.status_since.timestamp()}"


def _watch(row: Rescoring) -> None:
    """Scores the track again if anything that its scores depend on has changed since the last
    time.
    """
    seen = _Seen.now(row)
    seconds = evaluate(row.track, seen.ended).seconds if seen.is_stale else 0.0
    row.move("watching", state=seen.state | {"signs": seen.signs})
    row.next_try_at = clock.now() + timedelta(
        seconds=max(float(settings.DEBOUNCE_SECONDS), REST * seconds)
    )
    row.save(update_fields=["next_try_at"])
    if seen.counted:
        cache.set(_counted(row), True, LONGEST_REST)


def signs_of(track: Track) -> dict[str, Any]:
    """What tells, without reading history, that labels came or that other submissions are judged.

    The greatest number alone does not: a transaction may commit after one whose numbers are
    greater. So the newest are counted as well; what an even longer one brings is seen within
    `LONGEST_REST`.
    """
    newest = Label.objects.aggregate(last=Max("pk"))["last"] or 0
    return {
        "labels": [newest, Label.objects.filter(pk__gt=newest - NEWEST).count()],
        "judging": sorted(
            Submission.objects.filter(track=track, status="judging").values_list("pk", flat=True)
        ),
        "batch": SampleBatch.objects.filter(submission__track=track).aggregate(last=Max("pk"))[
            "last"
        ],
        "scores": _scored(track),
        "references": sorted(_references(track)),
    }


def _scored(track: Track) -> list[Any]:
    """Which metrics and judges are in use, and the newest score of one of them."""
    used = scorers_of(track).in_use()
    pks = list(used.values_list("pk", flat=True))
    newest = Scoring.objects.filter(scorer__in=pks).order_by("-pk").values_list("pk", flat=True)
    return [pks, newest.first() if pks else None]


def state_of(track: Track, labels: list[int | None] | None = None) -> dict[str, Any]:
    """What the scores depend on, as counts and numbers: they are stale as soon as one of these
    differs.
    `labels`: what is known of them, if they need not be counted again.
    """
    if labels is None and not track.hides_test:
        counted = Label.objects.filter(target__corpus=track.corpus_id).aggregate(
            n=Count("pk"), last=Max("pk")
        )
        labels = [counted["n"], counted["last"]]
    batches = SampleBatch.objects.filter(submission__track=track).aggregate(
        n=Count("pk"), last=Max("pk")
    )
    # Scores of a shared track move at stage ends alone: one judgment must not be read off them.
    return ({} if track.hides_test else {"labels": labels}) | {
        "batches": [batches["n"], batches["last"]],
        "scores": _scored(track),
        "taking_part": _taking_part(track),
        "documents": DocumentSample.objects.filter(track=track, settled_at__isnull=False).count(),
        "checks": ExpertCheck.objects.filter(
            track=track, kind="check", answered_at__isnull=False
        ).count(),
        "rounds": ExpertRound.objects.filter(track=track, ended_at__isnull=False).count(),
        "references": sorted(_references(track)),
    }


def _taking_part(track: Track) -> list[list[Any]]:
    """The runs that take part, and whether each is private: where one goes as another comes there
    are as many as before.
    """
    runs = Submission.objects.filter(track=track).confirmed().order_by("pk")
    return [[pk, is_private] for pk, is_private in runs.values_list("pk", "is_private")]


def finished(track: Track) -> list[Submission]:
    """Submissions being judged whose whole sample is judged, or known to be unanswerable."""
    judging = Submission.objects.filter(track=track, status="judging")
    return [submission for submission in judging if not open_targets(submission)]


def open_targets(submission: Submission) -> set[int]:
    """Targets of a submission's sample that still wait for a judgment."""
    targets = list(
        Sample.objects.filter(batch__submission=submission)
        .values_list("target_id", flat=True)
        .distinct()
    )
    return kind_of(submission.track).unanswered({submission.pk: targets})[submission.pk]


LIMITS = ("expert", "not_corrected")
"""What an evaluation keeps of its details while the test part is hidden: whether a number was
corrected by experts, and why not"""


def evaluate(track: Track, ended: Iterable[Submission] = ()) -> Evaluation:
    """A new Evaluation. Submissions with enough judgments move to the board, the others on to their
    next stage; of an earlier evaluation of the same day that ended no stage only what the board
    printed is kept.
    """
    began = time.monotonic()
    one_at_a_time("sample or score", track.pk)
    keep_answered(track)
    done = _lock(ended)
    SampleBatch.objects.filter(submission__in=done, settled_at__isnull=True).update(
        settled_at=clock.now()
    )
    newest = Label.objects.aggregate(Max("pk"))["pk__max"] or 0
    reckoned = _Reckoned.of(track)
    data, estimates, compared = reckoned.data, reckoned.printed, reckoned.compared
    _end_stages(track, reckoned, done)
    previous = track.evaluations.order_by("-number").first()
    if previous is not None:
        log_flips(track, data.systems, previous.settings.get("last_label", 0), newest)
    standing = set(Submission.objects.filter(track=track).on_board().values_list("pk", flat=True))
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    replace_since(track, midnight)
    details = _told(track, reckoned, standing)
    if track.hides_test:
        details = {name: details[name] for name in LIMITS} | {
            judges.KEY: judges.coarse(details[judges.KEY])
        }
    evaluation = Evaluation.objects.create(
        track=track,
        number=1 + (previous.number if previous is not None else 0),
        stage_end=bool(done),
        settings=_settings(track, data, reckoned.estimates)
        | _counts(kind_of(track), data, previous)
        | details
        | {"standing": sorted(standing), "last_label": newest},
    )
    # Those that many pairs would be too many of are told of the board alone.
    scored = set(Submission.objects.filter(track=track).with_score().values_list("pk", flat=True))
    paired = scored if len(scored) <= MOST else standing
    errors = Errors(data, paired)
    if track.hides_test:
        evaluation.comparisons = _guaranteed_comparisons(track, data, compared, standing)
        _store_guaranteed(evaluation, reckoned)
    else:
        _store(evaluation, reckoned, errors)
        _store_interim(track, data, estimates, done)
        evaluation.comparisons = (
            comparisons(class_of(track.kind), data, compared, standing, _references(track))
            | with_private(data, compared, scored, standing)
            | parts(data, track.criterion, paired)
            | errors.stored()
        )
    evaluation.seconds = time.monotonic() - began
    evaluation.save(update_fields=["comparisons", "seconds"])
    _tell(evaluation, [submission for submission in done if submission.status == "scored"])
    return evaluation


@dataclass(frozen=True)
class _Reckoned:
    """Every number of a board, before anything of it is written."""

    data: Data
    criteria: tuple[str, ...]
    estimates: dict[Key, tuple[Found, Design]]
    """About the inputs at hand"""
    printed: dict[Key, tuple[Found, Design]]
    """About what the board says first: inputs like these, where a kind has inputs"""
    alone: dict[Key, tuple[Found, Design]]
    """The weighted means without metrics and judges; empty where none helps"""
    checked: Corrected | None
    better: Corrections
    """What experts corrected"""
    scores: list[Score]
    """All that is stored of these"""

    @classmethod
    def of(cls, track: Track) -> _Reckoned:
        """Return what a track's labels come to now."""
        data, kind = read(track), kind_of(track)
        criteria, with_recall = kind.criterion_names(), recall_criteria(track)
        estimates = default_estimates(data, criteria, with_recall) if data.judged.size else {}
        checked = Corrected.of(data, checks_of(track, data))
        better = corrections(checked, criteria, with_recall)
        alone = unaided(data, criteria)
        board_scores = [
            *scores(data, estimates, criteria, with_recall, kind.published),
            *better.scores,
            *beside(data, alone),
        ]
        printed = about_inputs_like(data, estimates) or estimates
        return cls(data, criteria, estimates, printed, alone, checked, better, board_scores)

    @property
    def compared(self) -> dict[tuple[str, ...], tuple[Found, Design]]:
        """What systems are compared by; about these inputs too, where that is not said first."""
        these = self.estimates if self.printed is not self.estimates else {}
        named: dict[tuple[str, ...], tuple[Found, Design]] = dict(self.printed.items())
        return named | {(*key, THESE): number for key, number in these.items()}


def _end_stages(track: Track, reckoned: _Reckoned, done: list[Submission]) -> None:
    """Move submissions whose stage has ended to the board or to their next stage."""
    data = reckoned.data
    realised = _realised(track, reckoned)
    _keep(track, realised, done)
    for submission in done:
        ranked = _ranked(track, data, reckoned.printed, submission)
        _move_on(submission, realised.get(submission.pk), ranked)


def _told(track: Track, reckoned: _Reckoned, standing: set[int]) -> dict[str, Any]:
    """What an evaluation tells besides its numbers: of metrics and judges, of experts, of how the
    systems on its board stand against each other.
    """
    kind, data, criteria = kind_of(track), reckoned.data, reckoned.criteria
    alone, checked = reckoned.alone, reckoned.checked
    on_board = [system for system in data.systems if system in standing]
    reasons = not_corrected(track, checked, reckoned.better)
    expert = {}
    if checked is not None:
        expert = {criterion: checked.confusion(criterion) for criterion in criteria}
    has_card = bool(alone) or any(row.needs_statement for row in scorers_of(track))
    return {
        # Where systems are judged against each other nothing is guessed.
        "saved": {} if kind.opposes else saved(reckoned.estimates, alone, data),
        "by_each": by_each(alone, data),
        "unjudged": unjudged(alone, data),
        "scorers": _scorers(kind, data, criteria),
        "worth": worth(kind, data, _means(track, data, reckoned.estimates)) if has_card else {},
        "strengths": strengths(kind, on_board),
        "expert": expert,
        "not_corrected": {str(system): why for system, why in reasons.items()},
        judges.KEY: judges.agreement(track, data, standing),
        BOOTSTRAP: _bootstrapped(data, criteria, kind.published),
    }


def _store(evaluation: Evaluation, reckoned: _Reckoned, errors: Errors) -> None:
    """Store the numbers of the board and of its slices. `errors` learns from the slices."""
    track, data = evaluation.track, reckoned.data
    final = set(Submission.objects.filter(track=track).scored().values_list("pk", flat=True))
    whole = (
        _stored(evaluation, data, score, final)
        for score in reckoned.scores
        if data.shown[score.column]
    )
    Estimate.objects.bulk_create(whole, batch_size=2000)
    sliced = (
        _of_slice(evaluation, data, of_slice, final)
        for of_slice in slice_scores(track, data, errors.take)
        if data.shown[of_slice.score.column]
    )
    Estimate.objects.bulk_create(sliced, batch_size=2000)


def _is_guaranteed(track: Track, data: Data, key: tuple[str, ...]) -> bool:
    """Whether a number may be printed while the test part is hidden: precision, recall and F1 of
    the guaranteed pair, or the means of the criteria of texts.
    """
    quantity, criterion, distribution = key[:3]
    if quantity == data.mean:
        is_criterion = criterion == track.criterion or kind_of(track).rates
        return is_criterion and distribution == track.distribution
    if quantity == "recall":
        return criterion == track.criterion
    return quantity == "f1" and (criterion, distribution) == (track.criterion, track.distribution)


def _guaranteed_comparisons(
    track: Track,
    data: Data,
    estimates: dict[tuple[str, ...], tuple[Found, Design]],
    standing: set[int],
) -> dict[str, dict[str, Any]]:
    """Ranks and tie groups of the guaranteed numbers; nothing from which differences could be
    computed to all digits.
    """
    guaranteed = {key: one for key, one in estimates.items() if _is_guaranteed(track, data, key)}
    found = comparisons(class_of(track.kind), data, guaranteed, standing, _references(track))
    return {
        key: {
            name: value
            for name, value in joint.items()
            if name in ("systems", "best", "worst", "groups", "level")
        }
        for key, joint in found.items()
    }


def _store_guaranteed(evaluation: Evaluation, reckoned: _Reckoned) -> None:
    """Store what a shared track prints while it is open: the guaranteed numbers with intervals, to
    0.1 point, n to the nearest 10. Everything finer is stored once it is closed, and so no channel
    can tell it before.
    """
    track, data = evaluation.track, reckoned.data
    final = set(Submission.objects.filter(track=track).scored().values_list("pk", flat=True))
    rows = []
    for score in reckoned.scores:
        key = (score.quantity, score.criterion, score.distribution)
        if not data.shown[score.column] or score.method not in PRINTED_METHODS:
            continue
        if not _is_guaranteed(track, data, key):
            continue
        row = _stored(evaluation, data, score, final)
        for name in ("value", "low80", "high80", "low95", "high95"):
            value = getattr(row, name)
            setattr(row, name, None if value is None else round(value, 3))
        row.variance = None
        for name in ("n_labels", "n_missing", "n_checked"):
            setattr(row, name, round(getattr(row, name), -1))
        rows.append(row)
    Estimate.objects.bulk_create(rows, batch_size=2000)


def _tell(evaluation: Evaluation, ended: list[Submission]) -> None:
    """Tell the teams of runs that reached the board which number they are ranked by."""
    headline_of = headlines(evaluation, [submission.pk for submission in ended]) if ended else {}
    for submission in ended:
        if submission.pk not in headline_of:
            submission.tell_team()
            continue
        quantity, figure = headline_of[submission.pk]
        interval = "" if figure.exact else ", with the interval at 80 %"
        sentence = f"{quantity.label} {figure_text(figure)}{interval}."
        ends = {"low80": figure.low80, "high80": figure.high80}
        submission.tell_team(
            sentence, score={"quantity": quantity.name, "value": figure.value, **ends}
        )


def _bootstrapped(
    data: Data, criteria: tuple[str, ...], methods: tuple[str, ...]
) -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """criterion|distribution -> method -> submission -> the published interval at 80 % of its
    precision as published; nothing without draws that could be taken anew.
    """
    wanted = [(criterion, method) for criterion in criteria for method in methods]
    interval_of: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for distribution, draws in data.draws.items():
        for (criterion, method), (low, high) in bootstrapped(data, draws, wanted).items():
            interval_of.setdefault(f"{criterion}|{distribution}", {})[method] = {
                str(pk): (float(low[column]), float(high[column]))
                for column, pk in enumerate(data.systems)
                if not math.isnan(low[column])
            }
    return interval_of


def _references(track: Track) -> set[int]:
    """What people wrote: it takes no place among systems."""
    references = Submission.objects.filter(track=track, role=Submission.Role.REFERENCE)
    return set(references.values_list("pk", flat=True))


def _means(
    track: Track, data: Data, estimates: dict[Key, tuple[Found, Design]]
) -> dict[str, Found]:
    """Criterion -> the weighted mean of every system, as the track weighs."""
    return {
        criterion: estimate
        for (quantity, criterion, kind), (estimate, _) in estimates.items()
        if quantity == data.mean and kind == track.distribution
    }


def _scorers(kind: Kind, data: Data, criteria: tuple[str, ...]) -> dict[str, Any]:
    """Which metrics and judges the model could learn from, by their numbers; and which goes best
    with people.
    """
    if not data.pool.scorers:
        return {}
    labels = {metric.name: metric.label for metric in kind.metrics}
    names = {
        row.pk: labels.get(row.name, row.name) if row.source == "computed" else str(row)
        for row in Scorer.objects.filter(pk__in=data.pool.scorers)
    }
    used = [names[pk] for pk in data.pool.scorers]
    best = {criterion: best_metrics(data, criterion) for criterion in criteria}
    return {
        "used": used,
        "names": {str(pk): name for pk, name in names.items()},
        "best": {
            name: used[metric_numbers[0]] for name, metric_numbers in best.items() if metric_numbers
        },
    }


def _counts(kind: Kind, data: Data, previous: Evaluation | None) -> dict[str, dict[str, float]]:
    """The shares that the kind counts: name -> submission -> share. What this version counted of a
    submission before is not counted again.
    """
    stored = previous.settings if previous is not None else {}
    kept = stored if stored.get("version") == settings.VERSION else {}
    before = [kept.get(quantity.name, {}) for quantity in kind.counted]
    already_counted = [
        pk for pk in data.systems if before and all(str(pk) in shares for shares in before)
    ]
    counted = kind.counts([pk for pk in data.systems if pk not in already_counted])
    return {
        name: {str(pk): kept[name][str(pk)] for pk in already_counted}
        | {str(pk): share for pk, share in shares.items()}
        for name, shares in counted.items()
    }


def _lock(ended: Iterable[Submission]) -> list[Submission]:
    # Not their keys: a page may write a row that names one of them while this takes its seconds.
    locked = Submission.objects.select_for_update(of=("self",), no_key=True).select_related("track")
    return list(
        locked.filter(pk__in=[submission.pk for submission in ended], status="judging").order_by(
            "pk"
        )
    )


def _realised(track: Track, reckoned: _Reckoned) -> dict[int, Realised]:
    """submission -> what its judgments come to: the variances of its guaranteed number, realised
    and anticipated, and half of the interval that is printed. Without those that have no number.
    """
    data = reckoned.data
    key = (data.mean, track.criterion, track.distribution)
    if key not in reckoned.printed:  # nothing was drawn
        return {}
    estimate = reckoned.printed[key][0]
    variance = np.broadcast_to(estimate.variance, np.shape(estimate.value))
    anticipated = expected_variance(data, key, reckoned.estimates[key][0])
    printed = {
        row.column: half_width(row, track)
        for row in reckoned.scores
        if (row.quantity, row.criterion, row.distribution, row.method) == (*key, DEFAULT)
    }
    return {
        submission: Realised(
            float(variance[column]), float(anticipated[column]), printed[column] or 0.0
        )
        for column, submission in enumerate(data.systems)
        if not math.isnan(variance[column])
    }


def _keep(track: Track, realised: dict[int, Realised], done: list[Submission]) -> None:
    """Store in the last settled batch of each system what its judgments come to now, and at the end
    of a stage what that stage came to.
    """
    ended = {submission.pk for submission in done}
    batches = SampleBatch.objects.of_test().filter(
        submission__in=realised, distribution__kind=track.distribution
    )
    last = {batch.submission_id: batch for batch in batches.order_by("stage")}
    for submission, batch in last.items():
        if batch.settled_at is not None:
            realised[submission].keep(batch, ended=submission in ended)


def _ranked(
    track: Track, data: Data, estimates: dict[Key, tuple[Found, Design]], submission: Submission
) -> bool:
    """Whether a submission's rank is decided, on a track where that is enough."""
    key = (data.mean, track.criterion, track.distribution)
    if not track.ends_when_ranked or submission.pk not in data.systems or key not in estimates:
        return False
    kind, column = type(kind_of(track)), data.systems.index(submission.pk)
    batches = SampleBatch.objects.of_test().filter(submission=submission)
    stage = batches.filter(settled_at__isnull=False).count()
    return is_ranked(kind, data, key, estimates[key], column, max(1, stage))


def _move_on(submission: Submission, realised: Realised | None, ranked: bool) -> None:
    """To the board; or to its next stage."""
    design = design_of(submission.track)
    why = design.enough(submission, realised)
    if not why and ranked:
        why = "ranked"
    if not why:
        submission.move("confirmed")
        nudge("draw")
        return
    submission.move("scored", tells=False, scored_at=clock.now(), stage_reason=why)
    nudge("give_back")
    nudge("plan")


def _settings(
    track: Track, data: Data, estimates: dict[Key, tuple[Found, Design]]
) -> dict[str, Any]:
    """What the numbers depend on; with the model's totals Σ p g, which say what it alone would have
    printed.
    """
    totals = {
        f"{criterion}|{kind}": dict(
            zip(map(str, data.systems), np.asarray(estimate.total_g).tolist(), strict=True)
        )
        for (quantity, criterion, kind), (estimate, _) in estimates.items()
        if quantity == data.mean
    }
    return {
        "scope": track.scope,
        "draws": {kind: int(draws.row.size) for kind, draws in data.draws.items()},
        "targets": int(data.inclusion.drawn.sum()),
        "released": data.inclusion.released,
        "model": VERSION,
        "correlation": data.rho,
        "totals": {} if track.hides_test else totals,
        "documents": data.facts.n_annotated if data.facts else 0,
        "of_documents": track.corpus.n_test,
        "misses": _misses(data),
        "labels": Label.objects.filter(target__corpus=track.corpus_id).count(),
        "late_scorers": _late_scorers(data),
        "version": settings.VERSION,
    }


def _late_scorers(data: Data) -> list[dict[str, str]]:
    """The metrics and judges in use that came after the first judgments, with the statement that
    lets them narrow scores.
    """
    late = Scorer.objects.filter(pk__in=data.pool.scorers, came_late=True)
    rows = late.select_related("not_tuned_by").order_by("pk")
    return [{"name": str(row), "statement": statement_of(row)} for row in rows]


def _misses(data: Data) -> dict[str, Any] | None:
    """What share of verified true predictions in annotated documents their annotation had found;
    None if unknown.
    """
    share = found_share(data)
    if share is None or not share.n:
        return None
    value = min(1.0, float(share.value))
    inside = min(max(value, 0.5 / share.n), 1 - 0.5 / share.n)
    share = replace(
        share, value=value, anticipated=inside * (1 - inside) / share.n
    )  # where all agree none is seen
    ends: dict[str, float] = {}
    for level in (80, 95):
        low, high = share.confidence_interval(level / 100, method="wilson")
        ends |= {f"low{level}": float(low), f"high{level}": float(high)}
    return {"share": value, "n": share.n, **ends}


def _store_interim(
    track: Track, data: Data, estimates: dict[Key, tuple[Found, Design]], done: list[Submission]
) -> None:
    """Store interim intervals of the guaranteed numbers of submissions that are being judged."""
    key = (data.mean, track.criterion, track.distribution)
    if key not in estimates:
        return
    judging = Submission.objects.filter(track=track, status="judging").select_related("track")
    for submission in {row.pk: row for row in (*judging, *done)}.values():
        if submission.pk in data.systems:
            store_interim_interval(submission, data, estimates[key][0])


def _of_slice(
    evaluation: Evaluation, data: Data, slice_score: SliceScore, final: set[int]
) -> Estimate:
    row = _stored(evaluation, data, slice_score.score, final)
    row.slice, row.n_predictions = slice_score.slice, slice_score.n_predictions
    return row


def _stored(evaluation: Evaluation, data: Data, row: Score, final: set[int]) -> Estimate:
    numbers = {
        name: number if math.isfinite(number) else None
        for name in ("value", "variance", "low80", "high80", "low95", "high95")
        for number in [getattr(row, name)]
    }
    submission = data.systems[row.column]
    return Estimate(
        evaluation=evaluation,
        submission_id=submission,
        quantity=row.quantity,
        criterion=row.criterion,
        distribution=row.distribution,
        method=row.method,
        n_labels=row.n_labels,
        n_missing=row.n_missing,
        n_documents=row.n_documents,
        n_checked=row.n_checked,
        kind="final" if submission in final else "provisional",
        note=_note(row),
        **numbers,
    )


def _note(row: Score) -> str:
    """Return what is said beside a number that is not there, or whose interval has no width."""
    if math.isnan(row.value):
        if not row.n_labels:
            return NO_LABEL
        if row.method not in PUBLISHED:
            return COUNTS_NOT
        if row.quantity == "f1":
            return OF_BOTH
        return NOT_ALL if (row.quantity, row.method) == ("recall", "simple") else TOO_FEW
    return "" if row.low95 < row.high95 else no_width_text(row.n_checked)
