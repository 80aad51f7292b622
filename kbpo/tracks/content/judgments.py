"""Single judgments as a file, in and out: a study that was done elsewhere is scored here without
asking anybody.

What is imported is seen by everybody. So for whatever is confirmed afterwards it is certain, no
chance (`kbpo/inclusion/disclosure.py`); what was confirmed before is scored by its own sample
alone.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction

from formats.judgments import JudgmentRecord, read_judgments, write_judgments
from formats.limits import Limits
from formats.messages import Report
from formats.opening import Source, open_text
from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import PEOPLE, RATINGS
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.queue import nudge
from kbpo.submissions.models import Submission
from kbpo.submissions.names import RunNames, run_names
from kbpo.submissions.receive import still_read
from kbpo.tracks.base import Criterion
from kbpo.tracks.content.track import ContentTrack
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

METHOD = "ratings"
SECONDS = "seconds"
"""The part of an imported label that says how long each rating took, where a file said so:
criterion -> a list, one entry a rating, null where it did not
"""
NOT_TEXTS = "The track {} does not take judgments from files: only tracks of texts do."

NOT_PAIRS = (
    "The track {} compares pairs of outputs: a file that names one output a line says nothing of"
    " them. Its answers can be exported as they were given (export answers)."
)


class CannotImport(Exception):
    """A file of judgments of which nothing was stored; the text is a sentence."""


@dataclass(frozen=True)
class Imported:
    """What became of a file: judgments stored, texts they are of, judgments that were here before,
    lines that were set aside.
    """

    judgments: int
    texts: int
    known: int
    set_aside: int

    @property
    def sentence(self) -> str:
        """The same in words."""
        sentences = f"{self.judgments:,} judgments of {self.texts:,} texts were imported."
        if self.known:
            sentences += f" {self.known:,} were here already."
        if self.set_aside:
            sentences += f" {self.set_aside:,} lines were set aside."
        return sentences


@dataclass(frozen=True)
class Single:
    """What one person said here of one target under one criterion, in [0, 1]."""

    target: int
    worker: str
    criterion: str
    value: float
    seconds: float | None


class _Given(NamedTuple):
    """A rating in [0, 1], and how long it took."""

    rating: float
    seconds: float | None


@transaction.atomic
def import_judgments(
    track: Track,
    source: Source,
    report: Report,
    here: Iterable[Single] = (),
    *,
    partly: bool = False,
) -> Imported:
    """Stores the judgments of a file, each once however often it is imported; not those that people
    gave `here`, should they come back. Raises CannotImport, and nothing is stored: also if a line
    is wrong, unless the good ones are wanted (`partly`).
    """
    kind = text_kind(track)
    Track.objects.select_for_update(of=("self",), no_key=True).get(pk=track.pk)
    names = run_names(track)
    outputs = _outputs(names)
    criteria = {criterion.name: criterion for criterion in kind.criteria}
    ends = {name: (criterion.low, criterion.high) for name, criterion in criteria.items()}
    lines = open_text(source, Limits(), report)
    records = list(read_judgments(lines, outputs, ends, report, also=names.read))
    if report.fatal or not records or (report.errors and not partly):
        waiting = still_read(track) if report.only_unknown else ""
        raise CannotImport(f"Nothing was imported. {waiting or _first_error(report)}")
    stored = _known(outputs) | {(single.target, single.criterion, single.worker) for single in here}
    new: dict[tuple[int, str, str], _Given] = {}
    for judgment in records:
        target, person = (
            outputs[judgment.system][judgment.input_id],
            _person(track, judgment.worker),
        )
        if not stored & {
            (target, judgment.prompt, person),
            (target, judgment.prompt, judgment.worker),
        }:
            value = _scaled(judgment.value, criteria[judgment.prompt])
            new.setdefault((target, judgment.prompt, person), _Given(value, judgment.seconds))
    labels = list(_labels(new))
    record(labels)
    _plan_again(track, {label.target_id for label in labels})
    return Imported(len(new), len(labels), len(records) - len(new), report.errors)


def _first_error(report: Report) -> str:
    """Why a file of judgments cannot be taken: its first error, or that no line of it says
    anything."""
    error = next((message for message in report if message.severity == "error"), None)
    if error is None:
        return "The file holds no judgment: no line of it has a value."
    return f"Line {error.line}: {error.text}" if error.line else error.text


def export_judgments(
    track: Track, singles: Iterable[Single], *, public: bool = False
) -> Iterator[str]:
    """The lines of a file with all single judgments of a track's texts, once for each system that
    predicts one: those that people gave here, and those that were imported. A `public` one has the
    systems on the board, as everybody knows them.
    """
    criteria = {criterion.name: criterion for criterion in text_kind(track).criteria}
    predicted: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for system, texts in _outputs(run_names(track, public=public)).items():
        for key, target in texts.items():
            predicted[target].append((key, system))
    every = [*singles, *_imported(predicted)]
    return write_judgments(
        JudgmentRecord(
            key,
            system,
            single.worker,
            single.criterion,
            _unscaled(single.value, criterion),
            single.seconds,
        )
        for single in every
        if (criterion := criteria.get(single.criterion)) is not None
        for key, system in predicted.get(single.target, ())
    )


def predicted_targets(track: Track) -> list[int]:
    """The targets that a track's systems predict."""
    texts = _outputs(run_names(track)).values()
    return sorted({target for of_system in texts for target in of_system.values()})


def text_kind(track: Track) -> ContentTrack:
    """The kind of a track of texts. Raises CannotImport for any other."""
    kind = kind_of(track)
    if not isinstance(kind, ContentTrack):
        raise CannotImport(NOT_TEXTS.format(track.name))
    if kind.opposes:
        raise CannotImport(NOT_PAIRS.format(track.name))
    return kind


def _outputs(names: RunNames) -> dict[str, dict[str, int]]:
    """What files call a system -> input -> the target that it predicts for it."""
    outputs: dict[str, dict[str, int]] = {name: {} for name in names.written.values()}
    predicted = fetch(
        "SELECT p.submission_id, t.content->>'input', t.id FROM submissions_prediction p"
        " JOIN instances_instance i ON i.id = p.instance_id"
        " JOIN instances_target t ON t.id = i.target_id"
        " WHERE p.submission_id = ANY(%s) AND t.content->>'input' IS NOT NULL",
        [list(names.written)],
    )
    for submission, key, target in predicted:
        outputs[names.written[submission]][key] = target
    return outputs


def _known(outputs: dict[str, dict[str, int]]) -> set[tuple[int, str, str]]:
    """Target, criterion and person of what was imported before."""
    targets = sorted({target for texts in outputs.values() for target in texts.values()})
    labels = Label.objects.filter(target__in=targets, source=Label.Source.IMPORT)
    return {
        (target, criterion, person)
        for target, value in labels.values_list("target", "value")
        for criterion, people in value.get(PEOPLE, {}).items()
        for person in people
    }


def _imported(targets: Iterable[int]) -> Iterator[Single]:
    labels = Label.objects.filter(target__in=list(targets), source=Label.Source.IMPORT)
    for target, value in labels.order_by("pk").values_list("target", "value"):
        for criterion, people in value.get(PEOPLE, {}).items():
            took = value.get(SECONDS, {}).get(criterion, [None] * len(people))
            for given in zip(people, value[RATINGS][criterion], took, strict=True):
                person, rating, seconds = given
                yield Single(target, person, criterion, rating, seconds)


def _labels(given: dict[tuple[int, str, str], _Given]) -> Iterator[NewLabel]:
    """A label for each target, with every rating, who gave it and how long it took; its origin
    follows from what it says.
    """
    ratings: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    people: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    took: dict[int, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for (target, criterion, person), (rating, seconds) in sorted(given.items()):
        ratings[target][criterion].append(rating)
        people[target][criterion].append(person)
        took[target][criterion].append(seconds)
    for target, of_target in ratings.items():
        digest = hashlib.sha256(f"{target}{people[target].items()}".encode()).hexdigest()
        said = {RATINGS: dict(of_target), PEOPLE: dict(people[target])}
        if any(seconds is not None for each in took[target].values() for seconds in each):
            said |= {SECONDS: dict(took[target])}
        yield NewLabel(
            target,
            said,
            Label.Source.IMPORT,
            METHOD,
            max(len(ratings_of_criterion) for ratings_of_criterion in of_target.values()),
            f"import:{digest[:24]}",
            max(
                max(ratings_of_criterion) - min(ratings_of_criterion)
                for ratings_of_criterion in of_target.values()
            ),
            public=True,
        )


def _plan_again(track: Track, targets: set[int]) -> None:
    """Drafts that predict what is judged now are planned anew: it is not to be paid for."""
    drafts = Submission.objects.filter(track=track, status="planned")
    theirs = drafts.filter(predictions__instance__target__in=targets).distinct()
    for draft in Submission.objects.select_for_update(of=("self",)).filter(
        pk__in=list(theirs.values_list("pk", flat=True)), status="planned"
    ):
        draft.move("read")
    nudge("plan")


def _person(track: Track, worker: str) -> str:
    """A keyed hash of a worker's name: who they are stays where the study was done."""
    key = track.corpus.hash_key.encode()
    return hmac.new(key, worker.encode(), hashlib.sha256).hexdigest()[:16]


def _scaled(value: float, criterion: Criterion) -> float:
    return (value - criterion.low) / (criterion.high - criterion.low)


def _unscaled(value: float, criterion: Criterion) -> float:
    return round(criterion.low + value * (criterion.high - criterion.low), 12)
