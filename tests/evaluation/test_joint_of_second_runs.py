"""By draws with replacement, joint is that of runs that follow from nobody's draws: what a team
uploads that had seen judgments moves nobody else's, and is told by its own draws.
"""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kbpo.accounts.models import Team
from kbpo.evaluation.leaderboard import BOOTSTRAP
from kbpo.evaluation.models import Estimate
from kbpo.evaluation.run import OF_BOTH, SAW, evaluate
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.documents.draw import order_documents, settle_documents
from kbpo.sampling.models import LeakTest
from kbpo.submissions.models import Submission
from scoring.data import Draws
from scoring.published import bootstrapped, precision
from tests.conftest import Toy
from tests.evaluation.replay import PART, Replay

TRUE = np.array([True, False, True, False, False])
FIRST, OTHER = np.array([0, 1, 2, 3]), np.array([2, 3, 4])
DELETED = ("right", "wrong", "right and half of the rest")

N = 400
OF_FIRST, OF_NEURAL, NEW = range(300), range(100, 360), range(360, 400)
COMMON = "first and other draws"


def made_from(drawn: set[int], deleted: str) -> list[int]:
    """What a team uploads that saw what is true of what was drawn; it says 4 too, which its first
    run did not say.
    """
    right, rest = {one for one in drawn if TRUE[one]}, set(FIRST.tolist()) - drawn
    if deleted == "right":
        return sorted((set(FIRST.tolist()) - right) | {4})
    if deleted == "wrong":
        return sorted(right | rest | {4})
    return sorted(right | set(sorted(rest)[::2]) | {4})


def board(stated: list[np.ndarray[Any, Any]], drawn: list[tuple[int, ...]]) -> tuple[Any, Draws]:
    """The draws of some runs, each of which says some of five claims; of a third the team had
    seen judgments.
    """
    table = np.zeros((TRUE.size, len(stated)))
    for column, which in enumerate(stated):
        table[which, column] = 1 / len(which)
    row = np.array([one for of_run in drawn for one in of_run])
    owner = np.repeat(np.arange(len(stated)), [len(of_run) for of_run in drawn])
    data = SimpleNamespace(
        systems=list(range(len(stated))),
        saw=list(range(2, len(stated))),
        judged=np.arange(TRUE.size),
        f={"relation": np.repeat(TRUE[:, None], len(stated), axis=1).astype(float)},
    )
    return data, Draws("instance", row, owner, table[row], table.T @ table)


@pytest.mark.parametrize("deleted", DELETED)
def test_over_all_draws_joint_errs_by_nothing_whatever_a_team_makes_of_what_it_saw(
    deleted: str,
) -> None:
    """Every board that could be: two draws of the first run, one of another, two of a third that
    was made from the verdicts on both.
    """
    error, chances = np.zeros(3), 0.0
    for first, other in product(product(FIRST, repeat=2), product(OTHER, repeat=1)):
        seen = {int(one) for one in (*first, *other)} & set(FIRST.tolist())
        third = np.array(made_from(seen, deleted))
        truth = np.array([TRUE[which].mean() for which in (FIRST, OTHER, third)])
        for own in product(third, repeat=2):
            data, draws = board([FIRST, OTHER, third], [first, other, own])
            chance = 1 / (FIRST.size**2 * OTHER.size * third.size**2)
            error += chance * (precision(data, draws, "relation", "joint").value - truth)
            chances += chance
    assert chances == pytest.approx(1)
    np.testing.assert_allclose(error, 0, atol=1e-12)


def test_the_bootstrap_takes_no_draws_of_who_saw_for_others_nor_of_others_for_it() -> None:
    random = np.random.default_rng(3)
    third = np.array(made_from({0, 1}, "right"))
    drawn = [tuple(random.choice(which, 60)) for which in (FIRST, OTHER, third)]
    wanted = [("relation", "joint"), ("relation", "simple")]
    ends = bootstrapped(*board([FIRST, OTHER, third], drawn), wanted)
    without = bootstrapped(*board([FIRST, OTHER], drawn[:2]), wanted)
    for end, of_two in zip(ends[wanted[0]], without[wanted[0]], strict=True):
        np.testing.assert_allclose(end[:2], of_two, atol=1e-12)
    for joint, simple in zip(ends[wanted[0]], ends[wanted[1]], strict=True):
        assert joint[2] == pytest.approx(simple[2])


def played(toy: Toy) -> Replay:
    """A world by draws with two honest runs on the board, and 40 of 100 documents read."""

    def play() -> tuple[Replay, None]:
        world = Replay.of(toy, N, 0.4, design="iid", documents=100)
        toy.teams["Third"] = Team.objects.create(name="Third", slug="third")
        toy.track.scope = "document"
        toy.track.save()
        world.judge(world.upload("Patterns", OF_FIRST))
        world.judge(world.upload("Neural", OF_NEURAL))
        batch = order_documents(toy.track, 40, seed=2, user=toy.users["Admin"])
        chosen = list(batch.samples.values_list("document_id", flat=True))
        record(
            NewLabel(
                world.target[at],
                {"shown": [PART], "holds": [PART] if world.true[at] else []},
                "document",
                "majority",
                3,
                "read",
            )
            for at in range(N)
            if world.documents[at % 100].pk in chosen
        )
        settle_documents(toy.track, chosen)
        evaluate(toy.track, [])
        return world, None

    world, _ = Replay.once(toy, COMMON, play)
    toy.teams["Third"] = Team.objects.get(slug="third")
    return world


def joint_of(world: Replay, row: Submission, method: str = "joint") -> dict[str, list[Any]]:
    """Quantity -> what is printed of a run as published, with its ends, of precision also the
    labels that it rests on; and the bootstrap of that.
    """
    newest = world.toy.track.evaluations.order_by("-number").first()
    rows = Estimate.objects.filter(
        evaluation=newest, submission=row, criterion="relation", slice="", method=method
    )
    found: dict[str, list[Any]] = {
        one.quantity: [one.value, one.low80, one.high80, one.low95, one.high95] for one in rows
    }
    found["precision"].append(rows.get(quantity="precision").n_labels)
    assert newest is not None
    ends = newest.settings[BOOTSTRAP]["relation|instance"][method].get(str(row.pk))
    return found | {BOOTSTRAP: ends}


def confirmed_by(world: Replay, team: str, which: list[int]) -> Submission:
    """A run of a team on the board; those of Third are nobody's who has another run."""
    row = world.upload(team, which)
    if team == "Third":
        Submission.objects.filter(pk=row.pk).update(user=world.toy.users["Ada"])
        row.refresh_from_db()
    return world.judge(row)


@pytest.mark.django_db
@pytest.mark.parametrize("deleted", ["right", "right and a third of the rest"])
@pytest.mark.parametrize("team", ["Patterns", "Third"])
def test_what_was_made_from_judgments_moves_nobodys_joint_numbers_and_has_right_ones(
    toy: Toy, team: str, deleted: str
) -> None:
    """A team's own second run, and one of an account that was found to be made from answers."""
    world = played(toy)
    first, neural = Submission.objects.order_by("pk")
    before = {row.pk: joint_of(world, row) for row in (first, neural)}
    asked = Label.objects.filter(target__in=world.target, source="crowd")
    judged = {at for at in OF_FIRST if world.target[at] in asked.values_list("target", flat=True)}
    right, rest = {at for at in judged if world.true[at]}, sorted(set(OF_FIRST) - judged)
    third = set(np.random.default_rng(2).choice(rest, len(rest) // 3, replace=False).tolist())
    kept = set(OF_FIRST) - right if deleted == "right" else right | third
    which = sorted(kept | set(NEW))
    row = confirmed_by(world, team, which)
    assert LeakTest.objects.filter(submission=row, seen=True).exists() == (team == "Third")
    for one, stated in ((first, OF_FIRST), (neural, OF_NEURAL)):
        now = joint_of(world, one)
        for name, numbers in before[one.pk].items():
            assert now[name] == pytest.approx(numbers, abs=1e-9), name
        of_true = world.true[list(stated)].sum() / world.true.sum()
        truth = {"precision": world.truth(stated), "recall": of_true}
        for name, right_value in truth.items():
            value, low, high = now[name][:3]
            assert abs(value - right_value) < 4 * (high - low) / 2.56
    mine, alone = joint_of(world, row), joint_of(world, row, "simple")
    value, low, high = mine["precision"][:3]
    assert abs(value - world.truth(which)) < 4 * (high - low) / 2.56 < 0.3
    assert mine["precision"] == pytest.approx(alone["precision"])
    assert mine[BOOTSTRAP] == pytest.approx(alone[BOOTSTRAP])
    assert mine["recall"] == mine["f1"] == [None] * 5
    notes = Estimate.objects.filter(submission=row, method="joint", criterion="relation", slice="")
    said = dict(notes.exclude(note="").values_list("quantity", "note"))
    assert said == {"recall": SAW, "f1": OF_BOTH}


@pytest.mark.django_db
def test_draws_of_who_saw_nothing_still_count_for_others(toy: Toy) -> None:
    world = played(toy)
    first, neural = Submission.objects.order_by("pk")
    before = joint_of(world, first)
    which = np.random.default_rng(5).choice(N, N // 2, replace=False).tolist()
    row = confirmed_by(world, "Third", which)
    assert not LeakTest.objects.filter(seen=True).exists()
    now, mine = joint_of(world, first), joint_of(world, row)
    assert now["precision"][5] > before["precision"][5]
    assert mine["precision"][5] > joint_of(world, row, "simple")["precision"][5]
    assert None not in mine["recall"] and None not in mine["f1"]
    assert joint_of(world, neural)["recall"][0] != pytest.approx(before["recall"][0])
