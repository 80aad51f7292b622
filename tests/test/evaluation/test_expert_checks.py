"""What an expert says of a random part of the crowd's judgments corrects every score, and nothing
else moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from django.db import connection

from annotation.desk.experts import store_expert_answer
from kbpo.evaluation.correction import counted_expert_checks, read_frame
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import scoring_state
from kbpo.evaluation.run import score_track
from kbpo.experts.draw import (
    Answered,
    CannotDraw,
    draw_round,
    end_expert_round,
    order_expert_round,
    read_checks,
    released_share,
)
from kbpo.experts.queue import Outcome, hold_check, take_next_check
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.pool.probabilities import random_numbers
from kbpo.sampling.models import (
    ExpertChance,
    ExpertCheck,
    ExpertRound,
    Sample,
    SampleBatch,
    SamplingDistribution,
    Threshold,
)
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.corrected import METHOD, compute_corrections
from scoring.data import Data
from scoring.double_sampling import Corrected, probability_of_check
from scoring.report import Figure
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.reports import figures_of
from tests.test.evaluation.replay import PART, Replay

pytestmark = pytest.mark.django_db
N = 120
PRECISE, BROAD = range(0, N, 2), range(N)


class Crowd:
    """Two systems whose relations were all put to a crowd that is right 85 times in 100: it takes
    what is plausible but false for true, three times in ten, and what is true for false hardly
    ever.
    """

    def __init__(
        self,
        toy: Toy,
        *,
        n: int = N,
        pi: float = 1.0,
        seed: int = 3,
        predicts: tuple[range, range] = (PRECISE, BROAD),
        documents: int = 8,
    ) -> None:
        self.world = Replay.of(toy, n, 0.5, seed=seed, documents=documents)
        self.track, self.pi, self.admin = toy.track, pi, toy.users["Admin"]
        random = np.random.default_rng(1_000 + seed)
        self.predicted = sorted(set(predicts[0]) | set(predicts[1]))
        self.rows = [self._system("Patterns", predicts[0]), self._system("Neural", predicts[1])]
        self.says = np.where(self.world.true, random.random(n) < 0.98, random.random(n) < 0.28)
        self.judge()

    def _system(self, team: str, which: Iterable[int]) -> Submission:
        row = self.world.upload(team, which)
        row.move("judging", confirmed_at=row.received_at, sampled_at=row.received_at)
        batch = SampleBatch.objects.create(
            submission=row,
            distribution=SamplingDistribution.objects.get(submission=row),
            design="poisson",
            seed=0,
            size=1,
            settled_at=row.received_at,
        )
        Threshold.objects.bulk_create(
            Threshold(batch=batch, target_id=self.world.target[at], pi=self.pi) for at in which
        )
        return row

    def judge(self) -> None:
        """The crowd answers everything; what is not drawn has a label all the same, which may not
        count.
        """
        Label.objects.filter(target__in=self.world.target).delete()
        record_labels(
            NewLabel(
                pk,
                {"shown": [PART], "holds": [PART] if says else [], "votes": {PART: 3 * bool(says)}},
                "crowd",
                "majority",
                3,
                "q",
                disagreement=0.33 * bool(at % 3 == 0),
            )
            for at, (pk, says) in enumerate(zip(self.world.target, self.says, strict=True))
            if at in self.predicted
        )

    def draw(self, budget: int) -> ExpertRound:
        row = order_expert_round(self.track, budget, self.admin, "To see.")
        draw_round(row, read_frame(self.track, load_data(self.track)))
        return row

    def check(self, most: int | None = None) -> int:
        """How many open checks were answered, rightly, in their order."""
        n = 0
        while (most is None or n < most) and (
            row := take_next_check(self.track, self.admin)
        ) is not None:
            assert (
                store_expert_answer(row, self.admin, {}, self.value(row.target_id))
                is Outcome.STORED
            )
            n += 1
        return n

    def value(self, target: int) -> dict[int, Any]:
        true = self.world.true[self.world.target.index(target)]
        pair = Sample._meta.get_field("target").related_model.objects.get(pk=target)
        said: dict[int, Any] = {target: {"shown": [PART], "holds": [PART] if true else []}}
        mentions = type(pair).objects.filter(document=pair.document, kind="mention")
        for begin, end in ((pair.a_begin, pair.a_end), (pair.b_begin, pair.b_end)):
            said[mentions.get(a_begin=begin, a_end=end).pk] = {"canonical": [begin, end]}
        return said

    def numbers(
        self, method: str, criterion: str = "relation", quantity: str = "precision"
    ) -> dict[int, Figure]:
        latest = self.track.evaluations.order_by("-number").first()
        of = {"quantity": quantity, "criterion": criterion, "method": method, "slice": ""}
        return {key.submission: one for key, one in figures_of(latest, **of).items()}


@pytest.fixture
def crowd(toy: Toy, keep: Callable[..., Crowd]) -> Crowd:
    return keep("a crowd that is right 85 times in 100", lambda: Crowd(toy))


@pytest.mark.soak
def test_checking_everything_gives_the_score_that_the_expert_would_have_given(crowd: Crowd) -> None:
    crowd.draw(5 * N)
    assert crowd.check() == N
    score_track(crowd.track)
    for row, which in zip(crowd.rows, (PRECISE, BROAD), strict=True):
        told = crowd.numbers("expert")[row.pk]
        assert told.value == pytest.approx(crowd.world.truth(which))
        assert told.value != pytest.approx(crowd.numbers("centred")[row.pk].value, abs=0.02)


@pytest.mark.soak
def test_the_matrix_counts_what_was_checked_and_estimates_what_was_not(crowd: Crowd) -> None:
    crowd.draw(90)
    crowd.check()
    told = score_track(crowd.track).report.expert["relation"]
    checked = {
        crowd.world.target.index(pk)
        for pk in ExpertCheck.objects.values_list("target_id", flat=True)
    }
    both = [(bool(crowd.says[at]), bool(crowd.world.true[at])) for at in checked]
    assert told.counts == [
        [both.count((True, f)) for f in (True, False)],
        [both.count((False, f)) for f in (True, False)],
    ]
    assert told.checked == len(checked)
    agree = float((crowd.says == crowd.world.true).mean())
    assert told.agree.low80 - 0.1 < agree < told.agree.high80 + 0.1
    assert told.agree.low80 < told.agree.value < told.agree.high80


def test_a_draw_is_recorded_and_can_be_made_again(crowd: Crowd) -> None:
    row = crowd.draw(50)
    chances = dict(ExpertChance.objects.filter(round=row).values_list("target_id", "probability"))
    assert len(chances) == N
    assert sum(chances.values()) == pytest.approx(50)
    v = dict(
        zip(chances, random_numbers(crowd.track, "expert", np.array(list(chances))), strict=True)
    )
    drawn = set(row.checks.values_list("target_id", flat=True))
    assert drawn == {target for target, e in chances.items() if v[target] < e}
    assert 30 < len(drawn) < 70


def test_what_weighs_more_and_is_doubted_more_is_checked_more(crowd: Crowd) -> None:
    row = crowd.draw(50)
    chances = dict(ExpertChance.objects.filter(round=row).values_list("target_id", "probability"))
    shared, only = (
        crowd.world.target[at] for at in (0, 3)
    )  # both are doubted; Patterns predicts the first as well
    sure, unsure = (crowd.world.target[at] for at in (1, 3))
    assert chances[shared] > chances[only]
    assert chances[unsure] > chances[sure]


def chance(found: Answered) -> np.ndarray:
    """Of targets that count for certain."""
    return probability_of_check(found.pi, found.e, np.ones(found.checked.size))


def test_of_an_open_round_counts_what_is_answered_in_order(crowd: Crowd) -> None:
    row = crowd.draw(80)
    crowd.check(most=30)
    ids = np.array(sorted(crowd.world.target))
    found = read_checks(crowd.track, ids)
    assert found is not None
    assert found.checked.sum() == 30
    assert 0 < released_share(row) < 1
    full = dict(ExpertChance.objects.filter(round=row).values_list("target_id", "probability"))
    np.testing.assert_allclose(
        chance(found), [released_share(row) * full[target] for target in ids.tolist()]
    )
    ended = end_expert_round(row)
    assert ended.status == "ended" and ended.released == pytest.approx(released_share(ended))
    assert not row.checks.filter(answered_at__isnull=True).exists()
    again = read_checks(crowd.track, ids)
    assert again is not None and (again.checked == found.checked).all()
    np.testing.assert_allclose(chance(again), chance(found))


def test_an_open_round_bars_the_next_and_so_does_having_checked_everything(toy: Toy) -> None:
    crowd = Crowd(toy, n=20, predicts=(range(10), range(20)))
    crowd.draw(5)
    with pytest.raises(CannotDraw, match="still open"):
        crowd.draw(20)
    crowd.check()
    crowd.draw(90)
    crowd.check()
    with pytest.raises(CannotDraw, match="not checked yet"):
        crowd.draw(20)
    for budget in (0, -1, 10**6):
        with pytest.raises(CannotDraw, match="from 1 to"):
            crowd.draw(budget)


def test_a_judgment_that_came_later_is_corrected_by_those_that_could_be_checked() -> None:
    pi, e = (
        np.array([[0.2, 0.5, 0.0], [0.4, 0.5, 0.3]]),
        np.array([[0.5, 0.1, 0.0], [0.6, 0.3, 0.2]]),
    )
    now = np.array([0.8, 0.5, 0.6])
    np.testing.assert_allclose(
        probability_of_check(pi, e, now), [0.4 * 0.6 / 0.8, 0.3, 0.3 * 0.2 / 0.6]
    )
    falls = probability_of_check(
        np.array([[0.2], [0.5]]), np.array([[0.5], [0.1]]), np.array([1.0])
    )
    np.testing.assert_allclose(
        falls, [0.2 * 0.5 + 0.3 * 0.1]
    )  # an open round, of which little is answered yet
    assert probability_of_check(
        np.array([[0.9]]), np.array([[0.5]]), np.array([0.3])
    ) == pytest.approx(0.5)


def test_few_checks_correct_nothing(crowd: Crowd) -> None:
    crowd.draw(60)
    crowd.check(most=8)
    score_track(crowd.track)
    assert crowd.numbers("expert") == {}


def test_an_answer_makes_the_scores_stale(crowd: Crowd) -> None:
    crowd.draw(20)
    before = scoring_state(crowd.track)
    crowd.check(most=1)
    assert scoring_state(crowd.track) != before


def test_a_check_is_one_experts_at_a_time_and_answered_once(
    crowd: Crowd, toy: Toy, make_user: Any
) -> None:
    crowd.draw(30)
    other = make_user("second", is_staff=True)
    mine, theirs = take_next_check(crowd.track, crowd.admin), take_next_check(crowd.track, other)
    assert mine is not None and theirs is not None and mine.pk != theirs.pk
    assert take_next_check(crowd.track, crowd.admin) == mine  # resumed
    assert hold_check(mine, other) is Outcome.LOST
    assert store_expert_answer(mine, other, {}, {}) is Outcome.LOST
    assert store_expert_answer(mine, crowd.admin, {}, crowd.value(mine.target_id)) is Outcome.STORED
    assert store_expert_answer(mine, crowd.admin, {}, {}) is Outcome.ALREADY
    ExpertCheck.objects.filter(pk=theirs.pk).update(held_until="2020-01-01T00:00Z")
    assert take_next_check(crowd.track, crowd.admin) == theirs  # abandoned


def corrected(track: Track, data: Data) -> Corrected | None:
    """A track's data with what experts said of them."""
    return Corrected.from_data(data, counted_expert_checks(track, data))


def again(crowd: Crowd, seed: int) -> None:
    """Other random numbers, of targets and of checks; other answers of the crowd."""
    random = np.random.default_rng(seed)
    ExpertRound.objects.all().delete()
    crowd.track.secret = f"secret {seed}"
    crowd.track.save(update_fields=["secret"])
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE instances_target t SET u = n.u FROM unnest(%s::bigint[], %s::float8[]) AS n"
            " (id, u) WHERE t.id = n.id",
            [crowd.world.target, random.random(len(crowd.world.target)).tolist()],
        )


@pytest.mark.soak
@pytest.mark.statistical
def test_the_crowd_is_biased_and_the_corrected_number_is_not(toy: Toy) -> None:
    crowd = Crowd(toy, pi=0.7)
    crowd.track.refresh_from_db()
    repeats, plain, told, inside = 36, [], [], []
    truth = [crowd.world.truth(which) for which in (PRECISE, BROAD)]
    of = {pk: crowd.value(pk) for pk in crowd.world.target}
    for seed in range(repeats):
        again(crowd, seed)
        crowd.draw(70)
        ExpertCheck.objects.bulk_update(
            [as_answered(row, of[row.target_id]) for row in ExpertCheck.objects.all()],
            ["value", "answered_at"],
        )
        ExpertRound.objects.update(status="ended")
        data = load_data(crowd.track)
        found = default_estimates(data, ("relation",), ())
        plain.append(found["precision", "relation", "instance"][0].value)
        after = compute_corrections(corrected(crowd.track, data), ("relation",), ()).scores
        after = [one for one in after if (one.criterion, one.method) == ("relation", METHOD)]
        after.sort(key=lambda one: one.column)
        told.append([one.value for one in after])
        inside.append(
            [one.low80 <= value <= one.high80 for one, value in zip(after, truth, strict=True)]
        )
    error = np.array(told) - truth
    bias, spread = error.mean(axis=0), error.std(axis=0, ddof=1) / repeats**0.5
    assert (np.mean(plain, axis=0) - truth > 0.08).all()
    assert (np.abs(bias) < 4 * spread).all()
    assert (np.abs(bias) < 0.04).all()
    assert 0.80 - 4 * (0.16 / repeats) ** 0.5 < np.mean(inside, axis=0).min()
    assert np.mean(inside) < 0.97


def as_answered(row: ExpertCheck, value: dict[int, Any]) -> ExpertCheck:
    row.value, row.answered_at = {str(one): said for one, said in value.items()}, row.round.drawn_at
    return row
