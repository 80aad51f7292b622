"""A run that is withdrawn takes nothing with it: what was judged for it keeps its probability for
the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import finished_submissions
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.models import Sample, SampleBatch, Threshold
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw_submission
from tests.conftest import Toy
from tests.reports import figures_of
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
NUMBERS = ("value", "variance", "low80", "high80", "low95", "high95", "n_labels", "n_missing")
RUNS = (("Patterns", range(70)), ("Neural", range(30, 110)), ("Patterns", range(50, 120)))


def judged(toy: Toy, design: str = "poisson") -> tuple[Replay, list[Submission]]:
    """A world with three runs on the board, played once a process."""

    def play() -> tuple[Replay, list[Submission]]:
        world = Replay.of(toy, 120, 0.6, design=design)
        return world, [world.judge(world.upload(team, some)) for team, some in RUNS]

    return Replay.once(toy, f"three runs, judged by {design}", play)


def told(row: Submission) -> dict[tuple[str, ...], list[Any]]:
    """Everything that the latest evaluation says of a run."""
    found = figures_of(row.track.evaluations.latest("number"), submission=row.pk)
    return {key[1:]: [getattr(one, n) for n in NUMBERS] for key, one in found.items()}


def as_published(told: dict[tuple[str, ...], list[Any]]) -> dict[tuple[str, ...], list[Any]]:
    """What no model guesses of what was told of a run."""
    return {key: numbers for key, numbers in told.items() if not key[3].startswith("centred")}


def same(a: dict[tuple[str, ...], list[Any]], b: dict[tuple[str, ...], list[Any]]) -> bool:
    """Whether two evaluations say the same, to ten digits."""
    return set(a) == set(b) and all(
        (one is None and other is None) or other == pytest.approx(one, abs=1e-10, rel=1e-10)
        for key in a
        for one, other in zip(a[key], b[key], strict=True)
    )


def taken_back(toy: Toy, row: Submission) -> None:
    withdraw_submission(row, toy.users["Rosa" if row.team == toy.teams["Patterns"] else "Tim"])
    row.refresh_from_db()
    assert row.status == "withdrawn"


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
@pytest.mark.parametrize("which", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_the_others_scores_stay_to_ten_digits(toy: Toy, design: str, which: int) -> None:
    _, rows = judged(toy, design)
    gone, others = rows[which], [row for at, row in enumerate(rows) if at != which]
    score_track(toy.track)
    before, data = {row.pk: told(row) for row in rows}, load_data(toy.track)
    pi = data.inclusion.threshold
    raised = Threshold.objects.filter(batch__submission=gone).count()
    methods = {"centred", "centred_like"} | ({"simple", "joint"} if design == "iid" else set())
    assert {key[3] for key in before[gone.pk]} == methods
    taken_back(toy, gone)
    score_track(toy.track)
    assert told(gone) == {}
    for row in others:
        assert before[row.pk] and same(before[row.pk], told(row))
    after = load_data(toy.track)
    assert np.array_equal(after.inclusion.threshold, pi)
    guess = data.g["relation"]
    assert np.array_equal(after.g["relation"], guess), "the model learns from what it predicted"
    assert np.unique(guess).size > 1
    assert Threshold.objects.filter(batch__submission=gone).count() == raised


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_a_run_withdrawn_while_it_is_judged_leaves_what_was_answered(toy: Toy, design: str) -> None:
    """Its open questions are nobody's any more; those of the others that were settled keep their
    numbers. Of draws with replacement that is so of what is published; what the model guesses
    learns from none of those that were left open.
    """
    world = Replay.of(toy, 120, 0.6, design=design)
    first = world.judge(world.upload("Patterns", range(70)))
    gone = world.upload("Neural", range(30, 110))
    confirm_plan(gone, toy.users["Admin"])
    draw.tick()
    assert world.answer() > 0
    gone.refresh_from_db()
    assert gone.status == "judging"
    score_track(toy.track)
    before = told(first)
    taken_back(toy, gone)
    score_track(toy.track)
    assert told(gone) == {}
    kept = dict if design == "poisson" else as_published
    assert kept(before) and same(kept(before), kept(told(first)))


def test_a_run_that_was_given_up_and_is_tried_again_counts_whole(toy: Toy) -> None:
    """While it was given up, the track was scored, and its open stage cut where answers ended."""
    world = Replay.of(toy, 120, 0.6, design="poisson")
    row = world.upload("Neural", range(30, 110))
    confirm_plan(row, toy.users["Admin"])
    draw.tick()
    batches = SampleBatch.objects.filter(submission=row)
    Submission.objects.filter(pk=row.pk).update(status="failed")
    score_track(toy.track)
    cut = batches.get().answered_below
    assert cut is not None and 0 < cut < 1
    Submission.objects.filter(pk=row.pk).update(status="judging")
    score_track(toy.track)
    assert batches.get().answered_below is None


@pytest.mark.parametrize("status", ["withdrawn", "failed"])
def test_what_is_answered_after_a_run_went_says_nothing_of_it(toy: Toy, status: str) -> None:
    """Not even of what nobody scored yet."""
    world = Replay.of(toy, 60, 0.6, design="poisson")
    row = world.upload("Neural", range(50))
    confirm_plan(row, toy.users["Admin"])
    draw.tick()
    row.refresh_from_db()
    batches = SampleBatch.objects.filter(submission=row)
    wanted = list(_samples(row).order_by("target__u").values_list("target", flat=True))
    _answer(world, wanted[: len(wanted) // 2])
    row.move(status)
    cut = batches.get().answered_below
    assert cut is not None and 0 < cut < 1
    _answer(world, wanted)
    score_track(toy.track)
    assert batches.get().answered_below == cut
    if status == "failed":
        row.move("judging")
        assert batches.get().answered_below is None, "it is tried again, and counts whole"


@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_what_a_withdrawn_run_left_open_holds_up_nothing_of_a_later_one(
    toy: Toy, design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is answered of the later run counts as it comes, and all of it once its stage ends, also
    where the withdrawn one had raised thresholds as high.
    """
    world = Replay.of(toy, 60, 0.6, design=design)
    gone = world.upload("Neural", range(40))
    confirm_plan(gone, toy.users["Admin"])
    draw.tick()
    left = [at for at in range(10) if _samples(gone).filter(target=world.target[at]).exists()]
    assert left, "of some targets nobody but the withdrawn run ever asks"
    taken_back(toy, gone)
    later = world.upload("Patterns", range(10, 60))
    confirm_plan(later, toy.users["Admin"])
    draw.tick()
    wanted = _samples(later).order_by("target__u").values_list("target", flat=True)
    for count in (len(wanted) // 2, len(wanted)):
        _answer(world, wanted[:count])
        data = load_data(toy.track)
        counted = data.pool.target_id[data.inclusion.drawn]
        assert set(wanted[:count]) & set(counted), "as it comes"
        assert not set(counted) & {world.target[at] for at in left}
    score_track(toy.track, finished_submissions(toy.track))
    data = load_data(toy.track)
    assert set(wanted) <= set(data.pool.target_id[data.inclusion.drawn].tolist())
    assert data.inclusion.released == 1


def _samples(row: Submission) -> Any:
    return Sample.objects.filter(batch__submission=row)


def _answer(world: Replay, targets: Any) -> None:
    """Nothing; these targets alone are answered."""
    some = set(targets) - set(Label.objects.values_list("target", flat=True))
    world.answer_of(some)
