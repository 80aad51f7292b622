"""With follow-ups, precision and recall are printed without bias: for who was there, who came late,
and who had seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone
from undone import undone

from annotation.questions import follow_up
from kbpo.evaluation.data import read
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import (
    FollowUp,
    Sample,
    SampleBatch,
    SamplingDistribution,
    Threshold,
    TrackKey,
)
from kbpo.submissions.models import Submission
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.evaluation.replay import PART, Replay

N, SHARE, DOCUMENTS, READ = 240, 0.6, 24, 9
REPEATS = 60
EARLY, NEIGHBOUR, LATE = range(140), range(60, 170), range(90, 210)
NOBODY = range(210, N)
"""What no system ever predicts"""
FOUND = 0.7
"""How much readers mark of what is true and predicted; of what nobody predicts all, so that plain
recall is not biased"""


class World:
    """A replay whose documents are read, followed up, and known to who comes again."""

    def __init__(self, toy: Toy, seed: int) -> None:
        TrackKey.objects.create(track=toy.track, secret=f"world {seed}")
        self.random = np.random.default_rng(1000 + seed)
        self.nonresponse = (
            0.2 if seed % 2 else 0.0
        )  # share of the follow-up's questions that nobody answers
        self.replay = Replay.of(toy, N, SHARE, documents=DOCUMENTS, seed=seed)
        # Documents differ: in half of them little is true, else there would be no clusters to be
        # told.
        poor = np.arange(N) % DOCUMENTS % 2 == 0
        self.replay.true = np.where(
            poor, self.random.random(N) < 0.35, self.random.random(N) < 0.85
        )
        self.truth: dict[int, float] = {}
        self.predicted: dict[int, list[int]] = {}

    def enter(self, team: str, which: Iterable[int], pi: float) -> Submission:
        """A submission whose targets were all drawn with π, and judged."""
        chosen, now = list(which), timezone.now()
        later = now + timedelta(microseconds=1)  # what the team saw was before its own sample
        row = self.replay.store(team, chosen, status="judging", confirmed_at=now, sampled_at=now)
        distribution = SamplingDistribution.objects.create(
            submission=row, kind="instance", total=len(chosen), n=len(chosen)
        )
        batch = SampleBatch.objects.create(
            submission=row,
            distribution=distribution,
            design="poisson",
            seed=0,
            size=1,
            drawn_at=later,
            settled_at=later,
        )
        targets = [self.replay.target[at] for at in chosen]
        Threshold.objects.bulk_create(Threshold(batch=batch, target_id=pk, pi=pi) for pk in targets)
        u = self.u
        asked = [pk for pk in targets if u[pk] < pi]
        Sample.objects.bulk_create(
            Sample(batch=batch, target_id=pk, probability=pi) for pk in asked
        )
        self.answer(asked)
        self.truth[row.pk], self.predicted[row.pk] = self.replay.truth(chosen), chosen
        return row

    @property
    def u(self) -> dict[int, float]:
        """The random numbers of all targets."""
        return dict(Target.objects.filter(pk__in=self.replay.target).values_list("pk", "u"))

    def answer(self, targets: Iterable[int]) -> None:
        """Labels of those that have none: what was marked, judged or given up is not asked
        again.
        """
        known = set(
            Label.objects.filter(target__in=self.replay.target).values_list("target_id", flat=True)
        )
        which = {pk: at for at, pk in enumerate(self.replay.target)}
        record(
            NewLabel(
                pk,
                {"shown": [PART], "holds": [PART] if self.replay.true[which[pk]] else []},
                "crowd",
                "majority",
                3,
                "q",
            )
            for pk in targets
            if pk not in known
        )

    def read_whole(self) -> None:
        """People read some documents, and overlook some of what systems predict."""
        chosen = self.random.choice(DOCUMENTS, READ, replace=False)
        self.read = set(chosen.tolist())
        documents = [self.replay.documents[at].pk for at in chosen]
        corpus = self.replay.toy.corpus
        places = [Place("document", pk) for pk in documents]
        found = targets_at(corpus, places)
        record(
            NewLabel(
                found[one], {"scope": "sentence", "closed": False}, "document", "majority", 3, "r"
            )
            for one in places
        )
        inside = [at for at in range(N) if at % DOCUMENTS in self.read and self.replay.true[at]]
        marks = [at for at in inside if at in NOBODY or self.random.random() < FOUND]
        record(
            NewLabel(
                self.replay.target[at],
                {"shown": [PART], "holds": [PART]},
                "document",
                "majority",
                3,
                "r",
            )
            for at in marks
        )
        settle_documents(self.replay.toy.track, documents)

    def follow_up(self) -> FollowUp:
        row = follow_up.order_follow_up(
            self.replay.toy.track, follow_up.plan_follow_up(self.replay.toy.track).at_most
        )
        asked = list(row.targets.values_list("target_id", flat=True))
        lost = [pk for pk in asked if self.random.random() < self.nonresponse]
        self.answer(set(asked) - set(lost))
        record(NewLabel(pk, {}, "crowd", "nonresponse", 0, "lost") for pk in lost)
        follow_up.tick()
        row.refresh_from_db()
        assert row.settled_at is not None
        return row

    def gamed(self, old: Iterable[int], new: Iterable[int]) -> list[int]:
        """A second run of a team that deletes what it sees to be wrong, and adds what it is sure of
        in the documents that it knows to be read, and anything elsewhere.
        """
        wrong = self.replay.known_wrong()
        kept = [at for at in old if at not in wrong]
        return kept + [at for at in new if self.replay.true[at] or at % DOCUMENTS not in self.read]


def errors(toy: Toy, seed: int) -> np.ndarray:
    """(5, 2): the errors of four precisions and of the first recall, and what their intervals rest
    on.
    """
    world = World(toy, seed)
    first = world.enter("Patterns", EARLY, 0.25)
    other = world.enter("Neural", NEIGHBOUR, 0.25)
    world.read_whole()
    world.follow_up()
    late = world.enter("Neural", LATE, 0.35)
    again = world.enter("Patterns", world.gamed(EARLY, range(140, 200)), 0.5)
    data = read(toy.track)
    assert data.inclusion.n_clusters == READ and data.systems.index(again.pk) in data.disclosed
    found = default_estimates(data, ("relation",), ("relation",))
    precision, recall = (found[name, "relation", "instance"][0] for name in ("precision", "recall"))
    predicted = set().union(*world.predicted.values())
    true = world.replay.true
    all_true = sum(true[at] for at in (*predicted, *NOBODY))
    rows = [(precision, row, world.truth[row.pk]) for row in (first, other, late, again)]
    rows.append((recall, first, sum(true[at] for at in EARLY) / all_true))
    out = []
    for estimate, row, truth in rows:
        column = data.systems.index(row.pk)
        value, variance, floor = (
            np.broadcast_to(one, np.shape(estimate.value))[column]
            for one in (estimate.value, estimate.variance, estimate.anticipated)
        )
        out.append((value - truth, np.sqrt(max(variance, floor))))
    return np.array(out)


@pytest.mark.django_db
@pytest.mark.statistical
def test_with_follow_ups_figures_are_printed_without_bias(toy: Toy) -> None:
    found = []
    for seed in range(REPEATS):
        with undone():
            found.append(errors(toy, seed))
    error, deviation = np.stack(found)[..., 0], np.stack(found)[..., 1]
    of_mean = error.std(axis=0, ddof=1) / np.sqrt(REPEATS)
    inside = np.abs(error) < 1.2816 * deviation
    assert (
        np.abs(error.mean(axis=0)) < 4 * of_mean + 0.002
    ).all()  # ratios have a bias of their own, of order 1/n
    assert 0.8 - 4 * (0.16 / inside.size) ** 0.5 < inside.mean() < 0.95
    assert (inside.mean(axis=0) > 0.8 - 4 * (0.16 / REPEATS) ** 0.5).all()
