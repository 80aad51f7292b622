"""Slices answer new questions from labels that exist: right where everything is judged, and
unbiased where not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from kbpo.evaluation.data import load_data as read_data
from kbpo.evaluation.run import score_track
from kbpo.evaluation.score import iterate_slice_scores, read_slices
from kbpo.instances.models import Instance
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Submission
from scoring.data import Data
from scoring.report import Figure
from scoring.slices import SliceScore, restrict_data_to_slice
from tests.reports import figure_of, figures_of
from tests.test.evaluation.world import BASED, LIVES, WORKS, World, half_asked

pytestmark = pytest.mark.django_db


def across(one: Instance) -> bool:
    between = one.document.text[
        min(one.subject_end, one.object_end) : max(one.subject_begin, one.object_begin)
    ]
    return ". " in between


@pytest.fixture
def whole(world: World) -> Submission:
    """A system that predicts everything, all of it judged, but no mention of what is left over."""
    row = world.system("whole", lambda one: True, confidence=lambda one: 0.9 if one.pk % 3 else 0.2)
    world.answer(world.sample(row))
    return row


def scores(row: Submission) -> dict[str, Figure]:
    of = {"criterion": row.track.criterion, "quantity": "precision"}
    found = figures_of(score_track(row.track), submission=row.pk, **of)
    return {key.slice: one for key, one in found.items() if key.slice}


def test_where_all_is_judged_a_slice_is_the_share_of_it_that_is_true(
    world: World, whole: Submission
) -> None:
    found = scores(whole)
    expected = {
        f"relation:{WORKS}": [one for one in world.instances if one.predicate.name == WORKS],
        f"relation:{BASED}": [one for one in world.instances if one.predicate.name == BASED],
        f"relation:{LIVES}": [one for one in world.instances if one.predicate.name == LIVES],
        "type:PER": [one for one in world.instances if one.predicate.name != BASED],
        "type:ORG": [one for one in world.instances if one.predicate.name == BASED],
        "sentence:same": [one for one in world.instances if not across(one)],
        "sentence:across": [one for one in world.instances if across(one)],
    }
    assert set(found) == set(expected)
    for key, instances in expected.items():
        one = found[key]
        assert one.value == pytest.approx(world.share_true(instances)), key
        assert one.n_predictions == len({each.target_id for each in instances})
        assert one.n_labels == one.n_predictions
        assert one.low80 <= one.value <= one.high80


def test_relations_of_one_pair_count_once_as_their_judgment_does(world: World) -> None:
    """“12 more” stood where every pair of a slice was judged: they were relations of the same."""
    world.also_said(list(world.instances))
    row = world.system("whole", lambda one: True)
    world.answer(world.sample(row))
    found = scores(row)["sentence:same"]
    inside = [one for one in world.instances if not across(one)]
    assert found.n_predictions == found.n_labels == len({one.target_id for one in inside})
    assert found.n_predictions < len(inside)


def test_slices_are_weighed_as_the_guaranteed_number_is_and_told_by_criterion(
    world: World, whole: Submission
) -> None:
    """They stood under `instance` and the guaranteed criterion alone, whatever was guaranteed."""
    data = read_data(world.track)
    p = data.pool.p["instance"]
    heavy = sparse.csr_array(p.multiply(np.arange(1, p.shape[0] + 1)[:, None]))
    data = replace(data, pool=replace(data.pool, p={"instance": p, "entity": heavy}))
    world.track.distribution = "entity"
    found = list(read_slices(world.track, data))
    assert found and {one.kind for one in found} == {"entity"}
    inside = np.flatnonzero(found[0].inside)
    np.testing.assert_allclose(
        restrict_data_to_slice(data, found[0]).pool.p["entity"].toarray()[:, 0],
        (inside + 1) / (inside + 1).sum(),
    )
    scores(whole)
    told = figures_of(score_track(whole.track), submission=whole.pk, slice=f"relation:{WORKS}")
    assert {key.criterion for key in told} == {"relation", "linking", "correct"}


def test_recall_of_a_predicate_counts_what_nobody_found(world: World) -> None:
    """All documents are read in full, and hold one true WORKS that no system predicts."""
    unpredicted = next(one for one in world.instances if one.predicate.name == WORKS)
    world.truth[unpredicted.pk] = True
    row = world.system("most", lambda one: one.pk != unpredicted.pk)
    world.answer(world.sample(row), source="import")
    world.answer([unpredicted.target], source="import")
    settle_documents(world.track, [one.pk for one in world.documents])
    evaluation = score_track(world.track)
    true = [one for one in world.instances if one.predicate.name == WORKS and world.truth[one.pk]]
    found = figure_of(evaluation, row, quantity="recall", slice=f"relation:{WORKS}")
    assert found.value == pytest.approx((len(true) - 1) / len(true))
    recalls = figures_of(evaluation, submission=row.pk, quantity="recall")
    assert not any(key.slice.startswith("type:") for key in recalls)


@pytest.mark.soak
@pytest.mark.statistical
def test_slices_of_a_sample_are_unbiased_and_covered(world: World) -> None:
    """With half of the targets asked; 200 draws of the random numbers on one set of data."""
    row = world.system("whole", lambda one: True)
    world.answer(world.sample(row))
    data, rng = read_data(world.track), np.random.default_rng(7)

    def guaranteed(data: Data) -> list[SliceScore]:
        every = iterate_slice_scores(world.track, data)
        return [one for one in every if one.score.criterion == world.track.criterion]

    true = {one.slice: one.score.value for one in guaranteed(data)}
    errors: dict[str, list[float]] = {key: [] for key in true}
    hits: dict[str, list[bool]] = {key: [] for key in true}
    for _ in range(60):
        half = half_asked(data, rng)
        for one in guaranteed(half):
            errors[one.slice].append(one.score.value - true[one.slice])
            hits[one.slice].append(one.score.low80 <= true[one.slice] <= one.score.high80)
    for key, some in errors.items():
        known = np.array(some)[~np.isnan(some)]
        assert abs(known.mean()) < 4 * known.std() / np.sqrt(known.size) + 0.005, key
    assert 0.70 < np.mean([one for some in hits.values() for one in some]) < 0.97
