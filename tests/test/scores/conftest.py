"""A track of short answers with two runs, whose inputs and outputs one can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import transaction
from django.utils import timezone

from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Instance
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution, Threshold
from kbpo.scores.bring import Name, store_scores
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.texts.models import Input
from kbpo.tracks.texts.store import Claim, store_text_claims

N = 4
"""Inputs"""
MANY, SHARE = 120, 0.5
"""Outputs of a run that is studied, and the share of them that is rated"""
CRITERIA = ("overall", "redundancy", "fluency", "edit")


@dataclass
class World:
    """The track, its runs, and an admin with a token."""

    track: Track
    runs: dict[str, Submission]
    admin: User
    token: str
    truth: dict[str, float] = field(default_factory=dict)
    """What people think of a run on average, where that was made up"""

    def add(self, name: str, texts: list[str], team: str = "one") -> Submission:
        """A run of these texts that takes part."""
        row = Submission.objects.create(
            track=self.track,
            team=Team.objects.get_or_create(name=team, slug=team)[0],
            name=name,
            status="judging",
            file="x",
            file_name="x",
            file_size=1,
            file_digest=name,
            confirmed_at=timezone.now(),
            sampled_at=timezone.now(),
        )
        claims = [
            Claim(f"input {at}\n{text}", at, {"input": f"input {at}", "text": text})
            for at, text in enumerate(texts)
        ]
        with transaction.atomic():
            store_text_claims(row.pk, self.track.corpus, "output", claims)
        self.runs[name] = row
        return row

    def numbers(self, name: str) -> list[int]:
        """The instances of a run."""
        rows = Instance.objects.filter(predictions__submission=self.runs[name]).order_by("pk")
        return list(rows.values_list("pk", flat=True))


@pytest.fixture
def world(keep: Callable[..., World]) -> World:
    """Four inputs, and two runs of a text on each."""
    return keep("answers", make_world)


def make_world() -> World:
    corpus = Corpus.objects.create(name="Answers", slug="answers", schema={}, hash_key="answers")
    for at in range(N):
        Input.objects.create(
            corpus=corpus,
            key=f"input {at}",
            source="the cat sat on the mat",
            references=["the cat sat", "a cat was sitting"],
        )
    track = Track.objects.create(
        corpus=corpus, name="Answers", slug="answers", kind="generation", status="open"
    )
    admin = User.objects.create_user("admin", password="x", is_staff=True)
    made = World(track, {}, admin, Token.create_with_secret(admin, "judge")[1])
    made.add("A", ["the cat sat", "a dog", "the cat", "the mat"])
    made.add("B", ["the cat sat", "rain", "snow", "a mat"], team="two")
    return made


@pytest.fixture
def written(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    """Writes rows as JSON Lines, and says where."""

    def write(rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / "scores.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def studied(world: World, keep: Callable[..., World]) -> World:
    """Two runs of 120 outputs, half of each rated, some twice; a judge that knows much of what
    people think, and likes the run B better than they do. The track is closed, so that all numbers
    are stored.
    """
    return keep("studied answers", lambda: study(world))


def study(world: World) -> World:
    Submission.objects.all().delete()
    corpus = world.track.corpus
    Input.objects.bulk_create(Input(corpus=corpus, key=f"input {at}") for at in range(N, MANY))
    rng = np.random.default_rng(4)
    judged: list[tuple[int, float]] = []
    labels: list[NewLabel] = []
    for name, level in (("A", 0.6), ("B", 0.45)):
        row = world.add(name, [f"{name} {at} " + "word " * (at % 7) for at in range(MANY)])
        numbers = world.numbers(name)
        truth = np.clip(rng.normal(level, 0.25, MANY), 0, 1)
        world.truth[name] = float(truth.mean())
        distribution = SamplingDistribution.objects.create(
            submission=row, kind="instance", total=MANY, n=MANY
        )
        batch = SampleBatch.objects.create(
            submission=row, distribution=distribution, design="poisson", seed=0, size=MANY
        )
        targets = Instance.objects.in_bulk(numbers)
        rows = [targets[one].target for one in numbers]
        Threshold.objects.bulk_create(Threshold(batch=batch, target=one, pi=SHARE) for one in rows)
        drawn = [at for at, target in enumerate(rows) if target.u < SHARE]
        Sample.objects.bulk_create(
            Sample(batch=batch, target=rows[at], probability=SHARE) for at in drawn
        )
        said = {
            at: np.clip(truth[at] + rng.normal(0, 0.1, 2 if at % 5 == 0 else 1), 0, 1).tolist()
            for at in drawn
        }
        labels += [
            NewLabel(
                rows[at].pk,
                {"ratings": {name: better if name != "edit" else worse for name in CRITERIA}},
                "crowd",
                "ratings",
                len(better),
                f"q:{rows[at].pk}",
            )
            for at, better in said.items()
            for worse in [[1 - one for one in better]]
        ]
        bent = truth + (0.2 if name == "B" else 0.0)
        judged += list(zip(numbers, bent.tolist(), strict=True))
    store_scores(world.track, Name("judge"), judged, world.admin)
    record_labels(labels)
    Submission.objects.update(plan={"chosen": "0.030"})
    Track.objects.filter(pk=world.track.pk).update(status="closed")
    world.track.refresh_from_db()
    return world
