"""What the service tells its model of a pool is what the replays tell theirs: their figures are the
service's.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kbpo.pool.pool import read_pool
from kbpo.sampling.guess import claims_of_rows
from kbpo.submissions.models import Prediction
from scoring.pool import Pool
from tests.conftest import Toy
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(toy: Toy) -> Pool:
    world = World(toy, n_documents=10)
    sure = lambda one: (one.pk % 7) / 7  # noqa: E731
    rows = [
        world.system("all", lambda one: True, confidence=sure),
        world.system(
            "some",
            lambda one: one.pk % 3 > 0,
            team="Neural",
            confidence=lambda one: (one.pk % 5) / 5,
        ),
    ]
    # The other run names another canonical mention of one subject: that of the first run counts.
    first = Prediction.objects.filter(submission=rows[1]).order_by("pk").first()
    assert first is not None
    first.subject_canonical_begin, first.subject_canonical_end = 20, 25
    first.save()
    return read_pool(world.track, [row.pk for row in rows])


def test_an_entity_is_one_canonical_mention_of_one_document(pool: Pool) -> None:
    spans = {
        row[0]: row[1:]
        for row in Prediction.objects.filter(submission=pool.systems[0]).values_list(
            "instance_id",
            "instance__document_id",
            "subject_canonical_begin",
            "subject_canonical_end",
        )
    }
    known: dict[object, int] = {}
    for instance, code in zip(pool.instance.tolist(), pool.subject.tolist(), strict=True):
        assert known.setdefault(spans[instance], code) == code
    assert len(set(known.values())) == len(known), "an entity of another document is another entity"
    assert len(known) < pool.instance.size


def test_rivals_for_a_subject_are_counted(pool: Pool) -> None:
    """Anna lives in two towns: two statements with one subject and one predicate, and a vote each
    of either run.
    """
    every = np.arange(pool.instance.size)
    found = claims_of_rows(pool, every).features()
    column = (
        found.matrix[:, [found.names.index("crowd votes on subject and predicate")]]
        .toarray()
        .ravel()
    )
    votes = np.asarray(sparse.csr_array(pool.member).sum(axis=1)).ravel()
    same = (pool.subject[:, None] == pool.subject) & (pool.stratum[:, None] == pool.stratum)
    expected = np.log(same @ votes)
    assert np.allclose(column, (expected - expected.mean()) / expected.std())
    assert np.unique(expected).size > 2
