"""The true facts that recall counts are those of runs of which a batch has settled: what a run
states of which nobody has answered anything moves nobody's recall.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from undone import undone

from estimators.estimate import Estimate as Number
from kbpo.corpus.models import Document
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Estimate
from kbpo.evaluation.run import evaluate, finished
from kbpo.instances.models import Instance
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Sample, SampleBatch
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from scoring.arrays import Ids
from scoring.data import Data
from scoring.default import Centred
from scoring.floors import Floors
from tests.conftest import Toy
from tests.evaluation.replay import Replay, _set_u
from tests.evaluation.test_leaked_answers import SHARE, N, read_some

pytestmark = pytest.mark.django_db
BY_DRAWS = pytest.param("iid", marks=pytest.mark.soak)
ENDS = ("value", "low80", "high80", "low95", "high95")
REFIT = 0.006
"""What the model, which sees the predictions of all runs that were sampled, may move a number by"""
REPEATS = 40


def stated(world: Replay, of_true: float, of_false: float, seed: int) -> list[int]:
    """A run that states a share of what holds, and another one of what does not."""
    chance = np.where(world.true, of_true, of_false)
    return np.flatnonzero(np.random.default_rng(seed).random(N) < chance).tolist()


def begun(toy: Toy, design: str, seed: int) -> tuple[Replay, Submission]:
    """A world with one run on the board, and 30 of some 100 documents read whole."""
    world = Replay.of(toy, N, SHARE, documents=100, design=design, seed=seed)
    toy.track.scope = "document"
    toy.track.save()
    toy.corpus.n_documents = Document.objects.filter(corpus=toy.corpus).count()
    toy.corpus.save()
    first = world.judge(world.upload("Patterns", stated(world, 0.5, 0.2, seed + 500)))
    read_some(world, 30, seed)
    evaluate(toy.track, [])
    return world, first


def junk(world: Replay) -> Submission:
    """A run of 600 claims on pairs that nobody else states, none of which holds."""
    base = Instance.objects.in_bulk(world.instance)
    pairs = [(a, a + 100 * k) for k in (1, 2, 3) for a in range(N - 100 * k)]
    ends = [((6 * a, 6 * a + 2), (6 * b + 3, 6 * b + 5)) for a, b in pairs]
    documents = [base[world.instance[a]].document_id for a, _ in pairs]
    places = [Place.pair(pk, *spans) for pk, spans in zip(documents, ends, strict=True)]
    found = targets_at(world.toy.corpus, places)
    targets = [found[place] for place in places]
    _set_u(targets, np.random.default_rng(4).random(len(targets)))
    made = Instance.objects.bulk_create(
        Instance(
            target_id=target,
            document_id=document,
            subject_begin=subject[0],
            subject_end=subject[1],
            object_begin=object_[0],
            object_end=object_[1],
            predicate=base[world.instance[0]].predicate,
        )
        for target, document, (subject, object_) in zip(targets, documents, ends, strict=True)
    )
    begin = len(world.target)
    world.target += targets
    world.instance += [one.pk for one in made]
    world.true = np.append(world.true, np.zeros(len(made), dtype=np.bool_))
    return world.upload("Neural", range(begin, begin + len(made)))


def drawn(world: Replay, row: Submission) -> Submission:
    """The run, confirmed and drawn, of which nothing is answered."""
    confirm(row, world.toy.users["Admin"])
    draw.tick()
    row.refresh_from_db()
    assert row.sampled_at and row.status == "judging"
    return row


def printed(world: Replay, row: Submission) -> dict[tuple[str, str], Ids]:
    """(quantity, method) -> recall or F1 of a run as it was printed last, with its intervals."""
    newest = world.toy.track.evaluations.order_by("-number").first()
    rows = Estimate.objects.filter(
        evaluation=newest, submission=row, criterion="relation", slice=""
    ).filter(quantity__in=["recall", "f1", "instance_recall"])
    return {
        (one.quantity, one.method): np.array([getattr(one, end) for end in ENDS]) for one in rows
    }


def follows_from_recall(data: Data, row: Submission) -> None:
    """Recall of a run is capped, and where precision is beyond doubt F1 is as sure as recall."""
    floors, at = Floors(Centred(data)), data.systems.index(row.pk)
    recall = floors.recall("relation")
    assert recall is not None and data.facts is not None
    found, truth = recall.totals.systems.value, recall.totals.pool.value + recall.unseen.value
    capped = np.asarray(recall.recall.value)[at]
    assert np.asarray(found)[at] / truth > capped == 1
    precision = floors.arranged.settled("instance", "relation")
    beyond_doubt = replace(
        precision,
        value=np.full(len(data.systems), 1e9),
        influence=np.zeros_like(precision.influence),
    )
    both = floors.f1("instance", "relation", beyond_doubt, recall)
    for of_f1, of_recall in (
        (both.value, 2 * np.asarray(recall.recall.value)),
        (both.variance, 4 * np.asarray(recall.recall.variance)),
        (both.anticipated, 4 * np.asarray(recall.recall.anticipated)),
    ):
        np.testing.assert_allclose(of_f1, of_recall, rtol=1e-6)
    share = Number(0.9, 0.0, 9, np.zeros(recall.design.pi.size))
    assert np.asarray(floors.corrected("relation", recall, share).value)[at] == 1


@pytest.mark.parametrize("design", ["poisson", BY_DRAWS])
def test_claims_of_which_nobody_was_asked_move_no_recall_that_is_out(toy: Toy, design: str) -> None:
    world, first = Replay.once(toy, f"begun, {design}", lambda: begun(toy, design, 4))
    before = printed(world, first)
    assert {("recall", "centred"), ("f1", "centred"), ("recall", "joint")} <= set(before)

    def is_as_before() -> None:
        evaluate(toy.track, [])
        now = printed(world, first)
        assert set(now) == set(before)
        for key, ends in before.items():
            assert np.abs(now[key] - ends).max() < REFIT, key

    row = drawn(world, junk(world))
    is_as_before()
    data = read(toy.track)
    assert data.facts is not None and (data.facts.in_scope & ~data.facts.counted).sum() == 600
    with undone():
        world.answer(10)
        evaluate(toy.track, [])
        own = printed(world, row)
        value, low80, high80, low95, high95 = own["recall", "centred"]
        assert 0 <= low95 <= low80 <= value <= high80 <= high95 <= 1, own
        assert low95 < 0.3 < high95, "hardly anything is known"
        assert np.isnan(own["recall", "joint"].astype(float)).all()
    of_junk = slice(N, None)
    with undone():
        world.true[of_junk] = True
        world.answer(10)
        world.true[of_junk] = False
        follows_from_recall(read(toy.track), row)
    with undone():  # nobody can tell of any of them: the batch has ended, without an answer
        asked = Sample.objects.filter(batch__submission=row).values_list("target", flat=True)
        record(NewLabel(pk, {}, "crowd", "nobody", 0, "given up") for pk in asked.distinct())
        evaluate(toy.track, finished(toy.track))
        assert SampleBatch.objects.filter(submission=row, settled_at__isnull=False).exists()
        now = printed(world, first)  # intervals widen: what is like these is answered less often
        assert all(abs(now[key][0] - ends[0]) < REFIT for key, ends in before.items())
    withdraw(row, toy.users["Tim"])
    is_as_before()


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_recall_is_right_on_average_before_and_after_a_second_run_is_answered(
    toy: Toy, design: str
) -> None:
    errors = []
    for seed in range(REPEATS):
        with undone():
            errors.append(_errors(toy, design, seed))
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1)
    assert np.all(np.abs(mean) < 3 * spread / np.sqrt(REPEATS)), (mean, spread)


def _errors(toy: Toy, design: str, seed: int) -> list[float]:
    """How far recall is off: of a run while a second one waits for answers, once that is judged;
    and of that one then.
    """
    world, first = begun(toy, design, seed)
    other = stated(world, 0.6, 0.4, seed + 900)
    row = drawn(world, world.upload("Neural", other))

    def off(run: Submission, which: list[int]) -> float:
        found = world.true[which].sum() / world.true.sum()
        return float(world.number(run, "recall").value - found)

    mine = stated(world, 0.5, 0.2, seed + 500)
    evaluate(toy.track, [])
    while_it_waits = off(first, mine)
    for _ in range(12):
        world.stage(row)
        if row.status == "scored":
            break
    assert row.status == "scored"
    return [while_it_waits, off(first, mine), off(row, other)]
