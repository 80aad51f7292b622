"""The whole journey once, over HTTP, on real systems and documents, with people who are always
right.

    python benchmarks/journey_redocred.py [--systems 12] [--half-width 0.1] [--seed 1]

Loads the corpus, opens a track with scope `document`, imports the annotation of 100 random
documents, starts the web server, a worker and simulated annotators, uploads the systems through the
API, and holds the board against the truth. It works in a folder of its own (KBPO_VAR, or
benchmarks/out/journey).
"""

from __future__ import annotations

import argparse
import math
import os
import time
from decimal import Decimal

import numpy as np
import redocred

os.environ.setdefault("KBPO_VAR", str(redocred.ROOT / "benchmarks" / "out" / "journey"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")

import django

django.setup()

from django.core.management import call_command  # noqa: E402

from annotation.models import Assignment  # noqa: E402
from kbpo import embedded  # noqa: E402
from kbpo.corpus.models import Document  # noqa: E402
from kbpo.evaluation.leaderboard import Figure, board  # noqa: E402
from kbpo.money.spend import balance  # noqa: E402
from kbpo.sampling.models import DocumentSample  # noqa: E402
from rehearsal.demonstrate import Demo, Study  # noqa: E402


def study(names: list[str], half_width: str, seed: int = 1) -> Study:
    """The Re-DocRED systems as a study."""
    data = redocred.DATA
    return Study(
        name="Re-DocRED test set",
        corpus=data / "corpus.jsonl.gz",
        schema=str(data / "schema.json"),
        mentions=data / "mentions.tsv.gz",
        gold=data / "gold.tsv.gz",
        systems=[
            {
                "team": name.split("_")[0],
                "run": name,
                "file": str(data / "systems" / f"{name}.kb.tsv.gz"),
                "description": "",
            }
            for name in names
        ],
        read_in_full=100,
        half_width=Decimal(half_width),
        scope="document",
        closed=True,
        accuracy=1.0,
        seed=seed,
        budget=Decimal(20000),
    )


def compare(demo: Demo, pool: redocred.Pool) -> None:
    """Prints the board beside the truth."""
    true = {
        name: (pool.precision("instance")[j], pool.recall()[j]) for j, name in enumerate(pool.names)
    }
    shown = board(demo.track, distribution="instance", criterion="relation")
    print(f"\n{'':10}{'rank':>8}{'precision':>28}{'true':>8}{'recall':>28}{'true':>8}")
    inside = []
    for row in shown.rows:
        name = row.submission.name
        precision, recall = true[name]
        inside += [
            _inside(row.figure("precision"), precision),
            _inside(row.figure("recall"), recall),
        ]
        rank = "–".join(map(str, row.rank)) if row.rank else ""
        first = f"{_told(row.figure('precision')):>28}{precision * 100:8.1f}"
        print(f"{name:10}{rank:>8}{first}{_told(row.figure('recall')):>28}{recall * 100:8.1f}")
    print(f"\n{sum(inside)} of {len(inside)} of the 80 % intervals contain the truth")
    _tell_documents(demo, pool)
    sums = balance(track=demo.track)
    answers = Assignment.objects.filter(status__in=["approved", "paid"]).count()
    print(
        f"{answers} answers; reserved ${sums.reserved}, spent ${sums.spent}, given back"
        f" ${sums.released}"
    )


def _tell_documents(demo: Demo, pool: redocred.Pool) -> None:
    """Prints what the documents drawn hold of what no system predicts: all recalls rest on this one
    draw.
    """
    keys = list(
        Document.objects.filter(corpus=demo.track.corpus)
        .order_by("pk")
        .values_list("key", flat=True)
    )
    drawn = set(
        DocumentSample.objects.filter(track=demo.track).values_list("document__key", flat=True)
    )
    missed = np.bincount(
        pool.document[(pool.true > 0) & ~pool.member.any(axis=1)], minlength=pool.n_documents
    )
    inside = missed[[at for at, key in enumerate(keys) if key in drawn]]
    error = math.sqrt((1 - inside.size / missed.size) * inside.var(ddof=1) / inside.size)
    z = (inside.mean() - missed.mean()) / error
    print(
        f"Facts that no system predicts: {missed.mean():.1f} a document, {inside.mean():.1f} in the"
        f" {inside.size} that were drawn, {abs(z):.1f} standard errors"
        f" {'more' if z > 0 else 'fewer'}; all recalls move with this draw together"
    )


def _inside(figure: Figure | None, true: float) -> bool:
    return bool(
        figure
        and figure.low80 is not None
        and figure.high80 is not None
        and figure.low80 <= true <= figure.high80
    )


def _told(figure: Figure | None) -> str:
    if figure is None or figure.value is None or figure.low80 is None or figure.high80 is None:
        return "–"
    return (
        f"{figure.value * 100:.1f} ({figure.low80 * 100:.1f}–{figure.high80 * 100:.1f}), n"
        f" {figure.n_labels}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=12)
    parser.add_argument(
        "--half-width", default="0.100", help="Of the plan; the journey is what is tried here"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="Of the documents that are drawn to be read"
    )
    parser.add_argument("--port", type=int, default=8300)
    said = parser.parse_args()
    if not redocred.available():
        return
    names = redocred.names(said.systems)
    began = time.perf_counter()
    try:
        demo = Demo(
            lambda text: print(f"[{time.perf_counter() - began:5.0f} s] {text}", flush=True),
            study(names, said.half_width, said.seed),
            port=said.port,
        )
        call_command("migrate", verbosity=0)
        call_command("flush", interactive=False, verbosity=0)
        with demo.running():
            demo.prepare()
            demo.wait_for_web()
            demo.judge_all()
        compare(demo, redocred.read(names))
    finally:
        embedded.stop()


if __name__ == "__main__":
    main()
