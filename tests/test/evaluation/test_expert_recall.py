"""Recall and F1 are corrected by the same checks as precision, once every system's finds could be
checked.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from kbpo.evaluation.data import load_data
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import DocumentSample, ExpertCheck, ExpertRound
from kbpo.submissions.models import Submission
from scoring.corrected import compute_corrections
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.test.evaluation.replay import PART
from tests.test.evaluation.test_expert_checks import Crowd, again, as_answered, corrected

pytestmark = pytest.mark.django_db
N, DOCUMENTS, READ = 240, 24, 12
PREDICTED = (range(0, 180, 2), range(180))
QUANTITIES = ("precision", "recall", "f1")


def world(toy: Toy, pi: float = 1.0) -> Crowd:
    """Two systems, and sixty relations that no system predicts; twelve documents of 24 are read in
    full.
    """
    crowd = Crowd(toy, n=N, pi=pi, predicts=PREDICTED, documents=DOCUMENTS)
    read_documents(crowd, 0)
    return crowd


def read_documents(crowd: Crowd, seed: int) -> None:
    """Nothing; of some documents it is known what is true in them and no system predicts."""
    rng = np.random.default_rng(seed)
    chosen = {crowd.world.documents[at].pk for at in rng.choice(DOCUMENTS, READ, replace=False)}
    DocumentSample.objects.all().delete()
    Label.objects.filter(source="document").delete()
    marked = [
        pk
        for at, pk in enumerate(crowd.world.target)
        if at >= 180 and crowd.world.true[at] and crowd.world.documents[at % DOCUMENTS].pk in chosen
    ]
    record_labels(
        NewLabel(pk, {"shown": [PART], "holds": [PART]}, "document", "majority", 3, "read")
        for pk in marked
    )
    whole = make_targets(crowd.world.toy.corpus, [Place("document", pk) for pk in sorted(chosen)])
    record_labels(
        NewLabel(pk, {"closed": False}, "document", "majority", 3, "read") for pk in whole.values()
    )
    settle_documents(crowd.track, sorted(chosen))


def truth(crowd: Crowd) -> np.ndarray:
    """(3, 2): precision, recall and F1 of both systems."""
    true = crowd.world.true
    precision = [crowd.world.truth(which) for which in PREDICTED]
    recall = [true[list(which)].sum() / true.sum() for which in PREDICTED]
    f1 = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    return np.array([precision, recall, f1])


@pytest.mark.soak
def test_checking_everything_gives_what_the_expert_would_have_given(toy: Toy) -> None:
    crowd = world(toy)
    crowd.draw(5 * N)
    crowd.check()
    score_track(crowd.track)
    by_expert = {quantity: crowd.numbers("expert", quantity=quantity) for quantity in QUANTITIES}
    by_crowd = {quantity: crowd.numbers("centred", quantity=quantity) for quantity in QUANTITIES}
    true = crowd.world.true
    seen = DocumentSample.objects.values_list("document", flat=True)
    of_read = [at for at in range(180, N) if crowd.world.documents[at % DOCUMENTS].pk in set(seen)]
    unseen = true[of_read].sum() * DOCUMENTS / READ
    for row, which in zip(crowd.rows, PREDICTED, strict=True):
        precision, found = crowd.world.truth(which), true[list(which)].sum()
        recall = found / (true[:180].sum() + unseen)
        assert by_expert["recall"][row.pk].value == pytest.approx(recall)
        assert by_expert["f1"][row.pk].value == pytest.approx(
            2 * precision * recall / (precision + recall)
        )
        assert by_crowd["f1"][row.pk].value > by_expert["f1"][row.pk].value + 0.02
        assert by_expert["recall"][row.pk].n_checked == len(which)
        assert by_expert["recall"][row.pk].low80 < recall < by_expert["recall"][row.pk].high80
    Submission.objects.update(status="scored")
    page = Client().get(reverse("submission", args=[crowd.rows[0].pk])).content.decode()
    names = (
        "Precision, every prediction",
        "Recall",
        "F1 of recall and precision, every prediction",
    )
    assert all(re.search(rf">{name}, corrected\s*<", page) for name in names)
    assert "Recall is corrected only for facts" in page
    page = Client().get("/tracks/toy/?criterion=relation").content.decode()
    assert page.count('<small class="corrected">corrected ') == 2 * len(QUANTITIES)
    board = Client().get("/api/tracks/toy/board/?criterion=relation").json()
    for one in board["systems"]:
        for name, quantity in (
            ("expert", "precision"),
            ("expert_recall", "recall"),
            ("expert_f1", "f1"),
        ):
            assert one[name]["value"] == by_expert[quantity][one["submission"]].value


@pytest.mark.soak
def test_what_only_a_withdrawn_system_predicts_is_checked_for_everybodys_recall(toy: Toy) -> None:
    crowd = world(toy)
    crowd.rows[1].move("withdrawn")
    crowd.draw(5 * N)
    assert crowd.check() == 180
    score_track(crowd.track)
    true = crowd.world.true
    told = crowd.numbers("expert", quantity="recall")
    assert set(told) == {crowd.rows[0].pk}
    assert told[crowd.rows[0].pk].value < true[list(PREDICTED[0])].sum() / true[:180].sum()


@pytest.mark.soak
@pytest.mark.statistical
def test_recall_and_f1_are_corrected_without_bias_and_their_intervals_hold(toy: Toy) -> None:
    crowd = world(toy, pi=0.7)
    crowd.track.refresh_from_db()
    repeats, plain, told, inside = 30, [], [], []
    expected, of = (
        truth(crowd),
        {crowd.world.target[at]: crowd.value(crowd.world.target[at]) for at in crowd.predicted},
    )
    for seed in range(repeats):
        again(crowd, seed)
        read_documents(crowd, seed)
        crowd.draw(60)
        ExpertCheck.objects.bulk_update(
            [as_answered(row, of[row.target_id]) for row in ExpertCheck.objects.all()],
            ["value", "answered_at"],
        )
        ExpertRound.objects.update(status="ended")
        data = load_data(crowd.track)
        found = default_estimates(data, ("relation",), ("relation",))
        plain.append([found[one, "relation", "instance"][0].value for one in QUANTITIES])
        scores = compute_corrections(
            corrected(crowd.track, data), ("relation",), ("relation",)
        ).scores
        of_one = {(one.quantity, one.column): one for one in scores if one.criterion == "relation"}
        rows = [[of_one[quantity, column] for column in range(2)] for quantity in QUANTITIES]
        told.append([[one.value for one in some] for some in rows])
        inside.append(
            [
                [one.low80 <= value <= one.high80 for one, value in zip(some, values, strict=True)]
                for some, values in zip(rows, expected, strict=True)
            ]
        )
    error = np.array(told) - expected
    spread = error.std(axis=0, ddof=1) / repeats**0.5
    assert ((np.mean(plain, axis=0) - expected)[[0, 2]] > 0.04).all()
    assert (np.abs(error.mean(axis=0)) < 4 * spread).all() and spread.max() < 0.02
    assert np.mean(inside, axis=(0, 2)).min() > 0.80 - 4 * (0.16 / repeats / 2) ** 0.5
    assert np.mean(inside) < 0.99
