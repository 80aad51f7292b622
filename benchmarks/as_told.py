"""The demo's journey with annotators who know the truth and do only what the pages tell them: do the
pages themselves bias precision, recall or linking?

    python benchmarks/as_told.py [--documents 60] [--read 12] [--seed 1] [--port 8310]

Whatever differs from the truth here comes from a page: a kind of name that nobody is told to mark,
a sentence that cannot be picked, a choice whose words fit two things. Each label is held against the
gold standard, and each score of each system against its true value, in standard errors. It works
in a folder of its own (KBPO_VAR, or benchmarks/out/as_told).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("KBPO_VAR", str(Path(__file__).resolve().parent / "out" / "as_told"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")

import django

django.setup()

from django.core.management import call_command  # noqa: E402

from annotation.models import Question  # noqa: E402
from kbpo import embedded  # noqa: E402
from kbpo.evaluation.leaderboard import Figure, board  # noqa: E402
from kbpo.instances.models import Label  # noqa: E402
from rehearsal.demonstrate import Demo, demo_study  # noqa: E402
from rehearsal.newspaper.knows import Knowledge  # noqa: E402

LIMIT = 4
"""Standard errors beyond which something is called biased"""
Z80 = 1.2816


def labels_beside_gold(demo: Demo) -> None:
    """Prints how often what people settled is not what is true, of everything that was asked."""
    knows = Knowledge(demo.study.mentions, demo.study.gold)
    wrong, asked = Counter[str](), Counter[str]()
    rows = Label.objects.filter(source="crowd").exclude(value={}).select_related("target__document")
    for label in rows:
        target, value = label.target, label.value
        key = target.its_document.key
        a = (target.a_begin, target.a_end)
        if target.kind == "pair":
            true = knows.true_answer(key, a, (target.b_begin, target.b_end)).holds
            for part in value["shown"]:
                holds, says = (part[:-1], part[-1]) in true, part in value["holds"]
                asked["relations that hold" if holds else "relations that do not hold"] += 1
                wrong["relations that hold" if holds else "relations that do not hold"] += (
                    holds != says
                )
        elif target.kind == "mention" and (key, a) in knows.mentions and value.get("canonical"):
            document = knows.mentions_of(key)
            text, (begin, end) = target.its_document.text, knows.mentions[key, a].canonical
            named = document.get(tuple(value["canonical"]))
            same = named is not None and named.cluster == knows.mentions[key, a].cluster
            full = text[slice(*value["canonical"])] == text[begin:end]
            asked["names: the right thing"] += 1
            wrong["names: the right thing"] += not same
            asked["names: by the fullest name"] += 1
            wrong["names: by the fullest name"] += not full
    for what, n in sorted(asked.items()):
        print(f"{what:32}{wrong[what]:6} of {n:6} otherwise ({wrong[what] / n:.2%})")


def marks_beside_gold(demo: Demo) -> None:
    """Prints the recall of marks by type, in the documents that were read in full."""
    knows = Knowledge(demo.study.mentions, demo.study.gold)
    rows = Question.objects.filter(interface="entities", status="settled")
    read = set(rows.values_list("target__document__key", flat=True))
    marks = Label.objects.filter(target__kind="mention", source="document").exclude(value={})
    places = marks.values_list("target__document__key", "target__a_begin", "target__a_end")
    marked = {(key, (begin, end)) for key, begin, end in places}
    counted = {
        name
        for one in demo.track.corpus.schema["predicates"]
        for pair in one["types"]
        for name in pair
    }
    there: dict[str, list[bool]] = defaultdict(list)
    for (key, span), known in knows.mentions.items():
        if key in read and known.type in counted:
            there[known.type].append((key, span) in marked)
    for kind, found in sorted(there.items()):
        print(f"marked {kind:12} {sum(found):5} of {len(found):5}")


def same_choices(demo: Demo) -> None:
    """Prints in how many link steps a name and its part are offered, and whether their words tell
    them apart.
    """
    from annotation.interfaces.shared.payload import Pair

    steps = parts = alike = 0
    for payload in Question.objects.filter(interface="relation").values_list("payload", flat=True):
        for side in Pair.of(payload).sides:
            if not side.asked:
                continue
            steps += 1
            parts += bool(side.fuller)
            called = [side.called(value) for value in side.candidates]
            alike += any(
                f" {one} " in f" {other} " and " not " not in one
                for at, one in enumerate(called)
                for other in (*called[:at], *called[at + 1 :])
                if " not " not in other
            )
    print(f"{steps} link steps: {parts} offer a name and its part, {alike} by words that fit both")


def scores_beside_truth(demo: Demo) -> int:
    """How many scores are biased; prints each beside its true value."""
    truth = json.loads((demo.study.corpus.parent / "truth.json").read_text())["systems"]
    biased = 0
    for criterion in ("relation", "correct"):
        shown = board(demo.track, distribution="instance", criterion=criterion)
        for row in shown.rows:
            system = next(
                one
                for one in demo.study.systems
                if (one["team"], one.get("name", one["run"]))
                == (row.submission.team.name, row.submission.name)
            )
            for quantity in ("precision", "recall"):
                known = truth[Path(system["file"]).name.removesuffix(".kb.tsv")][quantity]
                true = known["instance"][criterion] if quantity == "precision" else known[criterion]
                z = _errors(row.figure(quantity), true)
                biased += z is not None and abs(z) > LIMIT
                told = "not measured" if z is None else f"{z:+.2f} standard errors"
                figure = row.figure(quantity)
                value = "–" if figure is None or figure.value is None else f"{figure.value:.3f}"
                name = f"{row.submission.team.name} {row.submission.name}"
                print(f"{name:28}{criterion:10}{quantity:10}{value:>8}{true:8.3f}  {told}")
    return biased


def _errors(figure: Figure | None, true: float) -> float | None:
    """By how many standard errors an estimate is off."""
    if figure is None or figure.value is None or figure.low80 is None or figure.high80 is None:
        return None
    error = (figure.high80 - figure.low80) / 2 / Z80
    off = figure.value - true
    return off / error if error else (0.0 if not off else math.copysign(math.inf, off))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--read", type=int, default=12)
    parser.add_argument("--systems", type=int, default=0, help="0: all of the demo's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8310)
    said = parser.parse_args()
    began = time.perf_counter()
    directory = Path(os.environ["KBPO_VAR"]) / f"newspaper-{said.documents}-{said.seed}"
    study = demo_study(
        directory,
        documents=said.documents,
        seed=said.seed,
        read=said.read,
        systems=said.systems,
    )
    study = replace(study, as_told=True, accuracy=1.0, budget=Decimal(20000))
    try:
        demo = Demo(
            lambda text: print(f"[{time.perf_counter() - began:5.0f} s] {text}", flush=True),
            study,
            port=said.port,
        )
        call_command("migrate", verbosity=0)
        call_command("flush", interactive=False, verbosity=0)
        demo.prepare()
        with demo.running():
            demo.submit_all()
            demo.finish_reading()
        same_choices(demo)
        labels_beside_gold(demo)
        marks_beside_gold(demo)
        print(f"{scores_beside_truth(demo)} scores are off by more than {LIMIT} standard errors")
    finally:
        embedded.stop()


if __name__ == "__main__":
    main()
