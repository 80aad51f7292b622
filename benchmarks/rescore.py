"""How long a board of 20 systems takes to be scored anew, and where the time goes.

    python benchmarks/rescore.py [--systems 20] [--design poisson] [--half-width 0.03]

Real systems are taken in, planned, drawn and judged by the gold standard, without web pages and
queue, in a database of its own on the server that the settings name (our own one if none); 100
documents are annotated. Then the board is scored three times with everything in place: what a
worker does after each label, once the debounce has passed.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import resource
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import redocred

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
import django

if TYPE_CHECKING:
    from kbpo.submissions.models import Submission
    from kbpo.tracks.models import Track


def opened(design: str, half_width: str) -> Track:
    """A track on the real documents, of which 100 are annotated."""
    from django.core.management import call_command

    from kbpo.tracks.models import Track

    data, silent = redocred.DATA, io.StringIO()
    schema = str(data / "schema.json")
    call_command("load_corpus", "Real", str(data / "corpus.jsonl.gz"), schema=schema, stdout=silent)
    call_command(
        "create_track",
        "Real",
        corpus="real",
        budget=Decimal(10**6),
        half_width=Decimal(half_width),
        scope="document",
        criterion="relation",
        design=design,
        open=True,
        stdout=silent,
    )
    call_command(
        "import_annotations",
        "real",
        data / "gold.tsv.gz",
        data / "mentions.tsv.gz",
        sample=100,
        seed=1,
        closed=True,
        stdout=silent,
    )
    track = Track.objects.get()
    settle_mentions(track)
    return track


def settle_mentions(track: Track) -> None:
    """Nothing; it is known of every mention what it refers to."""
    from kbpo.corpus.models import Document
    from kbpo.instances.record import NewLabel, record
    from kbpo.instances.targets import Place, targets_at

    pks = dict(Document.objects.values_list("key", "pk"))
    canonical = {
        Place("mention", pks[row[0]], (int(row[1]), int(row[2]))): [int(row[6]), int(row[7])]
        for row in redocred.rows(redocred.DATA / "mentions.tsv.gz")
    }
    targets = targets_at(track.corpus, list(canonical))
    record(
        NewLabel(targets[one], {"canonical": span}, "crowd", "gold", 3, "gold")
        for one, span in canonical.items()
    )


def submitted(track: Track, name: str) -> Submission:
    """A system of the study, taken in, planned and confirmed."""
    from kbpo.accounts.models import Team, User
    from kbpo.sampling import distribution
    from kbpo.sampling.confirm import confirm
    from kbpo.submissions import ingest
    from kbpo.submissions.receive import receive

    user, _ = User.objects.get_or_create(username=f"of {name}")
    team, _ = Team.objects.get_or_create(name=name, slug=name.lower().replace("_", "-"))
    with (redocred.DATA / "systems" / f"{name}.kb.tsv.gz").open("rb") as file:
        row = receive(track, team, user, file, name=name, file_name=f"{name}.kb.tsv.gz")
    ingest.tick()
    distribution.tick()
    row.refresh_from_db()
    assert row.status == "planned", row.reason
    confirm(row, user)
    return row


def judged(row: Submission, gold: set[tuple[str, ...]]) -> None:
    """Nothing; the submission is drawn and judged in stages until it is scored."""
    from django.db import transaction

    from kbpo.evaluation.run import evaluate, finished
    from kbpo.sampling import draw

    for _ in range(12):
        draw.tick()
        answer(row, gold)
        with transaction.atomic():
            evaluate(row.track, finished(row.track))
        row.refresh_from_db()
        if row.status == "scored":
            return
    raise AssertionError(f"{row.name} is {row.status}: {row.reason}")


def answer(row: Submission, gold: set[tuple[str, ...]]) -> None:
    """Nothing; what was drawn for the submission and has no label gets the right one."""
    from kbpo.corpus.models import Document
    from kbpo.instances.models import Target
    from kbpo.instances.record import NewLabel, record
    from kbpo.sampling.models import Sample
    from kbpo.tracks.registry import kind_of

    drawn = list(
        Sample.objects.filter(batch__submission=row).values_list("target_id", flat=True).distinct()
    )
    drafts = list(kind_of(row.track).questions(drawn, [row.pk]))
    targets = Target.objects.in_bulk([draft.target_id for draft in drafts])
    keys = dict(Document.objects.values_list("pk", "key"))
    labels = []
    for draft in drafts:
        target = targets[draft.target_id]
        ahead = str(target.a_begin), str(target.a_end)
        back = str(target.b_begin), str(target.b_end)
        ends = {">": (ahead, back), "<": (back, ahead)}
        holds = [
            part
            for part in draft.shown
            if (keys[target.document_id], *ends[part[-1]][0], part[:-1], *ends[part[-1]][1]) in gold
        ]
        labels.append(
            NewLabel(
                target.pk, {"shown": draft.shown, "holds": holds}, "crowd", "majority", 3, "gold"
            )
        )
    record(labels)


def measure(names: list[str], design: str, half_width: str) -> None:
    """Nothing; prints the times."""
    from django.db import connection, transaction

    from kbpo.evaluation.leaderboard import board
    from kbpo.evaluation.run import evaluate
    from kbpo.instances.models import Label
    from kbpo.submissions.models import Prediction

    gold = {tuple(row[: redocred.COLUMNS]) for row in redocred.rows(redocred.DATA / "gold.tsv.gz")}
    track = opened(design, half_width)
    for name in names:
        start = time.perf_counter()
        judged(submitted(track, name), gold)
        print(f"  {name}: on the board after {time.perf_counter() - start:.1f} s", flush=True)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(
        f"{len(names)} systems, {Prediction.objects.count():,} predictions,"
        f" {Label.objects.count():,} labels"
    )
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        with transaction.atomic():
            evaluate(track)
        print(
            f"  scored anew in {time.perf_counter() - start:.2f} s ({time.process_time() - cpu:.2f}"
            " s in Python)"
        )
    start = time.perf_counter()
    board(track, distribution="instance", criterion="relation")
    print(f"  the board read in {time.perf_counter() - start:.3f} s")
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    profile = cProfile.Profile()
    with transaction.atomic():
        profile.runcall(evaluate, track)
    table = io.StringIO()
    pstats.Stats(profile, stream=table).sort_stats("cumulative").print_stats(
        "kbpo/(evaluation|sampling|tracks)", 16
    )
    print(table.getvalue()[table.getvalue().index("ncalls") :])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--design", default="poisson", choices=["poisson", "iid"])
    parser.add_argument("--half-width", default="0.03")
    said = parser.parse_args()
    if not redocred.available():
        return
    django.setup()
    from django.conf import settings
    from django.test.utils import setup_databases, teardown_databases

    from kbpo import queue

    queue.nudge = lambda step: None  # nobody is to take part in this
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings.MEDIA_ROOT = Path(folder)
            measure(redocred.names(said.systems), said.design, said.half_width)
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
