"""Measures how the time and memory of a rescoring grow with the number of predictions, at equal
labels.

usage: python -m benchmarks.rescore_large [PREDICTIONS ...] [--systems 5] [--documents 20]
                                           [--keep FOLDER]

A generated newspaper; each system predicts a random half of twice as many relations, is taken in
and asked about once, to about 500 labels; a relation is true by a keyed coin. Documents are read in
full, so that recall is counted as well (0: none). Each size runs in a process and in a database of
its own. Printed are the seconds of two rescorings (the first makes what follows from what is
predicted and drawn, and keeps it in files; the second is what each new label costs), their
statements, and their memory. With a folder to keep, the database and what was kept in files stay,
and the next run of that size begins with the rescorings; `manage.py` never sees that database.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as kbpo.settings does, before numpy is there
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")

import numpy as np

if TYPE_CHECKING:
    from kbpo.submissions.models import Submission
    from kbpo.tracks.models import Track

FIRST_STAGE = Decimal("0.015")
"""A half-width whose first, coarse stage asks about 460 questions a system"""


def peak_memory() -> float:
    """Return the peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_in_use() -> float:
    """Return the current memory of this process in MB, without mapped files, whose memory the
    system reclaims when needed.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


@contextmanager
def watch_memory() -> Iterator[list[float]]:
    """Yield a list that collects the current memory, fifty times a second."""
    found, over = [memory_in_use()], threading.Event()

    def sample_memory() -> None:
        while not over.wait(0.02):
            found.append(memory_in_use())

    watcher = threading.Thread(target=sample_memory)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()


@contextmanager
def time_statements() -> Iterator[list[float]]:
    """Yield a list that collects the seconds of each statement, except COPY."""
    from django.db import connection

    found = [0.0]

    def timed(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        start = time.perf_counter()
        try:
            return execute(sql, parameters, many, context)
        finally:
            found.append(time.perf_counter() - start)

    with connection.execute_wrapper(timed):
        yield found


def is_relation_true(*parts: object) -> bool:
    """Return whether a relation holds: 60 of 100 do."""
    return zlib.crc32("|".join(map(str, parts)).encode()) % 100 < 60


def system_files(universe: Path, folder: Path, systems: int, predictions: int) -> Iterator[Path]:
    """Yield each system's file: all entities, and a random choice of the relations."""
    lines = universe.read_text(encoding="utf-8").splitlines()
    is_relation = np.array(["per:" in line or "org:" in line or "gpe:" in line for line in lines])
    is_relation[0] = False
    relations = np.flatnonzero(is_relation)
    for number in range(systems):
        rng = np.random.default_rng([7, number])
        kept = ~is_relation
        kept[rng.choice(relations, size=min(predictions, relations.size), replace=False)] = True
        path = folder / f"system_{number}.kb.tsv"
        chosen = [lines[at] for at in np.flatnonzero(kept)]
        path.write_text("\n".join([f"system_{number}", *chosen[1:], ""]), encoding="utf-8")
        yield path


def take_in_system(track: Track, path: Path) -> Submission:
    """Return a submission that was read, planned, confirmed, drawn and judged; print the time of
    each step.
    """
    from kbpo.accounts.models import Team, User
    from kbpo.analyse import analyse_grown_tables
    from kbpo.sampling import draw, plan
    from kbpo.sampling.confirm import confirm_plan
    from kbpo.submissions import ingest
    from kbpo.submissions.receive import store_submission

    user, _ = User.objects.get_or_create(username=path.stem)
    team, _ = Team.objects.get_or_create(name=path.stem, slug=path.stem.replace("_", "-"))
    took = []

    def step(name: str, work: Callable[[], object]) -> None:
        start, cpu, before = time.perf_counter(), time.process_time(), memory_in_use()
        analyse_grown_tables()  # as before every step of the pipeline
        with watch_memory() as own, time_statements() as statements:
            work()
        took.append(
            f"{name} {time.perf_counter() - start:.1f} s ({time.process_time() - cpu:.1f} s in"
            f" Python, {max(own) - before:.0f} MB, slowest statement {max(statements):.1f} s)"
        )

    with path.open("rb") as file:
        row = store_submission(track, team, user, file, name=path.stem, file_name=path.name)
    step("read", ingest.tick)
    step("planned", plan.tick)
    row.refresh_from_db()
    assert row.status == "planned", (row.status, row.reason)
    confirm_plan(row, user)
    step("drawn", draw.tick)
    answer_drawn_targets(track)
    print(f"  {path.stem}: {', '.join(took)}", flush=True)
    return row


def answer_drawn_targets(track: Track) -> int:
    """Give every drawn target without a label the right one, and return their number."""
    from kbpo.instances.models import Target
    from kbpo.instances.record import NewLabel, record_labels
    from kbpo.sampling.models import Sample
    from kbpo.tracks.registry import kind_of

    samples = Sample.objects.filter(batch__submission__track=track)
    drawn = list(samples.values_list("target_id", flat=True).distinct())
    systems = list(track.submissions.values_list("pk", flat=True))
    drafts = list(kind_of(track).draft_questions(drawn, systems))
    targets = Target.objects.in_bulk([draft.target_id for draft in drafts])
    labels = []
    for draft in drafts:
        holds = [
            part for part in draft.shown if is_relation_true(targets[draft.target_id].key, part)
        ]
        value = {"shown": list(draft.shown), "holds": holds}
        labels.append(NewLabel(draft.target_id, value, "crowd", "majority", 3, "gold"))
    record_labels(labels)
    return len(labels)


def read_documents_in_full(track: Track, n: int) -> None:
    """Record that n documents were read in full, with all that is true in them."""
    from kbpo.corpus.models import Document
    from kbpo.instances.models import Instance
    from kbpo.instances.record import NewLabel, record_labels
    from kbpo.instances.targets import Place, make_targets
    from kbpo.sampling.documents.draw import draw_documents, settle_documents

    documents = draw_documents(track, n, seed=1)
    holds: dict[int, set[str]] = {}
    rows = Instance.objects.filter(document__in=documents).select_related("predicate", "target")
    for row in rows.iterator():
        part = f"{row.predicate.name}{'>' if row.subject_begin == row.target.a_begin else '<'}"
        if is_relation_true(row.target.key, part):
            holds.setdefault(row.target_id, set()).add(part)
    record_labels(
        NewLabel(target, {"shown": sorted(parts), "holds": sorted(parts)}, "import", "gold", 1, "g")
        for target, parts in holds.items()
    )
    keys = list(Document.objects.filter(pk__in=documents).values_list("pk", flat=True))
    places = make_targets(track.corpus, [Place("document", pk) for pk in keys])
    whole = {"scope": "document", "closed": True}
    record_labels(NewLabel(pk, whole, "import", "gold", 1, "g") for pk in places.values())
    settle_documents(track, documents, seed=1)


def measure_size(predictions: int, systems: int, documents: int, keep: Path | None) -> None:
    """Print the figures of one size."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    from kbpo import queue

    connection.settings_dict["TEST"]["NAME"] = f"rescore_large_{systems}_{predictions}_{documents}"
    queue.wake_step = lambda step: None  # nobody is to take part in this
    databases = setup_databases(
        verbosity=0, interactive=False, keepdb=keep is not None, serialized_aliases=[]
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = keep or Path(folder)
            settings.MEDIA_ROOT = place / "media"
            settings.ARRAYS_ROOT = place / f"arrays_{systems}_{predictions}_{documents}"
            prepare_and_score(Path(folder), predictions, systems, documents)
    finally:
        teardown_databases(databases, verbosity=0, keepdb=keep is not None)


def prepare_track(folder: Path, predictions: int, systems: int, documents: int) -> Track:
    """Return a track whose systems are read and judged; print the time of each."""
    from kbpo.corpus.load import find_schema, load_corpus
    from kbpo.sampling.open_track import Money, create_track, open_track
    from kbpo.tracks.models import Track

    command = [sys.executable, "-m", "benchmarks.files.large", str(folder)]
    command += ["--relations", str(2 * predictions)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if not Track.objects.exists():
        corpus = load_corpus("Large", folder / "corpus.jsonl", find_schema("tac_kbp"))
        open_track(
            create_track(
                corpus,
                "Large",
                money=Money(budget=Decimal(10**6)),
                target_half_width=FIRST_STAGE,
                criterion="relation",
            )
        )
    track = Track.objects.get()
    universe = folder / f"large_{2 * predictions}.kb.tsv"
    for path in system_files(universe, folder, systems, predictions):
        if not track.submissions.filter(name=path.stem, sampled_at__isnull=False).exists():
            take_in_system(track, path)
        path.unlink()
    if documents:
        read_documents_in_full(track, documents)
    return track


def prepare_and_score(folder: Path, predictions: int, systems: int, documents: int) -> None:
    """Read and judge the systems, and print the cost of rescoring."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from kbpo.analyse import analyse_grown_tables
    from kbpo.instances.models import Label
    from kbpo.submissions.models import Prediction
    from kbpo.tracks.models import Track

    track = Track.objects.filter(document_samples__isnull=not documents).first()
    if track is None or track.submissions.filter(sampled_at__isnull=False).count() < systems:
        track = prepare_track(folder, predictions, systems, documents)
    analyse_grown_tables()
    # A child measures: what taking the systems in held would hide what scoring holds.
    print(
        f"{systems} systems of {predictions:,}: {Prediction.objects.count():,} predictions,"
        f" {Label.objects.count():,} labels",
        flush=True,
    )
    connection.close()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        with CaptureQueriesContext(connection) as captured:
            measure_two_rescorings(track, captured)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def measure_two_rescorings(track: Track, captured: Any) -> None:
    """Print the seconds and the memory of two rescorings."""
    from django.db import transaction

    from kbpo.evaluation.run import score_track

    before, own_before = peak_memory(), memory_in_use()
    for _ in range(2):
        start, cpu, statements = time.perf_counter(), time.process_time(), len(captured)
        with watch_memory() as own, time_statements() as times, transaction.atomic():
            score_track(track)
        print(
            f"  scored anew in {time.perf_counter() - start:.2f} s"
            f" ({time.process_time() - cpu:.2f} s in Python),"
            f" {len(captured) - statements} statements, the slowest {max(times):.1f} s,"
            f" peak {before:.0f} MB before,"
            f" {peak_memory():.0f} MB after with the files that are mapped; of its own"
            f" {max(own) - own_before:.0f} MB more than before",
            flush=True,
        )
    if os.environ.get("PROFILE"):
        import cProfile
        import pstats

        profile = cProfile.Profile()
        with transaction.atomic():
            profile.runcall(score_track, track)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(60)


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("predictions", type=int, nargs="*", default=[10_000, 30_000, 100_000])
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for predictions in options.predictions:
        if options.one:
            measure_size(predictions, options.systems, options.documents, options.keep)
            continue
        command = [sys.executable, "-m", "benchmarks.rescore_large", "--one", str(predictions)]
        command += ["--systems", str(options.systems), "--documents", str(options.documents)]
        if options.keep:
            command += ["--keep", str(options.keep.resolve())]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
