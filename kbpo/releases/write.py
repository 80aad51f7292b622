"""Writes the release of a closed track into a directory, completely or not at all."""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy
import numpy as np
import scipy
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from annotation.labels.export import ANSWERS, judgment_rows
from annotation.models import Worker
from annotation.workers.consent import terms_version
from annotation.workers.models import Consent
from annotation.workers.worker import belongs_to_worker_filter
from kbpo import clock
from kbpo.corpus.sql import fetch_rows
from kbpo.evaluation.correction import counted_expert_checks
from kbpo.evaluation.data import load_data
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.evaluation.score import has_recall, ordered_criteria, read_slices
from kbpo.instances.targets import target_positions
from kbpo.releases.datasheet import LICENCE, citation_cff, datasheet_markdown
from kbpo.releases.parquet import pyarrow_version, write_parquet
from kbpo.sampling.guess import VERSION as MODEL
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_criteria
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools
from scoring.build import COUNTS, REALS
from scoring.data import ENDINGS, Data
from scoring.release import (
    ABOUT,
    FORMAT,
    SUMS,
    Release,
    Row,
    add_slices,
    data_tables,
    release_metadata,
    slice_rows,
    with_checksum,
)
from scoring.report import OF
from scoring.rescore import rescore_release
from scoring.saved import UNAIDED
from scoring.score import DEFAULT


@dataclass(frozen=True)
class LeftOut:
    """Tells which parts of withdrawn runs a release must keep, because the scores of other runs
    need them.

    Draws with replacement need the overlaps of whole runs, and the pool of recall needs guesses of
    unjudged targets. These numbers are kept, and the contents of their targets are not published
    (`told`).
    """

    withdrawn: frozenset[int]
    judged: frozenset[int]
    """Judged targets"""
    needed: frozenset[int]
    """Targets of which any number is needed"""
    told: frozenset[int]
    """Targets with published contents: judged ones, and those that participating runs predict"""
    with_replacement: bool
    target_of: dict[int, int]
    """Instance -> its target"""

    @classmethod
    def from_data(cls, data: Data) -> LeftOut:
        """Return which parts of withdrawn runs to keep, given the data of a release."""
        pool, with_replacement = data.pool, bool(data.draws)
        judged, told = (np.zeros(pool.target_id.size, dtype=np.bool_) for _ in range(2))
        judged[pool.target[data.judged]] = True
        predicted = pool.member[:, np.flatnonzero(data.shown)].sum(axis=1) > 0
        told[pool.target[predicted]] = True
        told |= judged
        needed = told | data.inclusion.drawn | with_replacement
        if data.facts is not None and data.facts.n_annotated > 1:  # else there is no recall
            needed[pool.target[data.facts.counted]] = True

        def ids(chosen: Bools) -> frozenset[int]:
            return frozenset(pool.target_id[chosen].tolist())

        gone = zip(data.systems, data.shown.tolist(), strict=True)
        targets = pool.target_id[pool.target]
        return cls(
            withdrawn=frozenset(system for system, takes_part in gone if not takes_part),
            judged=ids(judged),
            needed=ids(needed),
            told=ids(told),
            with_replacement=with_replacement,
            target_of=dict(zip(pool.instance.tolist(), targets.tolist(), strict=True)),
        )

    def without_left_out(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of a table that are kept: of withdrawn runs only rows of judged
        targets.
        """
        for row in rows:
            target = row["target"] if "target" in row else self.target_of[row["instance"]]
            if self.with_replacement or target in self.judged:
                yield row
            elif target in self.needed and row.get("system") not in self.withdrawn:
                yield self._remove_withdrawn_runs(row)

    def _remove_withdrawn_runs(self, row: Row) -> Row:
        """Return the row of an unjudged target without the withdrawn runs that predict it."""
        if "predicted_by" not in row:
            return row
        others = [system for system in row["predicted_by"] if system not in self.withdrawn]
        return row | {"predicted_by": others}


COLUMNS = [
    name
    for name in ANSWERS
    if name not in ("worker", "platform", "why_not", "gold", "sent_at", "words")
]
"""Published columns of an answer, as in its download on the desk"""
OF_TARGETS = (
    *("targets", "instances", "predictions", "labels", "metrics"),
    *("draws", "checks", "checked"),
)
"""Tables whose rows are about one target or instance, and reveal predictions of runs"""


class CannotRelease(Exception):
    """Raised for a track that cannot be released now; the text is a sentence."""


def write_release(track: Track, directory: Path) -> Row:
    """Write a release into a new directory and return the content of `release.json`. Raises
    CannotRelease, in which case nothing is written.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CannotRelease(f"{directory} is there already, and is not empty.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".release-", dir=directory.parent))
    try:
        manifest = _write_files(track, work)
        rescored = rescore_release(Release(work))
        if not rescored.agrees:
            faults = [*rescored.altered, *map(str, rescored.differences)]
            raise CannotRelease(f"The release does not rescore to the board: {faults[0]}.")
        if directory.exists():
            directory.rmdir()
        work.chmod(0o755)
        work.rename(directory)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return manifest


@transaction.atomic
def _write_files(track: Track, folder: Path) -> Row:
    check_is_public(track)
    evaluation = score_track(track)
    track.evaluations.filter(pk=evaluation.pk).update(
        stage_end=True
    )  # printed figures do not change
    data = load_data(track)
    checks = counted_expert_checks(track, data)
    if not data.shown.any() and not data.judged.size:
        raise CannotRelease(
            f"Every run of {track.name} was withdrawn before anything was judged: nothing can be"
            " released."
        )
    codes, slices, left_out = _Codes(track), list(read_slices(track, data)), LeftOut.from_data(data)
    written = {
        "systems": _system_rows(data),
        **data_tables(data, checks),
        "slices": slice_rows(slices),
        "draws": _draw_rows(track, data),
        "estimates": _estimate_rows(evaluation),
        "answers": _answer_rows(track, codes),
    }
    written["instances"] = add_slices(written["instances"], slices)
    for name in OF_TARGETS:
        written[name] = left_out.without_left_out(written[name])
    written["targets"] = _add_positions(written["targets"], left_out.told)
    written["instances"] = _with_statements(kind_of(track), written["instances"], left_out.told)
    linked = _Linked(data, codes.unlinked)
    written["ratings"] = linked.replace_codes(written["ratings"])
    rows = {name: _write_table(folder / f"{name}.jsonl", table) for name, table in written.items()}
    manifest = _release_metadata(track, evaluation, rows, release_metadata(data, checks))
    if linked.unlinked:  # intervals rest on who gave which rating
        manifest["board"]["not_recomputed"] = [
            f"{method}{population}"
            for method in (DEFAULT, UNAIDED)
            for population in ("", *ENDINGS.values())
        ]
    _write_text(folder / ABOUT, json.dumps(manifest, ensure_ascii=False, indent=2))
    _write_text(
        folder / "schema.json", json.dumps(track.corpus.schema, ensure_ascii=False, indent=2)
    )
    _write_text(folder / "datasheet.md", datasheet_markdown(track, manifest, codes.left_out))
    _write_text(folder / "CITATION.cff", citation_cff(track, manifest))
    _write_text(folder / "LICENSE.txt", LICENCE)
    _write_text(folder / "consent.md", _consent_terms(codes.versions))
    write_parquet(folder)
    files = sorted(file.name for file in folder.iterdir())
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in files]
    _write_text(folder / SUMS, "\n".join(sums))
    return manifest


def check_is_public(track: Track) -> None:
    """Raise CannotRelease while any part of the track is not public."""
    if track.status != Track.Status.CLOSED:
        raise CannotRelease(
            f"The track {track.name} is {track.status}. Close it first: until then its judgments"
            " are shown to nobody but the teams that they are about."
        )
    others = Track.objects.filter(corpus=track.corpus_id, status__in=("open", "frozen"))
    if names := ", ".join(others.order_by("name").values_list("name", flat=True)):
        raise CannotRelease(
            f"{names} asks about the same texts and is not closed: its judgments are hidden until"
            " then. Close it first."
        )
    taking_part = Submission.objects.filter(track=track).confirmed()
    if not Submission.objects.filter(track=track, sampled_at__isnull=False).exists():
        raise CannotRelease(f"No run of {track.name} was ever sampled: nothing can be released.")
    waiting = taking_part.exclude(pk__in=Submission.objects.that_have_score()).select_related(
        "team"
    )
    if waiting:
        names = ", ".join(run.own_name for run in waiting.order_by("pk")[:5])
        raise CannotRelease(
            f"{len(waiting):,} confirmed run{'' if len(waiting) == 1 else 's'} of {track.name}"
            f" still judged: {names}. Wait until each is scored, or withdraw it."
        )


def _write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows as JSON Lines with checksums, and return their number."""
    n = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(
                json.dumps(with_checksum(_dates_as_text(row)), ensure_ascii=False, allow_nan=False)
                + "\n"
            )
            n += 1
    return n


def _dates_as_text(row: Mapping[str, Any]) -> Row:
    """Return the row with dates as texts, since JSON has no dates."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _write_text(path: Path, text: str) -> None:
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _release_metadata(track: Track, evaluation: Evaluation, rows: dict[str, int], data: Row) -> Row:
    corpus, kind = track.corpus, kind_of(track)
    return {
        "format": FORMAT,
        "made_at": clock.now().isoformat(),
        "track": {
            "name": track.name,
            "slug": track.slug,
            "kind": track.kind,
            "design": track.design,
            "distribution": track.distribution,
            "criterion": track.criterion,
            "scope": track.scope,
            "closed_at": track.closed_at.isoformat() if track.closed_at else None,
        },
        "corpus": {
            "name": corpus.name,
            "licence": corpus.licence,
            "documents": corpus.n_documents,
            "digest": corpus.digest,
        },
        "board": {
            "evaluation": evaluation.number,
            "criteria": list(kind.measures.criterion_names()),
            "recall_criteria": list(recall_criteria(track)),
            "published": list(kind.measures.published),
            "simple_has_recall": True,
            "slice_criteria": ordered_criteria(track),
            "slices_have_recall": has_recall(track),
        },
        "versions": {
            "service": settings.VERSION,
            "model": MODEL,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "pyarrow": pyarrow_version(),
        },
        "rows": rows,
        "data": data,
    }


def _system_rows(data: Data) -> Iterator[Row]:
    """Yield the runs in the order of columns, by name if they are on the board. Private runs are
    listed without a name, since scores of others depend on their questions.
    """
    runs = Submission.objects.select_related("team").in_bulk(data.systems)
    public = set(
        Submission.objects.filter(pk__in=data.systems).on_board().values_list("pk", flat=True)
    )
    for pk, takes_part in zip(data.systems, data.shown.tolist(), strict=True):
        run = runs[pk]
        if pk in public:
            named = {
                "name": run.public_name,
                "team": run.public_team,
                "description": run.public_description,
            }
        else:
            state = "private" if takes_part else "withdrawn"
            named = {"name": f"{state} run {pk}", "team": "", "description": ""}
        yield {"system": pk, **named, "takes_part": takes_part}


def _add_positions(rows: Iterable[Row], published_targets: Collection[int]) -> Iterator[Row]:
    """Yield targets with their positions (document key and character spans) if their contents are
    published.
    """
    for part in _row_chunks(rows):
        places = target_positions([row["target"] for row in part])
        for row in part:
            key, kind, document, spans = places[row["target"]]
            place = {"key": key, "kind": kind, "document_key": document, "spans": spans}
            yield row | _statement_columns(place, row, published_targets)


def _with_statements(
    kind: Kind, rows: Iterable[Row], published_targets: Collection[int]
) -> Iterator[Row]:
    """Yield instances with their contents in columns of the kind, if they are published."""
    for part in _row_chunks(rows):
        said_of = kind.release_columns([row["instance"] for row in part])
        for row in part:
            yield row | _statement_columns(said_of.get(row["instance"], {}), row, published_targets)


def _statement_columns(values: Row, row: Row, published_targets: Collection[int]) -> Row:
    """Return the published columns of a row; empty fields where its target is not published."""
    return values if row["target"] in published_targets else dict.fromkeys(values)


def _row_chunks(rows: Iterable[Row], size: int = 5000) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def _draw_rows(track: Track, data: Data) -> Iterator[Row]:
    """Yield the history of the inclusion probabilities: the thresholds that each batch set, and the
    targets that it drew.
    """
    names = (
        "batch",
        "system",
        "distribution",
        "design",
        "stage",
        "drawn_at",
        "settled_at",
        "target",
        "instance",
        "times",
        "probability",
        "is_threshold",
    )
    rows = fetch_rows(
        """
        WITH batches AS (
            SELECT b.id, b.submission_id, d.kind, b.design, b.stage, b.drawn_at, b.settled_at
            FROM sampling_samplebatch b
            JOIN sampling_samplingdistribution d ON d.id = b.distribution_id
            JOIN submissions_submission s ON s.id = b.submission_id WHERE s.track_id = %(track)s)
        SELECT b.*, x.target_id, x.instance_id, x.multiplicity, x.probability, false
        FROM batches b JOIN sampling_sample x ON x.batch_id = b.id
        UNION ALL
        SELECT b.*, h.target_id, NULL, NULL, h.pi, true
        FROM batches b JOIN sampling_threshold h ON h.batch_id = b.id
        ORDER BY 1, 12, 9, 8
        """,
        {"track": track.pk},
    )
    for row in rows:
        yield dict(zip(names, row, strict=True))


def _estimate_rows(evaluation: Evaluation) -> Iterator[Row]:
    for figures in (evaluation.report.figures, evaluation.details.figures):
        for key, figure in figures.items():
            numbers = {name: getattr(figure, name) for name in (*REALS, *COUNTS)}
            yield {"system": key.submission} | dict(zip(OF, key[1:], strict=True)) | numbers


class _Codes:
    """Random codes for annotators, drawn for this release only."""

    def __init__(self, track: Track) -> None:
        workers = Worker.objects.filter(assignments__responses__question__track=track).distinct()
        everybody = list(workers.values_list("pk", "platform", "handle"))
        agreed = Consent.objects.filter(
            belongs_to_worker_filter(), worker__in=[pk for pk, _, _ in everybody]
        )
        self.versions = sorted(set(agreed.values_list("version", flat=True)))
        # Erased workers agreed that their answers are kept without their identity.
        willing = set(agreed.values_list("worker", flat=True))
        erased = set(workers.filter(erased_at__isnull=False).values_list("pk", flat=True))
        kept = [worker for worker in everybody if worker[0] in willing | erased]
        secrets.SystemRandom().shuffle(kept)
        self.code = {
            (platform_, handle): "" if pk in erased else f"w{number:03}"
            for number, (pk, platform_, handle) in enumerate(kept, 1)
        }
        # Of all tracks on the corpus, as they share judgments of texts.
        unlinked = Worker.objects.filter(Q(erased_at__isnull=False) | Q(consents__isnull=True))
        self.unlinked = set(unlinked.values_list("handle", flat=True))
        """People whose ratings must not be linked to one person"""
        self.left_out = 0
        """Number of answers of people who agreed to no terms, as far as they were read"""


class _Linked:
    """Single ratings under new random codes for people, one code for each person and criterion.
    People who were erased or agreed to no terms get another code for each rating.
    """

    def __init__(self, data: Data, unlinked: set[str]) -> None:
        self.unlinked = {
            (criterion, code)
            for criterion, noise in data.noise.items()
            for code, name in enumerate(noise.single.who)
            if name in unlinked
        }

    def replace_codes(self, ratings: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows under their new codes."""
        rows = list(ratings)
        people = [self._person_key(row, index) for index, row in enumerate(rows)]
        shuffled = list(set(people))
        secrets.SystemRandom().shuffle(shuffled)
        code = {person: number for number, person in enumerate(shuffled)}
        for row, person in zip(rows, people, strict=True):
            yield row | {"judge": code[person]}

    def _person_key(self, row: Row, index: int) -> tuple[str, int, int]:
        person = row["criterion"], row["judge"]
        return (*person, index if person in self.unlinked else -1)


def _answer_rows(track: Track, codes: _Codes) -> Iterator[Row]:
    """Yield single answers under codes, with the day of arrival; answers of people who agreed to no
    terms are left out.
    """
    for values in judgment_rows(track):
        row = dict(zip(ANSWERS, values, strict=True))
        code = codes.code.get((row["platform"], row["worker"]))
        if code is None:
            codes.left_out += 1
            continue
        day = row["sent_at"].date().isoformat() if row["sent_at"] else None
        yield {"worker": code, "day": day, **{name: _json_value(row[name]) for name in COLUMNS}}


def _json_value(value: Any) -> Any:
    """Return a value as JSON represents it."""
    return value if isinstance(value, dict | list | int | float | str | None) else str(value)


def _consent_terms(versions: list[int]) -> str:
    """Return a sentence about the terms to which the annotators had agreed."""
    parts = ["# What those who answered had agreed to"]
    for number in versions:
        text = terms_version(number)
        if text is not None:
            parts.append(f"## Version {number}\n\n{text.text.strip()}")
    return "\n\n".join(parts)
