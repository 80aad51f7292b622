"""What people differ by on one text, told by those that two of them rated."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest
from django.utils import timezone

from kbpo.accounts.models import Team
from kbpo.corpus.models import Corpus
from kbpo.evaluation.data import load_data
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution, Threshold
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import KINDS
from kbpo.tracks.texts.ratings import RatedTarget, rating_noise, select_second_opinions
from kbpo.tracks.texts.store import Claim, store_text_claims
from scoring.score import default_estimates


def pairs(n: int, said: Sequence[float] = (1.0, 0.0)) -> dict[int, RatedTarget]:
    return {target: RatedTarget({"fluency": said}) for target in range(n)}


def test_annotator_noise_is_learnt_from_second_opinions_drawn_at_random_alone() -> None:
    """Those of equal texts are the easy ones: here they agree, and would halve the noise."""
    easy = {100 + target: RatedTarget({"fluency": [1.0, 1.0]}) for target in range(40)}
    noise = rating_noise(np.array([3, 100, 7]), pairs(20) | easy, "fluency", range(20))
    assert noise.count.tolist() == [2, 2, 2]
    assert noise.within is not None and np.isnan(noise.within[1]) and noise.within[0] == 0.5
    assert noise.variance == 0.25 and noise.is_separable
    none_at_random = rating_noise(np.array([3]), pairs(20) | easy, "fluency", ())
    assert np.isnan(none_at_random.variance) and not none_at_random.is_separable
    assert not rating_noise(np.array([3]), pairs(19), "fluency", range(19)).is_separable


def test_where_noise_is_not_separable_all_that_verdicts_vary_by_is_used() -> None:
    noise = rating_noise(np.arange(4), pairs(4, [1.0]), "fluency", ())
    verdict, member = np.array([[1.0], [0.0], [0.5], [0.5]]), np.ones((4, 1), dtype=np.bool_)
    bound = (0.5 + 0.25) / 4
    assert noise.rating_variances(member, verdict).tolist() == [[bound]] * 4
    assert noise.ratings_per_mean(np.arange(4)).tolist() == [1, 1, 1, 1]


@pytest.mark.django_db
def test_second_opinions_are_random_where_the_service_asked_several_or_everybody_did() -> None:
    corpus = Corpus.objects.create(name="Nothing", slug="nothing", schema={})
    targets = [
        Target.objects.create(corpus=corpus, kind="text", key=UUID(int=at), u=at / 4)
        for at in range(4)
    ]
    asked, once, equal, other = (target.pk for target in targets)
    known = {
        asked: RatedTarget({"fluency": [1.0, 0.0]}),
        once: RatedTarget({"fluency": [1.0]}),
        equal: RatedTarget({"fluency": [1.0, 1.0]}),
        other: RatedTarget(),
    }
    value = {"ratings": {"fluency": [1.0]}}
    record_labels(
        [
            NewLabel(asked, {"ratings": {"fluency": [1.0, 0.0]}}, "crowd", "ratings", 2, "q:1"),
            NewLabel(once, value, "crowd", "ratings", 1, "q:2"),
            NewLabel(equal, value, "import", "ratings", 1, "a file"),
            NewLabel(equal, value, "import", "ratings", 1, "a file"),
        ]
    )
    assert select_second_opinions(known) == {asked}
    assert select_second_opinions(
        {asked: known[asked], equal: known[equal], other: RatedTarget()}
    ) == {asked, equal}


def test_ratings_by_people_who_are_known_go_with_them() -> None:
    known = {
        1: RatedTarget({"fluency": [1.0, 0.0]}, {"fluency": ["ada", "bo"]}),
        2: RatedTarget({"fluency": [0.5, 0.75]}, {"fluency": ["", "ada"]}),
        3: RatedTarget({"fluency": [0.25]}),
    }
    single = rating_noise(np.array([3, 2, 1]), known, "fluency", ()).single
    assert single.value.tolist() == [0.75, 1.0, 0.0] and single.at.tolist() == [1, 2, 2]
    assert single.judge[0] == single.judge[1] != single.judge[2]
    some = single.select_instances(np.array([2, 0]))
    assert some.value.tolist() == [1.0, 0.0] and some.at.tolist() == [0, 0]


AGREED = [[0.5, 0.5], *([at % 3 / 2] for at in range(9))]
DISPUTED = [[1.0, 0.0], [1.0, 1.0], *([1.0] for _ in range(8))]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ratings", "value"),
    [(DISPUTED, 0.95), (AGREED, 0.5)],
    ids=["two of four part", "the only two agree"],
)
def test_where_every_text_is_rated_what_people_differ_by_is_left(
    monkeypatch: pytest.MonkeyPatch,
    ratings: list[list[float]],
    value: float,
) -> None:
    monkeypatch.setitem(KINDS, "questions", "tests.test.tracks.test_toy_kind.QuestionsTrack")
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
    n = store_text_claims(row.pk, corpus, "text", [Claim(f"text {at}", at) for at in range(10)])
    distribution = SamplingDistribution.objects.create(
        submission=row, kind="instance", total=n, n=n
    )
    batch = SampleBatch.objects.create(
        submission=row, distribution=distribution, design="poisson", seed=0, size=n
    )
    targets = list(Target.objects.filter(kind="text"))
    Threshold.objects.bulk_create(Threshold(batch=batch, target=one, pi=1.0) for one in targets)
    Sample.objects.bulk_create(Sample(batch=batch, target=one, probability=1.0) for one in targets)
    record_labels(
        NewLabel(one.pk, {"ratings": {"question": said}}, "crowd", "ratings", len(said), "q:1")
        for one, said in zip(targets, ratings, strict=True)
    )
    data = load_data(track)
    estimate, design = default_estimates(data, ("question",), ())["mean", "question", "instance"]
    verdicts = np.array([np.mean(said) for said in ratings])
    expected = (((verdicts - verdicts.mean()) ** 2).sum() + 0.25) / 10 / 10
    assert expected > 0 and estimate.value == pytest.approx([value])
    assert estimate.variance == pytest.approx([expected])
    assert design.covariance(estimate.influence)[0, 0] == pytest.approx(expected)
    assert estimate.anticipated > 0
