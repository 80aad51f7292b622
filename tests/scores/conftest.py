"""A track of short answers with two runs, whose inputs and outputs one can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.instances.models import Instance
from kbpo.submissions.models import Submission
from kbpo.tracks.content.store import Claim, store
from kbpo.tracks.generation.models import Input
from kbpo.tracks.models import Track

N = 4
"""Inputs"""


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
        store(row.pk, self.track.corpus, "output", claims)
        self.runs[name] = row
        return row

    def numbers(self, name: str) -> list[int]:
        """The instances of a run."""
        rows = Instance.objects.filter(predictions__submission=self.runs[name]).order_by("pk")
        return list(rows.values_list("pk", flat=True))


@pytest.fixture
def world(db: None) -> World:
    corpus = Corpus.objects.create(name="Answers", slug="answers", schema={})
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
    made = World(track, {}, admin, Token.issue(admin, "judge")[1])
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
