"""Who repeats others' texts could choose among what was judged: that counts for it alone."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from django.db import transaction

from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Estimate
from kbpo.evaluation.run import evaluate, finished
from kbpo.inclusion.disclosure import earlier
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import LeakTest, Sample
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.tracks.content.store import Claim, store
from kbpo.tracks.generation.models import Input
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

pytestmark = pytest.mark.django_db
INPUTS = 200


class Texts:
    """A track of texts, and how good each text is, by people who agree."""

    def __init__(self) -> None:
        corpus = Corpus.objects.create(
            name="Answers", slug="answers", schema={}, n_documents=INPUTS
        )
        for at in range(INPUTS):
            Input.objects.create(corpus=corpus, key=f"input {at}", source="the cat sat")
        admin = User.objects.create_user("chief", password="x", is_staff=True)
        created = create_track(
            corpus, "Answers", kind="generation", money=Money(budget=Decimal(5000))
        )
        self.track: Track = open_track(created, admin, "go")
        self.good: dict[str, bool] = {}

    def upload(self, name: str, texts: list[str]) -> Submission:
        """A planned run of a team of its own."""
        row = Submission.objects.create(
            track=self.track,
            team=Team.objects.create(name=name, slug=name),
            name=name,
            status="read",
            file="x",
            file_name="x",
            file_size=1,
            file_digest=name,
            target_half_width="0.050",
            counts={"outputs": INPUTS},
            user=User.objects.create_user(name, password="x"),
        )
        with transaction.atomic():
            store(
                row.pk,
                self.track.corpus,
                "output",
                [
                    Claim(f"input {at}\n{text}", at, {"input": f"input {at}", "text": text})
                    for at, text in enumerate(texts)
                ],
            )
        distribution.tick()
        row.refresh_from_db()
        return row

    def judge(self, row: Submission) -> Submission:
        """The run on the board."""
        assert row.user is not None
        confirm(row, row.user)
        for _ in range(12):
            draw.tick()
            self.answer()
            evaluate(self.track, finished(self.track))
            row.refresh_from_db()
            if row.status == "scored":
                return row
        raise AssertionError(row.status)

    def answer(self) -> None:
        """People rate all that waits."""
        waiting = Sample.objects.filter(target__labels__isnull=True).values_list("target")
        record(
            NewLabel(
                target.pk,
                {
                    "ratings": {
                        name: [float(self.good[target.content["text"]])] * 3
                        for name in kind_of(self.track).criterion_names()
                    }
                },
                "crowd",
                "ratings",
                3,
                f"q:{target.pk}",
            )
            for target in Target.objects.filter(pk__in=waiting)
            if target.content
        )

    def printed(self, row: Submission) -> Estimate:
        return Estimate.objects.get(
            evaluation=self.track.evaluations.order_by("-number").first(),
            submission=row,
            criterion=self.track.criterion,
            method="centred",
            slice="",
        )


def of_two(db: None, seed: int) -> tuple[Texts, dict[str, list[str]], np.random.Generator]:
    """Two judged runs, each of whose texts is good or not by a coin."""
    rng, texts = np.random.default_rng(seed), Texts()
    said = {name: [f"{name} says {at}" for at in range(INPUTS)] for name in ("a", "b")}
    for some in said.values():
        texts.good |= dict(zip(some, (rng.random(INPUTS) < 0.5).tolist(), strict=True))
        texts.judge(texts.upload(some[0].split()[0], some))
    return texts, said, rng


@pytest.mark.soak
def test_the_better_judged_of_two_texts_gains_nothing(db: None) -> None:
    off = []
    for seed in (2, 3, 4):
        with transaction.atomic():
            texts, said, rng = of_two(db, seed)
            judged = set(
                Target.objects.filter(labels__isnull=False).values_list("content__text", flat=True)
            )
            chosen = []
            for both in zip(said["a"], said["b"], strict=True):
                rank = [2 * texts.good[text] if text in judged else 1 for text in both]
                better = int(rng.integers(2)) if rank[0] == rank[1] else int(np.argmax(rank))
                chosen.append(both[better])
            row = texts.judge(texts.upload("c", chosen))
            truth = float(np.mean([texts.good[text] for text in chosen]))
            printed = texts.printed(row)
            off.append(((printed.value or 0) - truth) / (printed.high80 - printed.low80))
            transaction.set_rollback(True)
    assert abs(np.mean(off)) < 1 / np.sqrt(len(off)), "it was 2.5 half-widths too high"


@pytest.mark.soak
def test_repeated_texts_count_for_the_run_alone_and_the_model_believes_them(db: None) -> None:
    texts, said, _ = of_two(db, 1)
    own = [f"c says {at}" for at in range(INPUTS)]
    texts.good |= dict.fromkeys(own, True)
    row = texts.judge(texts.upload("c", [*said["a"][:3], *own[3:]]))
    [same] = row.leak_tests.filter(seen=True)
    assert same.earlier.name == "a" and same.channel == LeakTest.Channel.SAME
    assert same.decided_at is not None, "no admin is asked about it"
    data = read(texts.track)
    saw = data.disclosed[data.systems.index(row.pk)]
    known = saw.certainty | saw.unjudged
    assert known.sum() == 3 and not saw.leaked, "what it shares alone is known, and believed"
    texts.good["b, too"] = True
    third = texts.upload("d", [*["b, too"] * 3, *own[3:5], *["b, too"] * (INPUTS - 5)])
    confirm(third, third.user or row.user)
    draw.tick()
    assert earlier(third) == [row.pk], "whom that one repeats is nothing to it"


@pytest.mark.soak
def test_a_few_good_texts_of_each_of_several_runs_gain_nothing(db: None) -> None:
    """Thirty of a run's two hundred, five of each of six, all of them judged to be good."""
    off = []
    for seed in (1, 2, 3, 4):
        with transaction.atomic():
            rng, texts = np.random.default_rng(seed), Texts()
            said = {name: [f"{name} says {at}" for at in range(INPUTS)] for name in "abcdef"}
            for name, some in said.items():
                texts.good |= dict(zip(some, (rng.random(INPUTS) < 0.5).tolist(), strict=True))
                texts.judge(texts.upload(name, some))
            judged = set(
                Target.objects.filter(labels__isnull=False).values_list("content__text", flat=True)
            )
            chosen = [f"own {at}" for at in range(INPUTS)]
            texts.good |= dict(zip(chosen, (rng.random(INPUTS) < 0.5).tolist(), strict=True))
            for number, some in enumerate(said.values()):
                good = [at for at, text in enumerate(some) if text in judged and texts.good[text]]
                for at in [at for at in good if at % 6 == number][:5]:
                    chosen[at] = some[at]
            row = texts.judge(texts.upload("z", chosen))
            truth = float(np.mean([texts.good[text] for text in chosen]))
            printed = texts.printed(row)
            off.append(((printed.value or 0) - truth) / (printed.high80 - printed.low80))
            transaction.set_rollback(True)
    assert abs(np.mean(off)) < 0.8 / np.sqrt(len(off)), off
