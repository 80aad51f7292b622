"""Stores scores of external judges: lists what a judge has not scored yet, and stores its scores,
or a file of scores, completely or not at all.

A judge is a program that has read the text: a language model, an extractor. It is given the texts,
never the systems that predicted them. It must not have seen people's judgments, since its scores
are calibrated by them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import Any

from django.db import transaction

from formats.messages import Report
from formats.opening import Limits, Source, open_text
from formats.scores import LARGEST, OUTSIDE, Judge, has_service_ids, read_scores, read_scores_by_id
from formats.tables import NAMED
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.models import Instance, Label
from kbpo.queue import wake_step
from kbpo.scores.compute import STATED, STORED, store_new_scores
from kbpo.scores.models import Scorer
from kbpo.scores.read import instances_by_input, scorers_of_track
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import run_names_in_files, unread_runs_sentence
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

AT_MOST = 5000
"""Greatest number of scores in one call"""
NOT_PAIRS = (
    "“{0}” asks which of two texts is better: scores of metrics and judges are not used there, so"
    " none are asked for, and none were stored. Where texts are rated one by one, they are."
)
CAME_LATE = (
    "They came after the first judgments, so they narrow no score until an admin states that the"
    " judge was not tuned on these judgments."
)
NOT_SCORED = (
    f"{STATED} WHERE s.track_id = %s AND s.status = ANY(%s) AND p.instance_id > %s AND NOT EXISTS"
    " (SELECT 1 FROM scores_score c WHERE c.instance_id = p.instance_id AND c.scorer_id = %s)"
)


class CannotTake(Exception):
    """Raised for scores that were not stored; the text is a sentence for the sender."""


class BadFile(Exception):
    """Raised for a file of scores with errors, of which nothing was stored. The report lists the
    errors.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        first = next((message for message in report if message.severity == "error"), None)
        super().__init__(first.text if first else "The file holds no score.")


@dataclass(frozen=True)
class StoredScores:
    """The result of storing scores."""

    stored: int
    already: int
    """Number of scores for instances that the judge had scored before; the first score is kept"""
    averaged: int = 0
    """Number of texts written by several systems for which a file had several scores; their mean is
    stored
    """
    lacking: Sequence[str] = ()
    """Unconfirmed runs that the judge has not scored completely"""
    needs_statement: bool = False
    """Whether the scores are unused until an admin states that the judge was not tuned"""

    @property
    def sentence(self) -> str:
        """Return the result in words."""
        parts = [f"{self.stored:,} scores are stored"]
        if self.already:
            parts.append(f"{self.already:,} were known")
        sentence = ", ".join(parts) + "."
        if self.averaged == 1:
            sentence += (
                " One text that several systems wrote had several scores: their mean counts."
            )
        elif self.averaged:
            sentence += (
                f" {self.averaged:,} texts that several systems wrote had several scores each:"
                " their mean counts."
            )
        if self.lacking:
            names = ", ".join(f"“{name}”" for name in self.lacking[:NAMED])
            more = f" and {len(self.lacking) - NAMED:,} more" if len(self.lacking) > NAMED else ""
            sentence += f" Drafts that it has not scored whole: {names}{more}."
        if self.needs_statement:
            sentence += f" {CAME_LATE}"
        return sentence


@dataclass(frozen=True)
class Name:
    """The name, version and prompt that identify a scorer."""

    name: str
    version: str = ""
    prompt: str = ""


def find_scorer(track: Track, scorer_name: Name) -> Scorer | None:
    """Return the scorer of that name, version and prompt; None if it has not scored anything
    yet.
    """
    return scorers_of_track(track).filter(source=Scorer.Source.BROUGHT, **vars(scorer_name)).first()


def list_unscored(
    track: Track, scorer_name: Name, *, after: int = 0, limit: int = 100
) -> list[dict[str, Any]]:
    """Return the instances that a judge has not scored yet, from the id `after` on, with the texts
    that the judge is given. Raises CannotTake if no score would be accepted.
    """
    _refuse_pairs(track)
    scorer = find_scorer(track, scorer_name)
    rows = fetch_rows(
        f"{NOT_SCORED} ORDER BY p.instance_id LIMIT %s",
        [track.pk, list(STORED), after, scorer.pk if scorer else 0, limit],
    )
    shown = kind_of(track).judge_inputs([instance for (instance,) in rows])
    return [{"id": instance, **shown[instance]} for (instance,) in rows if instance in shown]


def _refuse_pairs(track: Track) -> None:
    """Raise CannotTake on tracks that use no scores."""
    if kind_of(track).opposes:
        raise CannotTake(NOT_PAIRS.format(track.name))


def count_unscored(track: Track, scorer: Scorer | None) -> int:
    """Return how many instances a judge has not scored yet."""
    [(number,)] = fetch_rows(
        f"SELECT count(*) FROM ({NOT_SCORED}) AS missing",
        [track.pk, list(STORED), 0, scorer.pk if scorer else 0],
    )
    return int(number)


def predicted_instances(track: Track) -> set[int]:
    """Return all instances that the stored submissions of a track predict."""
    rows = fetch_rows(
        f"{STATED} WHERE s.track_id = %s AND s.status = ANY(%s)", [track.pk, list(STORED)]
    )
    return {instance for (instance,) in rows}


@transaction.atomic
def store_scores(
    track: Track,
    scorer_name: Name,
    scores: Sequence[tuple[int, float]],
    who: User,
    *,
    not_tuned: bool = False,
) -> StoredScores:
    """Store the scores of a judge, all or none. With `not_tuned`, record the statement of `who`
    that the judge was not tuned on the judgments. Raises CannotTake.
    """
    _refuse_pairs(track)
    if len(scores) > AT_MOST:
        raise CannotTake(f"One call takes at most {AT_MOST:,} scores; these are {len(scores):,}.")
    twice = next(
        (instance for instance, n in Counter(instance for instance, _ in scores).items() if n > 1),
        None,
    )
    if twice is not None:
        raise CannotTake(f"There are two scores of {twice}. Nothing was stored.")
    bad = next((instance for instance, value in scores if not math.isfinite(value)), None)
    if bad is not None:
        raise CannotTake(f"The score of {bad} is no finite number. Nothing was stored.")
    far = next((instance for instance, value in scores if abs(value) > LARGEST), None)
    if far is not None:
        raise CannotTake(f"{OUTSIDE}, that of {far} does not. Nothing was stored.")
    # Also predictions of no current run: the judge was asked about them, and they may return.
    asked = [instance for instance, _ in scores if instance < 1 << 63]
    here = Instance.objects.filter(pk__in=asked, target__corpus=track.corpus)
    existing = set(here.values_list("pk", flat=True))
    strange = next((instance for instance, _ in scores if instance not in existing), None)
    if strange is not None:
        raise CannotTake(f"The track has nothing with the id {strange}. Nothing was stored.")
    return _store_scores(
        _find_or_create_scorer(track, scorer_name, who, not_tuned=not_tuned), scores
    )


@transaction.atomic
def store_score_file(
    track: Track, source: Source, scorer_name: Name | None, who: User, *, not_tuned: bool = False
) -> dict[str, StoredScores]:
    """Store a file of scores, completely or not at all, and return the result for each scorer.
    `scorer_name` replaces missing columns. Several scores of one text are averaged.

    Raises BadFile with a report of all errors, or CannotTake.
    """
    _refuse_pairs(track)
    report = Report()
    values_by: dict[Name, dict[int, list[float]]] = {}
    for instance, scorer, value in _read_usable_scores(track, source, report, scorer_name):
        values_by.setdefault(scorer, {}).setdefault(instance, []).append(value)
    if report.errors or report.fatal or not values_by:
        if report.has_only_unknown_names and (waiting := unread_runs_sentence(track)):
            raise CannotTake(waiting)
        raise BadFile(report)
    taken = {}
    for named_so, values_of in values_by.items():
        row = _find_or_create_scorer(track, named_so, who, not_tuned=not_tuned)
        means = [(instance, fmean(values)) for instance, values in values_of.items()]
        averaged = sum(len(set(values)) > 1 for values in values_of.values())
        stored = _store_scores(row, means)
        scored = _scored_instances(track, named_so)
        lacking = [
            name
            for name, own in runs_to_score(track).items()
            if not scored.issuperset(own.values())
        ]
        taken[str(row)] = replace(stored, averaged=averaged, lacking=lacking)
    return taken


def _read_usable_scores(
    track: Track, source: Source, report: Report, scorer_name: Name | None
) -> Iterator[tuple[int, Name, float]]:
    """Yield the usable scores of a file: the instance, the scorer, the value."""
    lines = open_text(source, Limits(), report)
    header = next((line for line in lines if line[1].strip()), None)
    content = chain([header], lines) if header else lines
    metric = scorer_name.name if scorer_name else None
    if header is None or has_service_ids(header[1]):
        seen: dict[Name, set[int]] = {}
        for instance, record in read_scores_by_id(
            content, predicted_instances(track), report, metric=metric
        ):
            scorer = _scorer_name(record.metric, record.version, record.prompt, scorer_name)
            seen.setdefault(scorer, set()).add(instance)
            yield instance, scorer, record.value
        for scorer, scored in seen.items():
            _report_gaps(track, scorer, scored, report)
        return
    names = run_names_in_files(track)
    outputs = runs_to_score(track)
    if not any(outputs.values()):
        if not predicted_instances(track):
            raise CannotTake(
                unread_runs_sentence(track) or f"No run of {track.name} has been read yet."
            )
        report.add("syntax.header", header[0], "This track names things by their `id` alone.")
        return
    taking_part = set(_confirmed_runs(track))

    def scored_items_of_systems(judge: Judge) -> dict[str, list[str]]:
        scored = _scored_instances(track, _scorer_name(*judge, scorer_name))
        return {
            name: [key for key, instance in own.items() if instance in scored]
            for name, own in outputs.items()
        }

    read = read_scores(
        content,
        outputs,
        report,
        metric=metric,
        needed=[name for pk, name in names.written.items() if pk in taking_part],
        earlier_scores=scored_items_of_systems,
        also=names.read,
    )
    for score in read:
        scorer = _scorer_name(score.metric, score.version, score.prompt, scorer_name)
        yield outputs[score.system][score.input_id], scorer, score.value


def runs_to_score(track: Track) -> dict[str, Mapping[str, int]]:
    """Return the instances of each system by input id. Files that are still being read have a name
    but no instances.
    """
    return {name: instances_by_input(pk) for pk, name in run_names_in_files(track).written.items()}


def _confirmed_runs(track: Track) -> list[int]:
    """Return the runs of a track that a judge must score completely; unconfirmed drafts are not
    included.
    """
    return list(Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True))


def _scored_instances(track: Track, scorer_name: Name) -> set[int]:
    """Return the instances that a judge has scored before."""
    scorer = find_scorer(track, scorer_name)
    rows = fetch_rows(
        "SELECT instance_id FROM scores_score WHERE scorer_id = %s", [scorer.pk if scorer else 0]
    )
    return {instance for (instance,) in rows}


def _report_gaps(track: Track, scorer: Name, scored: set[int], report: Report) -> None:
    """Report which predictions of the confirmed runs a scorer leaves out. If it covers no run
    completely, report the run with the fewest gaps.
    """
    runs = [_predicted_instances(pk) for pk in _confirmed_runs(track)]
    if not runs:
        drafts = Submission.objects.filter(track=track, status__in=STORED)
        every = [_predicted_instances(pk) for pk in drafts.values_list("pk", flat=True)]
        runs = [min(every, key=lambda run: len(run - scored))]
    needed = set().union(*runs)
    missing = needed - scored - _scored_instances(track, scorer)
    if missing:
        examples = ", ".join(map(str, sorted(missing)[:5]))
        text = (
            f"“{scorer.name}” has no score for {len(missing):,} of {len(needed):,}: {examples}, for"
            " example."
        )
        report.add("consistency.scores_missing", 0, text)


def _predicted_instances(submission: int) -> set[int]:
    """Return all instances that a submission predicts."""
    return {instance for (instance,) in fetch_rows(f"{STATED} WHERE s.id = %s", [submission])}


def _scorer_name(name: str, version: str, prompt: str, scorer_name: Name | None) -> Name:
    return Name(
        name,
        version or (scorer_name.version if scorer_name else ""),
        prompt or (scorer_name.prompt if scorer_name else ""),
    )


def _find_or_create_scorer(
    track: Track, scorer_name: Name, who: User, *, not_tuned: bool
) -> Scorer:
    """Return the scorer of this name, created if needed. A new one is late if the test part has
    judgments. Raises CannotTake.
    """
    if not scorer_name.name:
        raise CannotTake("A judge needs a name.")
    if any(
        len(part) > 200 or not (part.isprintable() or not part)
        for part in vars(scorer_name).values()
    ):
        raise CannotTake("Name, version and prompt are at most 200 characters on one line.")
    alike = Scorer.objects.filter(corpus=track.corpus, **vars(scorer_name))
    if computed := alike.filter(source=Scorer.Source.COMPUTED).first():
        raise CannotTake(f"{computed} is computed here; bring yours under another name.")
    scorer, is_new = Scorer.objects.get_or_create(
        corpus=track.corpus,
        source=Scorer.Source.BROUGHT,
        **vars(scorer_name),
        defaults={"user": who, "came_late": _has_judgments(track)},
    )
    if is_new:
        write_audit_entry(
            "bring judge", f"scorer:{scorer.pk}", who=who, after=str(scorer), track=track.slug
        )
    if not_tuned:
        _record_statement(track, scorer, who)
    return scorer


def _has_judgments(track: Track) -> bool:
    """Return whether any target of the test part of a track's corpus has been judged."""
    return Label.objects.filter(target__corpus=track.corpus_id, target__is_dev=False).exists()


def _record_statement(track: Track, scorer: Scorer, who: User) -> None:
    """Record who states that a scorer was not tuned on judgments; the first statement is kept."""
    if scorer.not_tuned_at is None:
        scorer.not_tuned_by, scorer.not_tuned_at = who, clock.now()
        scorer.save(update_fields=["not_tuned_by", "not_tuned_at"])
        verb = "state judge not tuned"
        write_audit_entry(verb, f"scorer:{scorer.pk}", who=who, after=str(scorer), track=track.slug)
        wake_step("estimate")


def _store_scores(scorer: Scorer, scores: Sequence[tuple[int, float]]) -> StoredScores:
    stored = store_new_scores((scorer.pk, instance, value) for instance, value in scores)
    wake_step("estimate")
    return StoredScores(stored, len(scores) - stored, needs_statement=scorer.needs_statement)


def list_scorers(track: Track) -> list[dict[str, Any]]:
    """Return the metrics and judges of a track with their counts of scored instances, in the order
    of creation.
    """
    if kind_of(track).opposes:
        return []
    here = f"{STATED} WHERE s.track_id = %s AND s.status = ANY(%s)"
    [(total,)] = fetch_rows(f"SELECT count(*) FROM ({here}) AS predicted", [track.pk, list(STORED)])
    labels = {metric.name: metric.label for metric in kind_of(track).metrics}
    rows = scorers_of_track(track).select_related("not_tuned_by")
    counts = dict(
        fetch_rows(
            "SELECT scorer_id, count(*) FROM scores_score WHERE scorer_id = ANY(%s) AND"
            f" instance_id IN ({here}) GROUP BY 1",
            [[row.pk for row in rows], track.pk, list(STORED)],
        )
    )
    return [
        {
            "id": row.pk,
            "name": row.name,
            "label": labels.get(row.name, row.name) if row.source == "computed" else row.name,
            "version": row.version,
            "prompt": row.prompt,
            "source": row.source,
            "used": row.is_used,
            "came_late": row.came_late,
            "needs_statement": row.needs_statement,
            "statement": not_tuned_statement(row),
            "scored": counts.get(row.pk, 0),
            "of": total,
            "made_at": row.made_at,
        }
        for row in rows
    ]


def not_tuned_statement(scorer: Scorer) -> str:
    """Return who stated, and when, that a scorer was not tuned on the judgments; empty without a
    statement.
    """
    if scorer.not_tuned_at is None:
        return ""
    who = scorer.not_tuned_by.username if scorer.not_tuned_by else "An admin"
    return (
        f"{who} stated on {scorer.not_tuned_at:%Y-%m-%d} that it was not tuned on these judgments."
    )


def state_not_tuned(track: Track, scorer: int, who: User) -> Scorer:
    """Record an admin's statement that a scorer was not tuned on the judgments of a track. Raises
    Scorer.DoesNotExist.
    """
    with transaction.atomic():
        row = scorers_of_track(track).select_for_update().get(pk=scorer)
        _record_statement(track, row, who)
    return row


def set_scorer_used(track: Track, scorer: int, who: User, *, used: bool) -> Scorer:
    """Set whether the model uses a scorer. Raises Scorer.DoesNotExist."""
    with transaction.atomic():
        row = scorers_of_track(track).select_for_update().get(pk=scorer)
        if row.is_used != used:
            row.is_used = used
            row.save(update_fields=["is_used"])
            verb = "switch judge on" if used else "switch judge off"
            write_audit_entry(verb, f"scorer:{row.pk}", who=who, after=str(row), track=track.slug)
            wake_step("estimate")
    return row
