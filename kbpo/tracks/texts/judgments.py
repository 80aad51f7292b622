"""Reads and writes single judgments as files: a study that was done elsewhere is scored here
without asking anybody.

An imported label is used like any other: if its target is drawn.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import transaction

from formats.judgments import JudgmentRecord, read_judgments, write_judgments
from formats.messages import Report
from formats.opening import Limits, Source, open_text
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import PEOPLE, RATINGS
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.queue import wake_step
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import RunNames, run_names_in_files, unread_runs_sentence
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.track import TextTrack

METHOD = "ratings"
SECONDS = "seconds"
"""Key in an imported label for the duration of each rating: criterion -> a list, one entry for each
rating, null if the file does not state it
"""
SUBMISSIONS = "submissions"
"""Key in an imported label for the submission whose output each rating is about: criterion -> a
list, one entry for each rating
"""
NOT_TEXTS = "The track {} does not take judgments from files: only tracks of texts do."

NOT_PAIRS = (
    "The track {} compares pairs of outputs: a file that names one output a line says nothing of"
    " them. Its answers can be downloaded as they were given, on its page Quality of the desk."
)


class CannotImport(Exception):
    """Raised for a file of judgments that was refused; the text is a sentence."""


@dataclass(frozen=True)
class ImportCounts:
    """The counts of an import: stored judgments, texts, repeated judgments, skipped lines."""

    judgments: int
    texts: int
    known: int
    set_aside: int

    @property
    def sentence(self) -> str:
        """Return the counts as a sentence."""
        sentences = f"{self.judgments:,} judgments of {self.texts:,} texts were imported."
        if self.known:
            sentences += f" {self.known:,} were here already."
        if self.set_aside:
            sentences += f" {self.set_aside:,} lines were set aside."
        return sentences


@dataclass(frozen=True)
class SingleRating:
    """The rating of one target by one annotator under one criterion, in [0, 1]."""

    target: int
    worker: str
    criterion: str
    value: float
    seconds: float | None
    submission: int | None = None
    """The submission whose output was rated, if a file states it; another one may have the same
    text
    """


class _Key(NamedTuple):
    """The identity of an imported judgment."""

    target: int
    criterion: str
    person: str
    submission: int


class _Given(NamedTuple):
    """A rating in [0, 1], and how long it took."""

    rating: float
    seconds: float | None


@transaction.atomic
def import_judgments(
    track: Track,
    source: Source,
    report: Report,
    own_ratings: Iterable[SingleRating] = (),
    *,
    skip_bad_lines: bool = False,
    is_public: bool = False,
) -> ImportCounts:
    """Store the judgments of a file. A judgment is stored once however often it is imported, and
    those that were made `own_ratings` and exported are skipped. Raises CannotImport without storing
    anything, also if a line is wrong unless `skip_bad_lines`. With `is_public` they were published
    elsewhere, so they are public here; later runs carry a mark.
    """
    kind = text_track_kind(track)
    Track.objects.select_for_update(of=("self",), no_key=True).get(pk=track.pk)
    names = run_names_in_files(track)
    outputs = _targets_by_system(names)
    criteria = {criterion.name: criterion for criterion in kind.measures.criteria}
    ends = {name: (criterion.low, criterion.high) for name, criterion in criteria.items()}
    lines = open_text(source, Limits(), report)
    records = list(read_judgments(lines, outputs, ends, report, also=names.read))
    if report.fatal or not records or (report.errors and not skip_bad_lines):
        waiting = unread_runs_sentence(track) if report.has_only_unknown_names else ""
        if waiting:  # what the file names is not unknown, but not read yet: nothing else is said
            report.messages.clear()
        raise CannotImport(f"Nothing was imported. {waiting or _first_error(report)}")
    number_of = {name: submission for submission, name in names.written.items()}
    stored = _imported_keys(outputs)
    given_here = {(single.target, single.criterion, single.worker) for single in own_ratings}
    new: dict[_Key, _Given] = {}
    for judgment in records:
        target = outputs[judgment.system][judgment.input_id]
        submission, criterion = number_of[judgment.system], judgment.prompt
        # A file that was exported here names people as they are stored.
        people = (_hash_worker_name(track, judgment.worker), judgment.worker)
        if any(
            (target, criterion, person) in given_here
            or _Key(target, criterion, person, submission) in stored
            for person in people
        ):
            continue
        scale = criteria[criterion]
        value = (judgment.value - scale.low) / (scale.high - scale.low)
        key = _Key(target, criterion, people[0], submission)
        new.setdefault(key, _Given(value, judgment.seconds))
    labels = list(_new_labels(new))
    record_labels(labels, is_public=is_public)
    _replan_drafts(track, {label.target_id for label in labels})
    return ImportCounts(len(new), len(labels), len(records) - len(new), report.errors)


def _first_error(report: Report) -> str:
    """Return why a file of judgments is refused: its first error, or that it has no judgment."""
    error = next((message for message in report if message.severity == "error"), None)
    if error is None:
        return "The file holds no judgment: no line of it has a value."
    return f"Line {error.line}: {error.text}" if error.line else error.text


def export_judgments(
    track: Track, singles: Iterable[SingleRating], *, public: bool = False
) -> Iterator[str]:
    """Yield the lines of a file with all single judgments of a track's texts, one for each
    judgment: those made here and the imported ones. For a text of several systems, a line names the
    one whose output was rated, or the first if no file named it. The `public` file uses the public
    names of systems on the board.
    """
    criteria = {criterion.name: criterion for criterion in text_track_kind(track).measures.criteria}
    names = run_names_in_files(track, public=public)
    predicted: dict[int, dict[str, str]] = defaultdict(dict)
    for system, texts in _targets_by_system(names).items():
        for key, target in texts.items():
            predicted[target][system] = key
    every = [*singles, *_imported_ratings(predicted)]
    return write_judgments(
        JudgmentRecord(
            key,
            system,
            single.worker,
            single.criterion,
            round(criterion.low + single.value * (criterion.high - criterion.low), 12),
            single.seconds,
        )
        for single in every
        if (criterion := criteria.get(single.criterion)) is not None
        and (outputs := predicted.get(single.target))
        for system in [names.written.get(single.submission or 0, "")]
        for system, key in [
            (system, outputs[system]) if system in outputs else next(iter(outputs.items()))
        ]
    )


def predicted_targets(track: Track) -> list[int]:
    """Return the targets that a track's systems predict."""
    texts = _targets_by_system(run_names_in_files(track)).values()
    return sorted({target for of_system in texts for target in of_system.values()})


def text_track_kind(track: Track) -> TextTrack:
    """Return the kind of a track of texts. Raises CannotImport for other kinds."""
    kind = kind_of(track)
    if not isinstance(kind, TextTrack):
        raise CannotImport(NOT_TEXTS.format(track.name))
    if kind.opposes:
        raise CannotImport(NOT_PAIRS.format(track.name))
    return kind


def _targets_by_system(names: RunNames) -> dict[str, dict[str, int]]:
    """Return a system's name in files -> input -> the target that it predicts for the input."""
    outputs: dict[str, dict[str, int]] = {name: {} for name in names.written.values()}
    predicted = fetch_rows(
        "SELECT p.submission_id, t.content->>'input', t.id FROM submissions_prediction p"
        " JOIN instances_instance i ON i.id = p.instance_id"
        " JOIN instances_target t ON t.id = i.target_id"
        " WHERE p.submission_id = ANY(%s) AND t.content->>'input' IS NOT NULL",
        [list(names.written)],
    )
    for submission, key, target in predicted:
        outputs[names.written[submission]][key] = target
    return outputs


def _imported_keys(outputs: dict[str, dict[str, int]]) -> set[_Key]:
    """Return the keys of these outputs' judgments that were imported before."""
    targets = {target for texts in outputs.values() for target in texts.values()}
    return {
        _Key(one.target, one.criterion, one.worker, one.submission)
        for one in _imported_ratings(targets)
        if one.submission is not None
    }


def _imported_ratings(targets: Iterable[int]) -> Iterator[SingleRating]:
    labels = Label.objects.filter(target__in=list(targets), source=Label.Source.IMPORT)
    for target, value in labels.order_by("pk").values_list("target", "value"):
        for criterion, people in value.get(PEOPLE, {}).items():
            nothing = [None] * len(people)
            took = value.get(SECONDS, {}).get(criterion, nothing)
            of = value.get(SUBMISSIONS, {}).get(criterion, nothing)
            for given in zip(people, value[RATINGS][criterion], took, of, strict=True):
                person, rating, seconds, submission = given
                yield SingleRating(target, person, criterion, rating, seconds, submission)


def _new_labels(given_ratings: dict[_Key, _Given]) -> Iterator[NewLabel]:
    """Yield a label for each target, with every rating, its annotator, the rated system, and its
    duration; the origin is derived from the values.
    """
    of_target: dict[int, list[tuple[_Key, _Given]]] = defaultdict(list)
    for key, one in sorted(given_ratings.items()):
        of_target[key.target].append((key, one))
    for target, rows in of_target.items():
        parts: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for key, (rating, seconds) in rows:
            parts[RATINGS][key.criterion].append(rating)
            parts[PEOPLE][key.criterion].append(key.person)
            parts[SUBMISSIONS][key.criterion].append(key.submission)
            parts[SECONDS][key.criterion].append(seconds)
        if all(seconds is None for _, (_, seconds) in rows):
            del parts[SECONDS]
        digest = hashlib.sha256(repr([key for key, _ in rows]).encode()).hexdigest()
        ratings = parts[RATINGS].values()
        yield NewLabel(
            target,
            {part: dict(lists) for part, lists in parts.items()},
            Label.Source.IMPORT,
            METHOD,
            max(len(some) for some in ratings),
            f"import:{digest[:24]}",
            max(max(some) - min(some) for some in ratings),
        )


def _replan_drafts(track: Track, targets: set[int]) -> None:
    """Plan the drafts again that predict newly judged texts, since these need not be paid."""
    drafts = Submission.objects.filter(track=track, status="planned")
    theirs = drafts.filter(predictions__instance__target__in=targets).distinct()
    for draft in Submission.objects.select_for_update(of=("self",)).filter(
        pk__in=list(theirs.values_list("pk", flat=True)), status="planned"
    ):
        draft.move("read")
    wake_step("plan")


def _hash_worker_name(track: Track, worker: str) -> str:
    """Return a keyed hash of a worker's name, so that names of other studies are not stored."""
    key = track.corpus.hash_key.encode()
    return hmac.new(key, worker.encode(), hashlib.sha256).hexdigest()[:16]
