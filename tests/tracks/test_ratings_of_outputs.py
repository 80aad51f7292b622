"""What people differ by on one text, told by those that two of them rated."""

from __future__ import annotations

import numpy as np
import pytest
from django.utils import timezone

from kbpo.accounts.models import Team
from kbpo.corpus.models import Corpus
from kbpo.evaluation.data import read
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution, Threshold
from kbpo.submissions.models import Submission
from kbpo.tracks.content.ratings import LARGEST, Rated, noise_of
from kbpo.tracks.content.store import Claim, store
from kbpo.tracks.models import Track
from kbpo.tracks.registry import KINDS
from scoring.score import default_estimates


def test_what_people_differ_by_is_told_by_what_two_of_them_rated() -> None:
    known = {
        1: Rated({"fluency": [1.0, 0.0]}),
        2: Rated({"fluency": [0.5, 0.5, 0.5]}),
        3: Rated({"fluency": [1.0]}),
    }
    noise = noise_of(np.array([3, 1, 1, 4]), known, "fluency")
    assert noise.count.tolist() == [1, 2, 2, 0]
    assert noise.variance == pytest.approx(0.5 / 3), "sums of squares 0.5 and 0, 1 + 2 freedoms"


def test_ratings_by_people_who_are_known_go_with_them() -> None:
    known = {
        1: Rated({"fluency": [1.0, 0.0]}, {"fluency": ["ada", "bo"]}),
        2: Rated({"fluency": [0.5, 0.75]}, {"fluency": ["", "ada"]}),
        3: Rated({"fluency": [0.25]}),
    }
    single = noise_of(np.array([3, 2, 1]), known, "fluency").single
    assert single.value.tolist() == [0.75, 1.0, 0.0] and single.at.tolist() == [1, 2, 2]
    assert single.judge[0] == single.judge[1] != single.judge[2]
    some = single.of(np.array([2, 0]))
    assert some.value.tolist() == [1.0, 0.0] and some.at.tolist() == [0, 0]


def test_without_a_second_opinion_all_that_ratings_differ_by_is_taken_for_it() -> None:
    known = {1: Rated({"fluency": [1.0]}), 2: Rated({"fluency": [0.0]})}
    assert noise_of(np.array([1, 2]), known, "fluency").variance == pytest.approx(0.5)
    assert noise_of(np.array([1]), {}, "fluency").variance == LARGEST


@pytest.mark.django_db
def test_where_every_text_is_rated_what_people_differ_by_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(KINDS, "questions", "tests.tracks.test_toy_kind.QuestionsTrack")
    corpus = Corpus.objects.create(name="Nothing", slug="nothing", schema={})
    track = Track.objects.create(
        corpus=corpus, name="Questions", slug="questions", kind="questions", status="open"
    )
    row = Submission.objects.create(
        track=track,
        team=Team.objects.create(name="one", slug="one"),
        name="run",
        status="judging",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="x",
        confirmed_at=timezone.now(),
        sampled_at=timezone.now(),
    )
    n = store(row.pk, corpus, "text", [Claim(f"text {at}", at) for at in range(10)])
    distribution = SamplingDistribution.objects.create(
        submission=row, kind="instance", total=n, n=n
    )
    batch = SampleBatch.objects.create(
        submission=row, distribution=distribution, design="poisson", seed=0, size=n
    )
    targets = list(Target.objects.filter(kind="text"))
    Threshold.objects.bulk_create(Threshold(batch=batch, target=one, pi=1.0) for one in targets)
    Sample.objects.bulk_create(Sample(batch=batch, target=one, probability=1.0) for one in targets)
    ratings = [[1.0, 0.0], [1.0, 1.0], *([1.0] for _ in targets[2:])]
    record(
        NewLabel(one.pk, {"ratings": {"question": said}}, "crowd", "ratings", len(said), "q:1")
        for one, said in zip(targets, ratings, strict=True)
    )
    data = read(track)
    estimate, design = default_estimates(data, ("question",), ())["mean", "question", "instance"]
    variance = 0.5 / 2  # of two texts that two people rated, one was disputed
    expected = variance * (2 * 0.1**2 / 2 + 8 * 0.1**2)
    assert estimate.value == pytest.approx([0.95])
    assert estimate.variance == pytest.approx([expected])
    assert design.covariance(estimate.influence)[0, 0] == pytest.approx(expected)
