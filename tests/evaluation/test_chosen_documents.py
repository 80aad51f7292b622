"""A run that says more in the documents that were read whole than elsewhere: its team knows which
they are, and can mark there what readers mark.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from kbpo.evaluation.run import evaluate
from kbpo.inclusion import own_thresholds
from kbpo.sampling.documents.draw import order_documents, settle_documents, waiting_documents
from kbpo.sampling.leaks import decide, in_words, look_for_leaks
from kbpo.sampling.models import LeakTest, SampleBatch
from kbpo.sampling.verdicts import look_again
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy
from tests.evaluation.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.soak]
DOCUMENTS, READ = 60, 15


class Board:
    """A world of sixty documents, fifteen of them read whole, and a first run on the board."""

    def __init__(self, toy: Toy, *, closed: bool = False) -> None:
        self.toy, self.world = toy, World(toy, n_documents=DOCUMENTS)
        rng = np.random.default_rng(3)
        self.likely = {one.pk: rng.random() for one in self.world.instances}
        self.true = self.world.truth
        self.first = self.answered(self.world.system("one", self.stated_first), 1.0)
        order_documents(self.world.track, READ, seed=4, user=toy.users["Admin"])
        self.read = waiting_documents(self.world.track)
        text_of = {document.pk: document for document in self.world.documents}
        texts = [text_of[pk] for pk in self.read]
        self.world.read_in_full(texts, lambda _: True, closed=closed)
        settle_documents(self.world.track, self.read)

    def stated_first(self, one: Any) -> bool:
        return bool(self.likely[one.pk] < (0.5 if self.true[one.pk] else 0.3))

    def answered(self, row: Submission, share: float) -> Submission:
        """The run on the board, with an own sample that is judged."""
        self.world.answer(self.world.sample(row, share))
        SampleBatch.objects.filter(submission=row).update(settled_at=timezone.now())
        row.status, row.scored_at = "scored", timezone.now()
        row.save()
        return row

    def second(self, stated: Any, *, team: str = "Neural", user: str = "Tim") -> Submission:
        row = self.world.system("two", stated, team=team)
        row.user = self.toy.users[user]
        row.save()
        look_for_leaks(row)
        return self.answered(row, 0.5)

    def judged(self, row: Submission, share: float) -> None:
        """Nothing; what was drawn of the run by itself is kept, and it is looked at again."""
        batch = row.batches.get()
        n = row.predictions.values("instance__target").distinct().count()
        own_thresholds.keep(batch, np.full(n, share))
        look_again(row)

    def printed(self, row: Submission, quantity: str) -> Any:
        of = {"submission": row, "quantity": quantity, "method": "centred", "slice": ""}
        return evaluate(self.world.track).estimates.get(criterion="relation", **of)

    def recall(self, stated: Any) -> float:
        said = [stated(one) and self.true[one.pk] for one in self.world.instances]
        return sum(said) / sum(self.true.values())


def test_it_is_found_moves_nobodys_recall_and_is_printed_near_its_own(toy: Toy) -> None:
    board = Board(toy)
    before = board.printed(board.first, "recall").value

    def stated(one: Any) -> bool:
        return board.stated_first(one) or (one.document_id in board.read and board.true[one.pk])

    row = board.second(stated)
    found = row.leak_tests.get()
    assert found.seen and found.channel == LeakTest.Channel.DOCUMENTS
    assert f"In the {READ} documents that were read it says more than in the others" in in_words(
        found
    )
    assert board.printed(board.first, "recall").value == pytest.approx(before, abs=0.01)
    own = board.printed(row, "recall")
    assert own.low95 <= board.recall(stated) <= own.high95
    Submission.objects.filter(pk=row.pk).update(status="withdrawn", withdrawn_at=timezone.now())
    assert board.printed(board.first, "recall").value == pytest.approx(before, abs=0.01)
    decide(found, toy.users["Admin"], "They showed us their log.", lift=True)
    assert board.printed(board.first, "recall").value > before + 0.1, "believed, it moves all"


def test_where_it_is_the_only_run_that_has_entered_recall_stays_what_it_was(toy: Toy) -> None:
    board = Board(toy)
    before = board.printed(board.first, "recall").value
    SampleBatch.objects.filter(submission=board.first).update(settled_at=None)
    board.second(
        lambda one: (
            board.stated_first(one) or (one.document_id in board.read and board.true[one.pk])
        )
    )
    after = board.printed(board.first, "recall")
    assert after.value == pytest.approx(before, abs=0.02)
    assert after.high80 - after.low80 < 0.1, "it is not a share of nothing"


def test_of_a_closed_track_everybody_may_learn(toy: Toy) -> None:
    board = Board(toy)
    closed = Track.objects.get(pk=board.world.track.pk)
    Track.objects.filter(pk=closed.pk).update(status="closed", closed_at=timezone.now())
    closed.pk, closed.slug, closed.name = None, "new", "New"
    closed.save()
    row = board.world.system(
        "two", lambda one: one.document_id in board.read and board.true[one.pk], team="Neural"
    )
    row.user, row.track, row.confirmed_at = toy.users["Tim"], closed, timezone.now()
    row.save()
    assert not [test for test in look_for_leaks(row) if test.seen]


def test_who_says_as_much_in_other_documents_is_believed(toy: Toy) -> None:
    board = Board(toy)
    rng = np.random.default_rng(9)
    others = rng.choice([one.pk for one in board.world.documents], READ, replace=False)
    row = board.second(
        lambda one: board.stated_first(one) or (one.document_id in others and board.true[one.pk])
    )
    assert not row.leak_tests.filter(seen=True).exists()


def test_where_documents_are_closed_its_precision_is_printed_right(toy: Toy) -> None:
    """Right claims where documents were read, wrong ones elsewhere."""
    board = Board(toy, closed=True)

    def stated(one: Any) -> bool:
        right = one.document_id in board.read
        return bool(board.likely[one.pk] > 0.5 and board.true[one.pk] == right)

    row = board.second(stated)
    assert row.leak_tests.get().channel == LeakTest.Channel.DOCUMENTS
    said = [one for one in board.world.instances if stated(one)]
    precision = sum(board.true[one.pk] for one in said) / len(said)
    own = board.printed(row, "precision")
    assert own.low95 <= precision <= own.high95


@pytest.mark.parametrize("finds", [True, False])
def test_of_a_teams_second_run_only_what_is_new_in_read_documents_tells(
    toy: Toy, *, finds: bool
) -> None:
    """It may leave out what it saw to be wrong there; what readers marked it cannot have learnt."""
    board = Board(toy)

    def stated(one: Any) -> bool:
        if one.document_id not in board.read:
            return board.stated_first(one)
        return bool(board.true[one.pk] and (finds or board.stated_first(one)))

    row = board.second(stated, team="Patterns", user="Rosa")
    assert row.leak_tests.filter(seen=True).exists() == finds


def as_much(board: Board, one: Any, *, right: bool) -> bool:
    """Whether a claim is one of the first five of its document that are right, or are wrong."""
    of = [two.pk for two in board.world.instances if two.document_id == one.document_id]
    return one.pk in [pk for pk in of if board.true[pk] == right][:5]


@pytest.mark.parametrize("closed", [False, True])
def test_who_says_as_much_elsewhere_and_wrong_is_found_by_what_is_judged(
    toy: Toy, *, closed: bool
) -> None:
    """By how much it says it is not; it moves nobody's recall, and is printed near its own."""
    board = Board(toy, closed=closed)
    before = board.printed(board.first, "recall").value

    def stated(one: Any) -> bool:
        return as_much(board, one, right=one.document_id in board.read)

    row = board.second(stated)
    assert not row.leak_tests.filter(seen=True).exists()
    said = [one for one in board.world.instances if stated(one)]
    precision = sum(board.true[one.pk] for one in said) / len(said)
    believed = board.printed(row, "precision").value, board.printed(board.first, "recall").value
    assert believed[1] > before + 0.03
    assert not closed or believed[0] > precision + 0.05
    board.judged(row, 0.5)
    found = row.leak_tests.get()
    assert found.seen and found.channel == LeakTest.Channel.READ
    assert found.predicted > found.expected and "in documents that were read" in in_words(found)
    own = board.printed(row, "precision")
    assert own.low95 <= precision <= own.high95
    assert board.printed(board.first, "recall").value == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("read_better", [False, True])
def test_who_is_as_right_elsewhere_is_believed(toy: Toy, *, read_better: bool) -> None:
    """Also where one answer in four to what is right in other documents is no."""
    board = Board(toy)
    if read_better:
        rng = np.random.default_rng(5)
        missed = {pk for pk in board.true if rng.random() < 1 / 4}
        inside = {one.pk for one in board.world.instances if one.document_id in board.read}
        board.world.truth = {
            pk: true and (pk in inside or pk not in missed) for pk, true in board.true.items()
        }
    row = board.second(lambda one: board.likely[one.pk] < (0.9 if board.true[one.pk] else 0.1))
    board.judged(row, 0.5)
    assert not row.leak_tests.filter(seen=True).exists()


def test_a_team_that_could_see_judgments_may_be_right_where_it_saw_them(toy: Toy) -> None:
    board = Board(toy)
    row = board.second(
        lambda one: as_much(board, one, right=one.document_id in board.read),
        team="Patterns",
        user="Rosa",
    )
    board.judged(row, 0.5)
    assert not row.leak_tests.filter(channel=LeakTest.Channel.READ).exists()
