"""Reads all data from which a track's scores are computed: draws, probabilities, verdicts, and the
documents that people read in full.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from django.db.models import Count, Exists, Max, OuterRef, Q

from kbpo.inclusion.read import marks_by_readers, read_inclusion, thresholds_of_batches
from kbpo.instances.models import Label
from kbpo.pool.pool import pairwise_overlaps, read_pool
from kbpo.sampling.documents.draw import annotated_documents
from kbpo.sampling.guess import Lesson, guess_under_criterion, mean_verdict_over_systems
from kbpo.sampling.models import Sample, SampleBatch
from kbpo.scores.models import Score
from kbpo.scores.read import read_scores, scorers_of_track
from kbpo.submissions.models import GONE, Submission
from kbpo.tracks.measures import UNWEIGHED
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids
from scoring.data import LIKE, Data, Draws, Guess
from scoring.pool import Pool


def load_data(track: Track) -> Data:
    """Return all data from which a track's scores are computed, as of now."""
    sampled = Submission.objects.filter(track=track, sampled_at__isnull=False).order_by("pk")
    systems = list(sampled.values_list("pk", flat=True))
    taking_part = set(
        Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True)
    )
    kind = kind_of(track)
    pool = read_pool(track, systems)
    documents = annotated_documents(track)
    draws = Sample.objects.filter(batch__submission__track=track).values_list(
        "batch__submission_id", "target_id"
    )
    drawn: dict[int, list[int]] = {}
    for owner, target in draws.distinct():
        drawn.setdefault(owner, []).append(target)
    inclusion = read_inclusion(track, pool, waiting_targets(track, drawn))
    recall = kind_with_recall_or_none(track)
    facts = None
    if recall:
        facts = recall.read_facts(
            pool.instance, systems, documents.documents, _systems_with_recall(systems)
        )
    counted = inclusion.drawn | np.isin(pool.target_id, sorted(set().union(*drawn.values())))
    judged = np.flatnonzero(counted[pool.target])
    f = kind.judge(pool.instance[judged], systems)
    guesses, unaided = _guesses_by_criterion(track, pool, judged, f)
    closed = closed_documents(documents.documents)
    data = Data(
        pool=pool,
        shown=np.array([system in taking_part for system in systems], dtype=np.bool_),
        judged=judged,
        f=f,
        draws=_draws_with_replacement(track, pool),
        inclusion=inclusion,
        g={criterion: guess.g for criterion, guess in guesses.items()},
        rho={criterion: guess.rho for criterion, guess in guesses.items()},
        base=kind.measures.base or kind.measures.criteria[0].name,
        unweighed=UNWEIGHED,
        facts=facts,
        documents=documents,
        closed_documents=bool(closed) and closed == set(documents.documents),
        mark=marks_by_readers(track, pool, closed),
        noise=dict(kind.rating_noise(pool.instance[judged], systems)),
        found_also=dict(recall.found_also) if recall else {},
        mean=kind.measures.mean,
        input=pool.input if kind.measures.population == LIKE else np.zeros(0, dtype=np.int64),
        population=kind.measures.population,
        error={name: guess.error for name, guess in guesses.items() if guess.error is not None},
        unaided=unaided,
    )
    return replace(data, later=_data_for_late_judges(track, data))


def _data_for_late_judges(track: Track, data: Data) -> Data | None:
    """Return the data for judges that were added after judgments existed and might have been tuned
    on them; None without such a judge or with too few later labels. All targets that were labelled
    at the time of their last score are treated as certain, and the model learns from later labels
    only. Partial answers to questions without a label count as unknown to the judge.
    """
    unstated = scorers_of_track(track).filter(is_used=True, came_late=True, not_tuned_at=None)
    late = list(unstated.values_list("pk", flat=True))
    if not late or data.draws or kind_of(track).opposes:
        return None
    moment = Score.objects.filter(scorer__in=late).aggregate(last=Max("made_at"))["last"]
    drawn_by_then = SampleBatch.objects.filter(submission__track=track, drawn_at__lte=moment)
    labelled = Label.objects.filter(
        target__corpus=track.corpus_id, target__in=drawn_by_then.values("samples__target")
    )
    known = set(labelled.filter(created_at__lte=moment).values_list("target_id", flat=True))
    scores = read_scores(track, data.pool.instance, [*data.pool.scorers, *late])
    pool = replace(data.pool, scorers=scores.scorers, scores=scores.value)
    inclusion, certain = data.inclusion.at_time_of_answers(
        pool.u,
        thresholds_of_batches(list(drawn_by_then.values_list("pk", flat=True)), pool.target_id),
        np.isin(pool.target_id, list(known)),
    )
    since = ~certain[pool.target[data.judged]]
    verdicts = {criterion: f[since] for criterion, f in data.f.items()}
    guesses, _ = _guesses_by_criterion(track, pool, data.judged[since], verdicts)
    guesses = {criterion: guess for criterion, guess in guesses.items() if guess.labels}
    if not guesses:
        return None
    return replace(
        data,
        pool=pool,
        inclusion=inclusion,
        g={criterion: guess.g for criterion, guess in guesses.items()},
        rho={criterion: guess.rho for criterion, guess in guesses.items()},
        error={name: guess.error for name, guess in guesses.items() if guess.error is not None},
        unaided={},
    )


def waiting_targets(track: Track, drawn_by_submission: dict[int, list[int]]) -> set[int]:
    """Return the drawn targets of confirmed submissions that are still unanswered."""
    gone = set(
        Submission.objects.filter(pk__in=drawn_by_submission, status__in=GONE).values_list(
            "pk", flat=True
        )
    )
    of = {
        submission: targets
        for submission, targets in drawn_by_submission.items()
        if submission not in gone
    }
    return set().union(*kind_of(track).find_unanswered(of).values()) if of else set()


def closed_documents(documents: list[int]) -> set[int]:
    """Return the documents in which every unmarked relation is false, as imports can state."""
    labels = Label.objects.filter(
        target__kind="document", target__document__in=documents, value__closed=True
    )
    return set(labels.values_list("target__document", flat=True))


def _systems_with_recall(systems: list[int]) -> list[int]:
    """Return the sampled submissions whose facts count for recall: at least half of a settled batch
    was answered. Returns all submissions while there is none.

    Before that, the number of its true facts would be the model's guess. That guess would change
    every system's recall, permanently if the submission is withdrawn or its questions end
    unanswered.
    """
    answers = Label.objects.filter(target=OuterRef("target")).exclude(value={})
    settled = Sample.objects.filter(
        batch__submission__in=systems, batch__settled_at__isnull=False
    ).annotate(answered=Exists(answers))
    asked = settled.values_list("batch__submission").annotate(
        n=Count("target", distinct=True),
        known=Count("target", distinct=True, filter=Q(answered=True)),
    )
    entered = {system for system, n, known in asked if 2 * known >= n}
    return [system for system in systems if system in entered or not entered]


def _guesses_by_criterion(
    track: Track, pool: Pool, judged: Ids, f: dict[str, Floats]
) -> tuple[dict[str, Guess], dict[str, Guess]]:
    """Return the model's guess under each criterion, with and without metrics and judges. The
    second mapping is empty if they make no difference.
    """
    kind, lesson = type(kind_of(track)), Lesson(pool, track.corpus.hash_key)
    aided, unaided = {}, {}
    for name, verdicts in f.items():
        label = np.full(pool.instance.size, np.nan)
        label[judged] = mean_verdict_over_systems(kind, verdicts, pool.member[judged])
        aided[name] = guess_under_criterion(kind, name, lesson, label)
        if pool.scorers or aided[name].error is not None:
            unaided[name] = guess_under_criterion(kind, name, lesson, label, with_scorers=False)
    return aided, unaided


def _draws_with_replacement(track: Track, pool: Pool) -> dict[str, Draws]:
    samples = list(
        Sample.objects.filter(batch__submission__track=track, instance__isnull=False)
        .order_by("batch_id", "instance_id")
        .values_list(
            "batch__distribution__kind", "batch__submission_id", "instance_id", "multiplicity"
        )
    )
    column = {system: j for j, system in enumerate(pool.systems)}
    draws_of = {}
    for kind in track.distributions:
        mine = [row for row in samples if row[0] == kind]
        if not mine:
            continue
        times = np.array([row[3] for row in mine], dtype=np.int64)
        row = np.repeat(
            np.searchsorted(pool.instance, [draw[2] for draw in mine]).astype(np.int64), times
        )
        owner = np.repeat(np.array([column[draw[1]] for draw in mine], dtype=np.int64), times)
        draws_of[kind] = Draws(
            kind, row, owner, pool.p[kind][row].toarray(), pairwise_overlaps(kind, pool.systems)
        )
    return draws_of
