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
from kbpo.tracks.content.ratings import Rated, noise_of
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
    assert noise.within is not None and noise.within.tolist() == [0, 0.5, 0.5, 0]
    whole = (1 + 3 * 0.25 + 1 - 3.5**2 / 6 + 0.25) / 6
    assert noise.variance == pytest.approx((0.5 + 4 * whole) / (3 + 4)), "1 + 2 freedoms, and 4"


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
    assert noise_of(np.array([1, 2]), known, "fluency").variance == 0.25, "the most there can be"
    assert noise_of(np.array([1]), {}, "fluency").variance == 0.25


AGREED = [[0.5, 0.5], *([at % 3 / 2] for at in range(9))]
DISPUTED = [[1.0, 0.0], [1.0, 1.0], *([1.0] for _ in range(8))]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ratings", "value", "within", "freedom"),
    [(DISPUTED, 0.95, 0.5, 2), (AGREED, 0.5, 0.0, 1)],
    ids=["two of four part", "the only two agree"],
)
def test_where_every_text_is_rated_what_people_differ_by_is_left(
    monkeypatch: pytest.MonkeyPatch,
    ratings: list[list[float]],
    value: float,
    within: float,
    freedom: int,
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
    record(
        NewLabel(one.pk, {"ratings": {"question": said}}, "crowd", "ratings", len(said), "q:1")
        for one, said in zip(targets, ratings, strict=True)
    )
    data = read(track)
    estimate, design = default_estimates(data, ("question",), ())["mean", "question", "instance"]
    every = np.array([one for said in ratings for one in said])
    whole = (((every - every.mean()) ** 2).sum() + 0.25) / every.size
    variance = (within + 4 * whole) / (freedom + 4)
    expected = variance * sum(0.1**2 / len(said) for said in ratings)
    assert expected > 0 and estimate.value == pytest.approx([value])
    assert estimate.variance == pytest.approx([expected])
    assert design.covariance(estimate.influence)[0, 0] == pytest.approx(expected)
    assert estimate.anticipated > 0
