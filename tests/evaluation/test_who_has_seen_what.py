"""A team that deletes what it was shown to be wrong, and uploads the rest again, gets an honest
number.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from annotation.hits import lease
from annotation.models import HIT, Assignment, Question, Worker
from annotation.workers import leave
from annotation.workers.worker import worker_of
from kbpo import clock
from kbpo.accounts import close, teams
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Estimate
from kbpo.inclusion.disclosure import disclosed, earlier, earlier_of_its_people
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.money.purpose import Purpose
from kbpo.pool.pool import read_pool
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.designs.poisson import CHECK
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from kbpo.tracks.models import Track
from scoring.default import Centred
from tests.conftest import Toy
from tests.evaluation.replay import Replay
from tests.sampling.ways import by_threshold
from tests.sampling.ways import own as own_of

pytestmark = pytest.mark.django_db
N, SHARE = 500, 0.4
EVERYTHING = range(N)


def cleaned(world: Replay) -> list[int]:
    """What is left when a team deletes what it was shown to be wrong."""
    return sorted(set(EVERYTHING) - world.known_wrong())


def honest(printed: Estimate, truth: float) -> bool:
    """Whether what is printed is within four standard errors of the truth: draws and folds differ
    from run to run.
    """
    assert printed.value is not None and printed.variance is not None
    return abs(printed.value - truth) < 4 * printed.variance**0.5 < 0.3


def seen_by(world: Replay, row: Submission) -> Any:
    systems = [
        *Submission.objects.filter(sampled_at__isnull=False).values_list("pk", flat=True),
        row.pk,
    ]
    systems = list(dict.fromkeys(systems))
    found = disclosed(read_pool(world.toy.track, systems))
    return found.get(systems.index(row.pk))


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_deleting_what_was_shown_to_be_wrong_gains_nothing(toy: Toy, design: str) -> None:
    world = Replay.of(toy, N, SHARE, design=design)
    world.judge(world.upload("Patterns", EVERYTHING))
    kept = cleaned(world)
    assert len(kept) < N - 40
    row = world.judge(world.upload("Patterns", kept))
    printed = world.number(row)
    assert honest(printed, world.truth(kept))
    assert 0.01 < (printed.high80 - printed.low80) / 2 < 0.075


def put_before(toy: Toy, who: str, targets: list[int]) -> None:
    """Nothing; questions about these targets are in somebody's hands."""
    worker, now = worker_of(toy.users[who]), clock.now()
    for target in targets:
        question = Question.objects.create(
            track=toy.track,
            target_id=target,
            interface="relation",
            status="published",
            payload={},
            order=0.5,
            payer=Purpose("pilot", 1),
            price=Decimal("0.06"),
            reward=Decimal("0.05"),
        )
        hit = HIT.objects.create(status="open", track=toy.track, platform="pool", reward=0)
        hit.questions.add(question)
        Assignment.objects.create(
            hit=hit, worker=worker, status="leased", accepted_at=now, leased_until=now
        )


def judged_targets(world: Replay) -> list[int]:
    judged = Label.objects.filter(target__in=world.target)
    return list(judged.values_list("target_id", flat=True).distinct())


@pytest.mark.statistical
@pytest.mark.parametrize("who", ["Ada", "Admin", pytest.param("", marks=pytest.mark.soak)])
def test_a_team_gains_nothing_by_what_its_people_judged_or_saw_as_admins(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    for look in ("sampling.draw.look_for_leaks", "evaluation.run.look_again"):
        monkeypatch.setattr(f"kbpo.{look}", lambda _: [])
    world, _ = Replay.judged(toy, N, SHARE)
    put_before(toy, "Ada", judged_targets(world))
    if who:
        toy.teams["Neural"].members.add(toy.users[who])
    kept = cleaned(world)
    printed = world.number(world.judge(world.upload("Neural", kept)))
    assert honest(printed, world.truth(kept)) == bool(who)
    assert who or printed.value > world.truth(kept) + 0.3


def test_what_somebody_of_the_team_was_asked_was_drawn_for_sure_whenever_it_is_answered(
    toy: Toy,
) -> None:
    world = Replay.of(toy, 60, SHARE)
    first = world.upload("Patterns", range(60))
    confirm(first, toy.users["Rosa"])
    draw.tick()
    drawn = sorted(set(first.batches.get().samples.values_list("target_id", flat=True)))
    early, late = drawn[:8], drawn[8:12]
    toy.teams["Neural"].members.add(toy.users["Ada"])
    put_before(toy, "Ada", early)
    row = world.upload("Neural", range(0, 60, 2))
    confirm(row, toy.users["Tim"])
    put_before(toy, "Ada", late)
    mine = {world.target[at] for at in range(0, 60, 2)}

    def certain() -> set[int]:
        pool = read_pool(toy.track, [first.pk, row.pk])
        return set(pool.target_id[disclosed(pool)[1].certainty].tolist())

    assert certain() == mine & set(early) != set()
    pool = read_pool(toy.track, [first.pk, row.pk])
    rest = set(pool.target_id[disclosed(pool)[1].unjudged].tolist())
    assert rest == mine - set(early), "what was not put before them tells as well"
    world.judge(row)
    assert certain() == mine & set(early), "what was asked of them afterwards tells nothing"


def test_the_team_of_an_admin_has_seen_every_judgment_and_its_plan_tells_none(toy: Toy) -> None:
    world = Replay.of(toy, 60, SHARE)
    first = world.judge(world.upload("Patterns", range(60)))
    row = world.upload("Neural", range(0, 60, 2))
    assert earlier(row) == []
    toy.teams["Neural"].members.add(toy.users["Admin"])
    assert earlier(row) == [first.pk] and earlier_of_its_people(row) == []
    mine = {world.target[at] for at in range(0, 60, 2)}
    seen = seen_by(world, row)
    pool = read_pool(toy.track, [first.pk, row.pk])
    assert set(pool.target_id[seen.certainty].tolist()) == mine & set(judged_targets(world))
    assert set(pool.target_id[seen.unjudged].tolist()) == mine - set(judged_targets(world))


def test_nothing_that_happens_to_people_later_changes_what_their_team_had_seen(toy: Toy) -> None:
    world = Replay.of(toy, 60, SHARE)
    first = world.judge(world.upload("Patterns", range(60)))
    neural, ada, admin = toy.teams["Neural"], toy.users["Ada"], toy.users["Admin"]
    teams.join(neural, toy.users["Tim"])
    teams.join(neural, ada)
    put_before(toy, "Ada", judged_targets(world)[:8])
    row = world.upload("Neural", range(0, 60, 2))
    confirm(row, toy.users["Tim"])
    row = Submission.objects.get(pk=row.pk)

    def known() -> tuple[list[int], list[int], list[int]]:
        seen, pool = seen_by(world, row), read_pool(toy.track, [first.pk, row.pk])
        certain, unjudged = (
            pool.target_id[which].tolist() for which in (seen.certainty, seen.unjudged)
        )
        return earlier(row), certain, unjudged

    before = known()
    assert before[0] == [first.pk] and before[1]
    in_hand = list(Assignment.objects.filter(worker__user=ada))
    assert [one for one in in_hand if lease.stop(one) and lease.revive(one)]
    assert known() == before, "who comes back to a question has met it before"
    leave.ask(worker_of(ada), waives=True)
    assert not Worker.objects.filter(user=ada).exists() and known() == before, "Ada is erased"
    for person in (ada, admin):
        teams.join(neural, person)
        assert known() == before, "who joins later has told nothing"
        teams.remove(neural, person, admin)
        assert known() == before, "who leaves has told what they told"
    close.close(ada)
    assert known() == before
    tim = toy.users["Tim"]
    for is_staff in (True, False):
        tim.is_staff = is_staff
        tim.save()
        assert known() == before
    later = world.upload("Neural", range(60))
    assert earlier(later) == [first.pk], "its admin saw all"


@pytest.mark.parametrize("leaves", [False, True])
def test_who_was_an_admin_still_knows_what_they_saw(toy: Toy, leaves: bool) -> None:
    world = Replay.of(toy, 60, SHARE)
    first = world.judge(world.upload("Patterns", range(60)))
    tim, neural = toy.users["Tim"], toy.teams["Neural"]
    teams.join(neural, tim)
    assert earlier(world.upload("Neural", range(0, 60, 2))) == []
    for is_staff in (True, False):
        tim.is_staff = is_staff
        tim.save(update_fields=["is_staff"])
    if leaves:
        teams.join(neural, toy.users["Rosa"])
        teams.set_role(neural, toy.users["Rosa"], "owner", toy.users["Admin"])
        teams.remove(neural, tim, toy.users["Admin"])
        neural.memberships.all().delete()
    assert earlier(world.upload("Neural", range(1, 60, 2))) == [first.pk]


@pytest.mark.statistical
def test_a_draft_that_waited_for_the_judgments_gains_nothing(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    first = world.upload("Patterns", EVERYTHING)
    drafts = [world.upload("Patterns", range(at, N, 2)) for at in (0, 1)]
    world.judge(first)
    assert all(seen_by(world, row).certainty.any() for row in drafts)
    half = [sum(1 for one in world.known_wrong() if one % 2 == at) for at in (0, 1)]
    better = int(half[1] < half[0])
    printed = world.number(world.judge(drafts[better]))
    assert honest(printed, world.truth(range(better, N, 2)))


@pytest.mark.statistical
def test_without_the_rule_the_second_upload_would_be_printed_far_too_high(
    toy: Toy, monkeypatch: Any
) -> None:
    monkeypatch.setattr("kbpo.inclusion.read.disclosed", lambda *_: {})
    world = Replay.of(toy, N, SHARE)
    world.judge(world.upload("Patterns", EVERYTHING))
    kept = cleaned(world)
    printed = world.number(world.judge(world.upload("Patterns", kept)))
    assert printed.value > world.truth(kept) + 0.25
    assert not honest(printed, world.truth(kept))


@pytest.mark.soak
def test_a_near_copy_pays_for_itself(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    new = []
    for team in ("Patterns", "Neural"):
        row = world.upload(team, EVERYTHING if team == "Neural" else cleaned(world))
        before = Label.objects.filter(target__in=world.target).count()
        world.judge(row)
        new.append(Label.objects.filter(target__in=world.target).count() - before)
    assert new[0] > 80 > 35 > new[1], "for others all judgments count"


def test_what_was_seen_counts_for_itself_and_the_rest_is_asked_anew(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    kept = cleaned(world)
    row = world.upload("Patterns", kept)
    found = seen_by(world, row)
    shown = {world.target.index(pk) for pk in _target_ids(world, row)[found.certainty]}
    assert shown and all(world.true[at] for at in shown)
    assert found.certainty.sum() + found.unjudged.sum() == len(kept)
    rest = found.unjudged
    assert (found.threshold[rest] > 0).all()
    now = by_threshold(found.threshold)
    assert np.allclose(own_of(found, now)[rest], 0)
    assert (own_of(found, now)[found.certainty] == 1).all()
    higher = found.threshold + 0.5 * (1 - found.threshold)
    assert np.allclose(own_of(found, by_threshold(higher))[rest], 0.5)
    assert np.allclose(
        found.raised(found.given_threshold(higher), found.threshold)[rest], higher[rest]
    )


def _target_ids(world: Replay, row: Submission) -> Any:
    systems = list(Submission.objects.filter(sampled_at__isnull=False).values_list("pk", flat=True))
    return read_pool(world.toy.track, [*systems, row.pk]).target_id


def test_the_numbers_of_other_teams_stay_as_they_are(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    neural = world.judge(world.upload("Neural", range(100, N)))
    before = world.number(neural)
    kept = cleaned(world)
    assert honest(world.number(world.judge(world.upload("Patterns", kept))), world.truth(kept))
    data = read(toy.track)
    with_rule, without = (
        Centred(one).precision("instance", "relation")
        for one in (data, replace(data, disclosed={}))
    )
    gamed = data.systems.index(Submission.objects.latest("pk").pk)
    assert set(data.disclosed) == {gamed}
    others = [at for at in range(3) if at != gamed]
    for name in ("value", "variance", "n"):
        assert np.allclose(getattr(with_rule, name)[others], getattr(without, name)[others])
    assert with_rule.value[gamed] < without.value[gamed] - 0.03
    after = world.number(neural)
    assert honest(before, world.truth(range(100, N)))
    assert abs(after.value - before.value) < 0.02  # nothing but more labels to learn g from


@pytest.mark.soak
def test_a_withdrawn_submission_was_seen(toy: Toy) -> None:
    world, first = Replay.judged(toy, N, SHARE)
    withdraw(first)
    row = world.upload("Patterns", cleaned(world))
    assert earlier(row) == [first.pk]
    kept = cleaned(world)
    assert honest(world.number(world.judge(row)), world.truth(kept))


@pytest.mark.soak
@pytest.mark.slow
def test_a_copy_that_cost_nothing_was_seen_too(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    judged = Label.objects.count()
    copy = world.judge(world.upload("Neural", EVERYTHING))
    assert Label.objects.count() - judged <= 2 * CHECK, "a few were asked anew"
    withdraw(copy)
    kept = cleaned(world)
    row = world.upload("Neural", kept)
    assert earlier(row) == [copy.pk]
    assert honest(world.number(world.judge(row)), world.truth(kept))


def test_a_draft_that_was_never_confirmed_shows_nothing(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    world.judge(world.upload("Neural", EVERYTHING))
    draft = world.upload("Patterns", EVERYTHING)
    row = world.upload("Patterns", range(50, N))
    assert draft.status == "planned"
    assert earlier(row) == []
    assert seen_by(world, row) is None
    world.judge(row)
    assert read(toy.track).disclosed == {}


def test_what_was_drawn_after_the_confirmation_was_not_seen(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    first = world.upload("Patterns", EVERYTHING)
    row = world.upload("Patterns", range(50, N))
    confirm(row, toy.users["Admin"])
    row.refresh_from_db()
    world.judge(first)
    assert earlier(row) == []
    assert seen_by(world, row) is None


def test_a_second_team_of_the_same_person_has_seen_it_too(toy: Toy) -> None:
    world, first = Replay.judged(toy, N, SHARE)
    row = world.upload("Neural", range(50, N))
    assert earlier(row) == []
    toy.teams["Neural"].members.add(toy.users["Rosa"])
    assert earlier(row) == [first.pk]


def test_a_closed_track_was_seen_by_everybody(toy: Toy) -> None:
    world, first = Replay.judged(toy, N, SHARE)
    Track.objects.filter(pk=toy.track.pk).update(status="frozen")
    close_track(Track.objects.get(pk=toy.track.pk))
    row = world.upload("Neural", range(50, N))
    assert earlier(row) == [first.pk]
    Submission.objects.filter(pk=row.pk).update(confirmed_at=timezone.now() - timedelta(days=1))
    row = Submission.objects.get(pk=row.pk)
    assert earlier(row) == []
    assert seen_by(world, row) is None


@pytest.mark.soak
def test_what_settles_after_the_closing_was_seen_from_its_settling_on(toy: Toy) -> None:
    """Of a target that nobody on the closed track predicts: only that its judgment is public makes
    it known.
    """
    world = Replay.of(toy, N, SHARE)
    world.judge(world.upload("Patterns", range(100)))
    row = world.upload("Neural", range(50, N))
    Track.objects.filter(pk=toy.track.pk).update(status="frozen")
    close_track(Track.objects.get(pk=toy.track.pk))
    late = world.target[300]
    record(
        [
            NewLabel(
                late,
                {"shown": ["x>"], "holds": []},
                "crowd",
                "majority",
                3,
                "question:late",
                public=True,
            )
        ]
    )
    label = Label.objects.get(target=late)
    assert label.public_at == label.created_at
    found = {}
    for moment in (label.created_at - timedelta(microseconds=1), label.created_at):
        Submission.objects.filter(pk=row.pk).update(confirmed_at=moment)
        row = Submission.objects.get(pk=row.pk)
        targets = _target_ids(world, row)
        found[moment] = seen_by(world, row)
        assert found[moment].known[np.flatnonzero(targets == late)].all() == (
            moment == label.created_at
        )
    before, after = found.values()
    assert (
        after.certainty.sum() == before.certainty.sum() + 1
        and (after.unjudged == before.unjudged).all()
    )


def test_what_was_being_asked_at_the_upload_may_still_be_answered(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    first = world.upload("Patterns", EVERYTHING)
    confirm(first, toy.users["Admin"])
    draw.tick()
    answered = world.answer(most=10)
    row = world.upload("Patterns", EVERYTHING)
    found = seen_by(world, row)
    assert found.certainty.sum() == answered == 10
    asked = first.batches.get().samples.count()
    threshold = first.batches.get().samples.first().probability
    assert np.allclose(found.threshold, threshold * 10 / asked)
    assert (own_of(found, by_threshold(np.full(N, threshold)))[found.unjudged] > 0).all()


def mark(world: Replay, documents: list[int]) -> None:
    """Nothing; people read some documents and marked what is true in them, which says nothing of
    the rest.
    """
    part = "per:place_of_birth>"
    held = [
        pk
        for at, pk in enumerate(world.target)
        if world.true[at] and at % len(world.documents) in documents
    ]
    record(
        NewLabel(pk, {"shown": [part], "holds": [part]}, "document", "majority", 3, "read")
        for pk in held
    )


def test_what_readers_marked_is_no_judgment_by_itself(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    asked = set(Label.objects.filter(target__in=world.target).values_list("target_id", flat=True))
    mark(world, [0, 1, 2, 3])
    row = world.upload("Patterns", EVERYTHING)
    found, targets = seen_by(world, row), _target_ids(world, row)
    assert set(targets[found.certainty].tolist()) == asked  # as before: by chance alone
    assert found.unjudged.sum() == N - len(asked)
    printed = world.number(world.judge(row))
    assert honest(printed, world.truth(EVERYTHING))
    data = read(toy.track)
    at = data.systems.index(row.pk)
    unjudged = data.disclosed[at].unjudged
    f = np.full(data.pool.target_id.size, np.nan)
    f[data.pool.target[data.judged]] = data.f["relation"][:, at]
    new = unjudged & data.own[at].counts
    assert 0.15 < np.nanmean(f[new]) < 0.65  # what was asked anew is not only what was marked


def test_where_every_target_of_a_document_has_a_label_marks_count(toy: Toy) -> None:
    world, _ = Replay.judged(toy, 80, SHARE)
    mark(world, [0])
    part = "per:place_of_birth>"
    rest = [pk for at, pk in enumerate(world.target) if at % 8 == 0 and not world.true[at]]
    record(
        NewLabel(pk, {"shown": [part], "holds": []}, "document", "majority", 3, "read")
        for pk in rest
    )
    row = world.upload("Patterns", range(80))
    found, targets = seen_by(world, row), _target_ids(world, row)
    inside = np.isin(targets, [pk for at, pk in enumerate(world.target) if at % 8 == 0])
    assert found.certainty[inside].all()
