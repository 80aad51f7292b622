"""What readers of whole documents marked, rightly or not, is checked by experts like any other
judgment of a draw.
"""

from __future__ import annotations

import numpy as np
import pytest

from kbpo.evaluation.correction import count_votes, read_frame
from kbpo.evaluation.data import load_data
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import DocumentSample, ExpertCheck, ExpertRound
from scoring.corrected import compute_corrections
from tests.conftest import Toy
from tests.test.evaluation.replay import PART
from tests.test.evaluation.test_expert_checks import (
    BROAD,
    PRECISE,
    Crowd,
    N,
    again,
    as_answered,
    corrected,
)

pytestmark = pytest.mark.django_db
DOCUMENTS, READ = 8, 4


class Readers(Crowd):
    """A crowd whose every second document was read in full before anybody was asked: of what it
    holds readers marked all that is plausible, and nobody was asked about that again.
    """

    def judge(self) -> None:
        super().judge()
        chosen = [row.pk for row in self.world.documents[:READ]]
        marked = self.marked()
        Label.objects.filter(target__in=marked).delete()
        record_labels(
            NewLabel(pk, {"shown": [PART], "holds": [PART]}, "document", "majority", 3, "read")
            for pk in marked
        )
        whole = make_targets(self.world.toy.corpus, [Place("document", pk) for pk in chosen])
        record_labels(
            NewLabel(pk, {"closed": False}, "document", "majority", 3, "read")
            for pk in whole.values()
        )
        if not DocumentSample.objects.exists():
            settle_documents(self.track, chosen)

    def marked(self) -> list[int]:
        return [
            pk for at, pk in enumerate(self.world.target) if self.says[at] and at % DOCUMENTS < READ
        ]


@pytest.fixture
def readers(toy: Toy) -> Readers:
    return Readers(toy, documents=DOCUMENTS)


def test_marks_can_be_checked_and_their_doubt_is_that_of_their_readers(readers: Readers) -> None:
    frame, marked = read_frame(readers.track, load_data(readers.track)), readers.marked()
    assert set(marked) < set(frame.target_id.tolist()) and frame.target_id.size == N
    inside = np.isin(frame.target_id, marked)
    assert (frame.doubt[inside] > 0).all() and (frame.a[inside].max(axis=1) > 0).all()
    n, _ = count_votes(frame.target_id)
    assert (n == 3).all()
    record_labels(
        [NewLabel(marked[0], {"shown": [PART], "holds": []}, "crowd", "majority", 5, "asked later")]
    )
    assert count_votes(np.array(marked[:1]))[0].tolist() == [5]
    record_labels(
        [
            NewLabel(
                marked[1], {"shown": [PART], "holds": []}, "expert", "adjudicated", 1, "disputed"
            )
        ]
    )
    assert count_votes(np.array(marked[1:2]))[0].tolist() == [0]


@pytest.mark.soak
def test_checking_everything_takes_the_readers_errors_out_too(readers: Readers) -> None:
    false_marks = [
        pk for pk in readers.marked() if not readers.world.true[readers.world.target.index(pk)]
    ]
    assert len(false_marks) > 5
    readers.draw(5 * N)
    assert readers.check() == N
    score_track(readers.track)
    true = readers.world.true
    for row, which in zip(readers.rows, (PRECISE, BROAD), strict=True):
        precision, recall = (
            readers.numbers("expert", quantity=name)[row.pk] for name in ("precision", "recall")
        )
        assert precision.value == pytest.approx(readers.world.truth(which))
        assert recall.value == pytest.approx(true[list(which)].sum() / true.sum())
        assert readers.numbers("centred")[row.pk].value > precision.value + 0.02


@pytest.mark.soak
@pytest.mark.statistical
def test_some_checks_take_the_readers_errors_out_on_average(toy: Toy) -> None:
    """A part of what was drawn is checked; some of the questions beside the marks are given up."""
    readers = Readers(toy, pi=0.7, documents=DOCUMENTS)
    readers.track.refresh_from_db()
    asked = [pk for pk in readers.world.target if pk not in set(readers.marked())]
    lost = np.random.default_rng(5).choice(asked, len(asked) // 8, replace=False)
    Label.objects.filter(target__in=lost.tolist()).delete()
    record_labels(NewLabel(pk, {}, "crowd", "nonresponse", 0, "q") for pk in lost.tolist())
    # Those that were answered stand for those that were given up; marks, which nobody was asked
    # about, for themselves.
    stands_for = np.where(
        np.isin(readers.world.target, asked), len(asked) / (len(asked) - lost.size), 1.0
    )
    stands_for[np.isin(readers.world.target, lost)] = 0.0
    truth = [
        np.average(readers.world.true[list(some)], weights=stands_for[list(some)])
        for some in (PRECISE, BROAD)
    ]
    of = {pk: readers.value(pk) for pk in readers.world.target}
    error, plain = [], []
    for seed in range(24):
        again(readers, seed)
        readers.draw(70)
        ExpertCheck.objects.bulk_update(
            [as_answered(row, of[row.target_id]) for row in ExpertCheck.objects.all()],
            ["value", "answered_at"],
        )
        ExpertRound.objects.update(status="ended")
        found = corrected(readers.track, load_data(readers.track))
        assert found is not None
        scores = {
            one.column: one.value
            for one in compute_corrections(found, ("relation",), ()).scores
            if (one.quantity, one.criterion) == ("precision", "relation")
        }
        error.append([scores[column] - truth[column] for column in range(2)])
        plain.append(found.arranged.precision("instance", "relation").value - np.array(truth))
    mean, spread = np.mean(error, axis=0), np.std(error, axis=0, ddof=1) / len(error) ** 0.5
    assert (np.mean(plain, axis=0) > 0.04).all()
    assert (np.abs(mean) < 4 * spread).all() and spread.max() < 0.02
