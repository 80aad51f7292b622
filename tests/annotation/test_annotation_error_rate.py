"""How often the crowd errs is told from random draws alone: disputes pick what is wrong and must
not be seen in it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from annotation_world import PARTS, make_submission, make_target, payload_of
from django.utils import timezone

from annotation.desk import adjudicate, split_votes
from annotation.models import Policy, Question
from annotation.quality.error_rate import errors
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.purpose import Purpose
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
YES = {"a": ["0-3"], "b": ["other"], "holds": [PARTS[0]]}
NO = {"a": ["0-3"], "b": ["other"], "none": ["1"]}


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Everything that is drawn, drawn from a seed."""
    made = random.Random(2024)
    monkeypatch.setattr(adjudicate, "DICE", made)
    monkeypatch.setattr(adjudicate.secrets, "randbits", made.getrandbits)
    return made


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def rosa(db: None) -> User:
    return User.objects.create_user("rosa", password="long enough 1", is_researcher=True)


@pytest.fixture
def forty(track: Track) -> Submission:
    """Forty judgments of people, who say that everything holds."""
    targets = [make_target(track, number, 0.5) for number in range(40)]
    for target in targets:
        Question.objects.create(
            track=track,
            target=target,
            interface="relation",
            status="settled",
            shown=PARTS,
            order=0.5,
            payer=Purpose("pilot", 1),
            payload=payload_of(target),
            price=Decimal("0.06"),
            reward=Decimal("0.05"),
        )
        Label.objects.create(
            target=target,
            value={"holds": PARTS[:1], "shown": PARTS},
            source="crowd",
            method="majority",
            n=3,
            origin=f"test:{target.pk}",
        )
    return make_submission(track, targets)


def ids(submission: Submission) -> list[int]:
    return list(
        Target.objects.filter(samples__batch__submission=submission)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def work(track: Track, expert: User, wrong: Sequence[int], most: int) -> None:
    """An expert who is always right answers what comes next, so many times."""
    for _ in range(most):
        row = adjudicate.next_of(track, expert)
        if row is None:
            return
        adjudicate.answer(row, NO if row.target_id in wrong else YES, expert)


def is_near(values: Sequence[float], truth: float) -> bool:
    """Within four standard errors."""
    return bool(abs(np.mean(values) - truth) < 4 * np.std(values, ddof=1) / len(values) ** 0.5)


@pytest.mark.slow
@pytest.mark.statistical
def test_disputes_that_pick_the_wrong_ones_do_not_move_the_rate(
    forty: Submission, root: User, rosa: User, dice: random.Random
) -> None:
    track, wrong = forty.track, ids(forty)[::5] + ids(forty)[1::5]  # 16 of 40, disputed every one
    told, naive = [], []
    for _ in range(120):
        ExpertCheck.objects.all().delete()
        adjudicate.queue_random(track, 20, root)
        for target in wrong:
            adjudicate.dispute(forty, target, rosa, "It does not say so anywhere.")
        work(track, root, wrong, 10)
        found = errors(track)
        assert found.share is not None
        told.append(found.share)
        seen = ExpertCheck.objects.filter(status="answered").values("target")
        drawn = ExpertCheck.objects.filter(kind="random", target__in=seen)
        naive.append(float(np.mean([row.target_id in wrong for row in drawn])))
    assert is_near(told, 16 / 40)
    assert not is_near(naive, 16 / 40), (
        "to count what was answered for a dispute is biased: the test can tell"
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_draws_of_different_chance_are_weighted(
    forty: Submission, root: User, dice: random.Random
) -> None:
    track, everything = forty.track, ids(forty)
    late, wrong = everything[24:], everything[:2] + everything[24:38]  # 2 of 24, then 14 of 16
    told, plain = [], []
    for _ in range(60):
        ExpertCheck.objects.all().delete()
        Question.objects.filter(target__in=late).update(status="published")
        adjudicate.queue_random(track, 12, root)
        Question.objects.filter(target__in=late).update(
            status="settled", status_since=timezone.now()
        )
        adjudicate.queue_random(track, 10, root)
        work(track, root, wrong, 18)
        found = errors(track)
        assert found.share is not None
        told.append(found.share)
        plain.append(found.against / found.of)
    assert is_near(told, 16 / 40)
    assert not is_near(plain, 16 / 40), "draws must not be thrown together: the test can tell"


@pytest.mark.slow
@pytest.mark.statistical
def test_draws_by_the_clock_tell_the_rate_however_often_they_are_repeated(
    forty: Submission, root: User, dice: random.Random
) -> None:
    """Experts answer some between two looks of the clock, and half of the judgments settle late."""
    track, everything = forty.track, ids(forty)
    late, wrong = everything[20:], everything[:2] + everything[20:34]  # 2 of 20, then 14 of 20
    Policy.objects.create(track=track, split_limit=0)
    told, plain = [], []
    for _ in range(60):
        ExpertCheck.objects.all().delete()
        Question.objects.filter(target__in=late).update(status="published")
        for turn in range(7):
            if turn == 3:
                Question.objects.filter(target__in=late).update(
                    status="settled", status_since=timezone.now()
                )
            Policy.objects.update(split_looked_at=None)
            split_votes.tick()
            work(track, root, wrong, dice.choice([1, 3, 4]))
        found = errors(track)
        assert found.share is not None
        told.append(found.share)
        plain.append(found.against / found.of)
    assert is_near(told, 16 / 40)
    assert not is_near(plain, 16 / 40), "the early ones had more draws: the test can tell"


@pytest.mark.soak
def test_the_interval_is_that_of_the_judgments_which_the_weights_are_worth(
    forty: Submission, root: User, dice: random.Random
) -> None:
    track, everything = forty.track, ids(forty)
    Question.objects.update(status_since=timezone.now() - timedelta(hours=1))
    adjudicate.queue_random(track, 40, root)
    work(track, root, everything[:10], 40)
    found = errors(track)
    assert (found.against, found.of, found.share) == (10, 40, pytest.approx(0.25))
    assert found.low80 is not None and found.high80 is not None
    assert found.low80 == pytest.approx(0.174, abs=0.002) and found.high80 == pytest.approx(
        0.346, abs=0.002
    )
