"""A second account that uploads a run made from the answers to another team's sample: it is found,
printed near the truth, and moves nobody else's number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Audit, Team, Token, User
from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate, signs_of
from kbpo.inclusion.disclosure import earlier
from kbpo.instances.models import Instance, Label
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.documents.draw import order_documents, settle_documents
from kbpo.sampling.leaks import LEVEL, Judged, decide, in_words
from kbpo.sampling.models import LeakTest
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.replay import PART, Replay
from tests.evaluation.test_who_has_seen_what import honest

pytestmark = pytest.mark.django_db
N, SHARE = 400, 0.4
SURELY = 0.02
"""Holds also where chance leaves a leak just short of the level"""
EVERYTHING = range(N)
SEEDS = [100, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(101, 140))]


def cleaned(world: Replay, *, of_right: bool = False) -> list[int]:
    """What is left without what the judgments say is wrong, or right."""
    deleted = known_right(world) if of_right else world.known_wrong()
    return sorted(set(EVERYTHING) - deleted)


def known_right(world: Replay) -> set[int]:
    rows = Label.objects.filter(target__in=world.target).exclude(value__holds=[])
    judged = set(rows.values_list("target_id", flat=True))
    return {at for at, pk in enumerate(world.target) if pk in judged}


def third_team(toy: Toy) -> None:
    """Nothing; the cast has one more team, whose uploads are by a user of its own."""
    toy.teams["Third"] = Team.objects.create(name="Third", slug="third")


def by_nobody(row: Submission) -> Submission:
    """The run, as if its team's own user had uploaded it."""
    user = User.objects.create_user(f"user-{row.pk}", password="x")
    Submission.objects.filter(pk=row.pk).update(user=user)
    row.refresh_from_db()
    return row


def off(world: Replay, row: Submission, which: Any) -> float:
    """How far what is printed is off."""
    return float(world.number(row).value - world.truth(which))


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_a_second_account_gains_nothing_by_the_answers_of_the_first(toy: Toy, design: str) -> None:
    world = Replay.of(toy, N, SHARE, design=design)
    first = world.judge(world.upload("Patterns", EVERYTHING))
    before = world.number(first).value
    kept = cleaned(world)
    row = world.judge(world.upload("Neural", kept))
    [test] = row.leak_tests.all()
    assert test.seen and test.adjusted <= LEVEL and test.earlier == first
    assert earlier(row) == [first.pk]
    assert honest(world.number(row), world.truth(kept))
    assert abs(world.number(first).value - before) < 0.02
    data = read(toy.track)
    assert data.disclosed_drawn[data.systems.index(row.pk)].leaked
    assert LeakTest.objects.count() == 1 <= row.batches.count(), "once, not at every stage"


def surely(world: Replay, row: Submission, sure: Callable[[int], float]) -> Submission:
    """The run, with a confidence of each relation."""
    at_of = {pk: at for at, pk in enumerate(world.instance)}
    for one in row.predictions.all():
        one.confidence = sure(at_of[one.instance_id])
        one.save(update_fields=["confidence"])
    return row


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_answers_that_are_written_into_confidences_are_found(toy: Toy, design: str) -> None:
    world, first = Replay.judged(toy, N, SHARE, design=design)
    before, wrong = world.number(first).value, world.known_wrong()
    copy = world.upload("Neural", EVERYTHING)
    row = world.judge(surely(world, copy, lambda at: 0.05 if at in wrong else 0.95))
    found = row.leak_tests.get()
    assert found.seen and found.channel == LeakTest.Channel.SURE
    assert "it is sure of" in in_words(found) and found.predicted < found.expected
    assert honest(world.number(row), world.truth(EVERYTHING))
    assert abs(world.number(first).value - before) < 0.02, "whom it read from is not moved"


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_answers_in_confidences_are_found_however_few_stand_above_the_rest(
    toy: Toy, design: str
) -> None:
    """Twelve at random are surest, so that half of all are no surer than the middle."""
    world, first = Replay.judged(toy, N, SHARE, design=design)
    before, wrong = world.number(first).value, world.known_wrong()
    top = set(np.random.default_rng(5).choice(EVERYTHING, 12, replace=False).tolist())
    copy = surely(
        world,
        world.upload("Neural", EVERYTHING),
        lambda at: 0.97 if at in top else 0.05 if at in wrong else 0.95,
    )
    row = world.judge(copy)
    assert row.leak_tests.get().channel == LeakTest.Channel.SURE
    assert abs(world.number(first).value - before) < 0.02


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ("linked", lambda wrong: {"subject_canonical_begin": 0} if wrong else {}),
        ("weighed", lambda wrong: {"subject_entity": 5, "same_subject": 80} if wrong else {}),
    ],
)
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_answers_that_are_written_into_links_and_so_into_weights_are_found(
    toy: Toy, channel: str, says: Callable[[bool], dict[str, int]], design: str
) -> None:
    """A copy that links otherwise what was judged wrong, or counts it as one subject's."""
    world = Replay.of(toy, N, SHARE, design=design)
    kind = "entity" if channel == "weighed" else "instance"
    toy.track.distribution, toy.track.distributions = kind, [kind]
    toy.track.save()

    def upload(team: str, wrong: set[int]) -> Submission:
        row, at_of = world.store(team, EVERYTHING, status="read"), world.instance.index
        for one in row.predictions.all():
            changes = says(at_of(one.instance_id) in wrong)
            if changes:
                row.predictions.filter(pk=one.pk).update(**changes)
        distribution.tick()
        row.refresh_from_db()
        return row

    world.judge(upload("Patterns", set()))
    row = upload("Neural", world.known_wrong())
    confirm(row, toy.users["Tim"])
    draw.tick()
    found = row.leak_tests.get()
    assert found.seen and found.channel == channel


@pytest.mark.soak
@pytest.mark.parametrize("marked", ["wrong", "right"])
def test_answers_that_are_written_into_how_much_is_said_of_a_name_are_found(
    toy: Toy, marked: str
) -> None:
    """It says something of every subject, and more of those that were judged so."""
    world, first = Replay.judged(toy, N, SHARE)
    before = world.number(first).value
    often = world.known_wrong() if marked == "wrong" else known_right(world)
    said = [(at, at + 8 * k) for at in EVERYTHING for k in range(1, 8 if at in often else 2)]
    row = beside(world, range(len(said)), lambda at: (said[at][0], said[at][1] % N))
    confirm(row, toy.users["Tim"])
    draw.tick()
    found = row.leak_tests.get()
    assert found.seen and found.channel == LeakTest.Channel.SUBJECT
    evaluate(toy.track, [])
    assert abs(world.number(first).value - before) < 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_who_is_surer_of_what_holds_and_read_nothing_is_believed(toy: Toy, seed: int) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    sure = np.random.default_rng(seed).random(N) * 0.6 + 0.4 * world.true
    row = surely(world, world.upload("Neural", EVERYTHING), lambda at: float(sure[at]))
    confirm(row, toy.users["Tim"])
    world.stage(row)
    assert row.leak_tests.get().p_value > 0.001 and earlier(row) == []


def beside(world: Replay, which: Iterable[int], pair: Callable[[int], tuple[int, int]]) -> Any:
    """A draft of another team that states the relation of each of these with another subject or
    object: those of the relations with these numbers.
    """
    base = Instance.objects.in_bulk(world.instance)
    ends = {at: pair(at) for at in which}
    spans = {at: ((6 * a, 6 * a + 2), (6 * b + 3, 6 * b + 5)) for at, (a, b) in ends.items()}
    document = {at: base[world.instance[ends[at][0]]].document_id for at in ends}
    places = {at: Place.pair(document[at], *spans[at]) for at in ends}
    targets = targets_at(world.toy.corpus, list(places.values()))
    stated = [
        Instance.objects.get_or_create(
            target_id=targets[places[at]],
            document_id=document[at],
            subject_begin=subject[0],
            subject_end=subject[1],
            object_begin=object_[0],
            object_end=object_[1],
            predicate=base[world.instance[ends[at][0]]].predicate,
        )[0]
        for at, (subject, object_) in spans.items()
    ]
    row = world.store_instances("Neural", stated, status="read")
    distribution.tick()
    row.refresh_from_db()
    return row


@pytest.mark.parametrize(
    ("channel", "pair"),
    [
        ("subject", lambda at: (at, (at + 8) % N)),
        pytest.param("object", lambda at: ((at + 8) % N, at), marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_answers_that_are_written_into_what_else_is_said_of_a_name_are_found(
    toy: Toy, channel: str, pair: Any, design: str
) -> None:
    """It shares no target with the run that it was made from."""
    world, first = Replay.judged(toy, N, SHARE, design=design)
    before, wrong = world.number(first).value, world.known_wrong()
    row = beside(world, sorted(set(EVERYTHING) - wrong), pair)
    confirm(row, toy.users["Tim"])
    draw.tick()
    found = row.leak_tests.get()
    assert found.seen and found.channel == channel
    evaluate(toy.track, [])
    assert abs(world.number(first).value - before) < 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_who_says_something_else_of_some_and_read_nothing_is_believed(toy: Toy, seed: int) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    said = np.random.default_rng(seed).random(N) < np.where(world.true, 0.7, 0.3)
    row = beside(world, np.flatnonzero(said).tolist(), lambda at: (at, (at + 8) % N))
    confirm(row, toy.users["Tim"])
    draw.tick()
    assert row.leak_tests.get().p_value > 0.001 and earlier(row) == []


@pytest.mark.soak
def test_who_may_look_what_documents_say_of_the_own_run_and_drops_what_is_false_is_believed(
    toy: Toy,
) -> None:
    """What its second run says of the same subjects depends on which documents were read."""
    world, _ = Replay.judged(toy, N, SHARE, documents=100)

    def other(at: int) -> tuple[int, int]:
        return at, (at + 100) % N

    own = beside(world, EVERYTHING, other)
    read = order_documents(toy.track, 30, seed=4, user=toy.users["Admin"])
    chosen = set(read.samples.values_list("document_id", flat=True))
    places = own.predictions.order_by("pk").values_list(
        "instance__target", "instance__document", "instance__predicate__name"
    )
    inside = {at for at, (_, document, _) in enumerate(places) if document in chosen}
    true = {at for at in EVERYTHING if at % 3 == 0}
    record(
        NewLabel(
            target,
            {"shown": [f"{name}>"], "holds": [f"{name}>"] if at in true else []},
            "document",
            "majority",
            3,
            "read",
        )
        for at, (target, _, name) in enumerate(places)
        if at in inside
    )
    settle_documents(toy.track, sorted(chosen))
    confirm(own, toy.users["Tim"])
    draw.tick()
    again = beside(world, sorted(set(EVERYTHING) - (inside - true)), other)
    confirm(again, toy.users["Tim"])
    draw.tick()
    assert not again.leak_tests.filter(seen=True).exists()
    assert min(again.leak_tests.values_list("p_value", flat=True), default=1.0) > 0.001


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_who_hides_what_was_read_by_deleting_as_much_blindly_is_found(
    toy: Toy, design: str
) -> None:
    world = Replay.of(toy, N, SHARE, design=design)
    rng = np.random.default_rng(6)
    third_team(toy)
    others = world.true & (rng.random(N) < 0.8) | (rng.random(N) < 0.2)
    by_nobody(world.judge(world.upload("Third", np.flatnonzero(others).tolist())))
    first = world.judge(world.upload("Patterns", EVERYTHING))
    wrong, right = world.known_wrong(), known_right(world)
    unknown = sorted(set(EVERYTHING) - wrong - right)
    share = len(wrong) / (len(wrong) + len(right))
    blindly = set(rng.choice(unknown, round(share * len(unknown)), replace=False).tolist())
    row = world.upload("Neural", sorted(set(EVERYTHING) - wrong - blindly))
    confirm(row, toy.users["Tim"])
    world.stage(row)
    found = row.leak_tests.get(earlier=first)
    # By draws it is found most times; where it is not, it is unlikely all the same.
    assert found.seen == (found.adjusted <= LEVEL)
    assert found.adjusted < SURELY and (found.seen or design == "iid")
    assert found.of_unlikely and found.predicted < found.expected
    assert "what few other runs predict" in in_words(found)


@pytest.mark.statistical
def test_without_the_test_the_second_account_is_believed_and_moves_the_first(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbpo.sampling.draw.look_for_leaks", lambda _: [])
    monkeypatch.setattr("kbpo.evaluation.run.look_again", lambda _: [])
    world = Replay.of(toy, N, SHARE)
    first = world.judge(world.upload("Patterns", EVERYTHING))
    kept = cleaned(world)
    row = world.judge(world.upload("Neural", kept))
    assert off(world, row, kept) > 0.3
    assert off(world, first, EVERYTHING) > 0.1


@pytest.mark.statistical
def test_who_deletes_what_was_right_moves_nobody_either(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    first = world.judge(world.upload("Patterns", EVERYTHING))
    before = world.number(first).value
    kept = cleaned(world, of_right=True)
    row = world.judge(world.upload("Neural", kept))
    assert row.leak_tests.get().seen
    assert honest(world.number(row), world.truth(kept))
    assert abs(world.number(first).value - before) < 0.02


def read_some(world: Replay, size: int, seed: int = 4) -> set[int]:
    """What does not hold in documents that were drawn and are now read whole."""
    batch = order_documents(world.toy.track, size, seed=seed, user=world.toy.users["Admin"])
    chosen = list(batch.samples.values_list("document_id", flat=True))
    of = [at for at in EVERYTHING if world.documents[at % len(world.documents)].pk in chosen]
    record(
        NewLabel(
            world.target[at],
            {"shown": [PART], "holds": [PART] if world.true[at] else []},
            "document",
            "majority",
            3,
            "read",
        )
        for at in of
    )
    settle_documents(world.toy.track, chosen)
    return {at for at in of if not world.true[at]}


@pytest.mark.soak
def test_who_deletes_what_is_wrong_in_documents_read_whole_is_found(toy: Toy) -> None:
    world, first = Replay.judged(toy, N, SHARE, documents=100)
    wrong = read_some(world, 30)
    copy = world.upload("Neural", EVERYTHING)
    leak = world.upload("Neural", sorted(set(EVERYTHING) - wrong))
    for row in (copy, leak):
        confirm(row, toy.users["Tim"])
    world.stage(leak)
    assert copy.leak_tests.get(earlier=first).p_value == 1, "a copy says nothing of what was read"
    found = leak.leak_tests.get(earlier=first)
    assert found.seen and found.adjusted <= LEVEL
    assert found.expected > found.predicted > 0
    assert first.pk in earlier(leak)


def test_one_long_document_that_nobody_read_hides_no_run_that_says_more_where_some_did() -> None:
    """To a team that could see judgments only that counts, by ranks as its p-value does."""
    document = np.concatenate([np.repeat(np.arange(100), 2), np.arange(40), np.full(5000, 99)])
    member = np.column_stack([np.zeros(document.size), np.ones(document.size)])
    judged: Any = SimpleNamespace(
        pool=SimpleNamespace(target=np.arange(document.size), document=document),
        second={},
        open=np.array([False]),
        predicted=lambda column: member[:, column] > 0,
        _member=member,
        documents=lambda _: (document, document < 40, document < 0),
        beside=member[:, 0] > 0,
        most_read=lambda columns: columns[0],
    )
    found, _ = Judged.in_documents(judged, [0])
    assert found.predicted > found.expected and found.p_value < 1e-6
    little: Any = SimpleNamespace(**vars(judged))
    little.documents = lambda _: (document, document >= 40, document < 0)
    less, _ = Judged.in_documents(little, [0])
    assert less.p_value == 1


def test_who_read_nothing_is_believed(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE)
    copy = world.judge(world.upload("Neural", EVERYTHING))
    assert copy.leak_tests.get().p_value == 1, "a copy says nothing of who was drawn"
    better = np.flatnonzero(world.true | (np.random.default_rng(5).random(N) < 0.3))
    third_team(toy)
    row = by_nobody(world.upload("Third", better.tolist()))
    world.judge(row)
    assert [test.seen for test in row.leak_tests.all()] == [False, False]
    assert earlier(row) == []
    assert honest(world.number(row), world.truth(better.tolist()))


def better_than_chance(world: Replay, seed: int) -> list[int]:
    """A run that nobody made from answers, of those that state most of what holds."""
    rng = np.random.default_rng(seed)
    predicted = rng.random(N) < np.where(world.true, 0.8, 0.2)
    return np.flatnonzero(predicted).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
@pytest.mark.parametrize("team", ["Patterns", "Third"])
def test_who_read_nothing_is_believed_though_others_uploaded_what_judgments_left(
    toy: Toy, team: str, design: str
) -> None:
    """What is left of a sample is right, and so is most of what an honest run predicts of it."""
    world = Replay.of(toy, N, SHARE, design=design)
    third_team(toy)
    world.judge(world.upload("Patterns", EVERYTHING))
    second = world.upload(team, cleaned(world))
    second = world.judge(by_nobody(second) if team == "Third" else second)
    assert second.leak_tests.filter(seen=True).exists() == (team == "Third")
    row = world.upload("Neural", better_than_chance(world, 3))
    confirm(row, toy.users["Tim"])
    world.stage(row)
    assert [test.seen for test in row.leak_tests.all()] == [False] * row.leak_tests.count()
    assert min(test.p_value for test in row.leak_tests.all()) > 0.01


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
@pytest.mark.parametrize("team", ["Patterns", "Third"])
def test_who_reads_what_was_drawn_for_a_second_run_alone_is_found(
    toy: Toy, team: str, design: str
) -> None:
    world = Replay.of(toy, N, SHARE, design=design)
    third_team(toy)
    world.judge(world.upload("Patterns", range(N // 2)))
    known = world.known_wrong()
    second = world.upload(team, sorted(set(EVERYTHING) - known))
    second = world.judge(by_nobody(second) if team == "Third" else second)
    fresh = world.known_wrong() - known
    assert second.leak_tests.filter(seen=True).exists() == (team == "Third")
    row = world.upload("Neural", sorted(set(EVERYTHING) - fresh))
    confirm(row, toy.users["Tim"])
    world.stage(row)
    found = row.leak_tests.get(earlier=second)
    assert found.seen and found.predicted < found.expected
    assert second.pk in earlier(row)


@pytest.mark.statistical
def test_what_a_second_run_asked_of_what_its_team_knew_was_drawn_by_chance_too(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    world.judge(world.upload("Patterns", EVERYTHING))
    known = world.known_wrong()
    second = world.judge(world.upload("Patterns", cleaned(world)))
    since = world.known_wrong() - known
    assert len(since) > 20
    honest_run = world.upload("Neural", better_than_chance(world, 5))
    leak = world.upload("Neural", sorted(set(EVERYTHING) - since))
    for row in (honest_run, leak):
        confirm(row, toy.users["Tim"])
    world.stage(leak)
    assert honest_run.leak_tests.get(earlier=second).p_value > 0.01
    assert leak.leak_tests.get(earlier=second).seen


@pytest.mark.soak
def test_documents_that_were_drawn_before_a_second_run_say_nothing_of_it(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE, documents=100)
    wrong = read_some(world, 30)
    second = world.upload("Patterns", sorted(set(EVERYTHING) - wrong))
    confirm(second, toy.users["Rosa"])
    world.stage(second)
    predicted = world.true | (np.random.default_rng(4).random(N) < 0.6)
    row = world.upload("Neural", np.flatnonzero(predicted).tolist())
    confirm(row, toy.users["Tim"])
    world.stage(row)
    assert row.leak_tests.count() == 2
    assert not row.leak_tests.filter(seen=True).exists()


def test_what_was_judged_after_the_confirmation_was_not_read(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE)
    first, row = world.upload("Patterns", EVERYTHING), world.upload("Neural", range(50, N))
    confirm(row, toy.users["Tim"])
    confirm(first, toy.users["Rosa"])
    world.stage(first)
    row.refresh_from_db()
    assert row.sampled_at and not row.leak_tests.exists()


@pytest.mark.soak
def test_a_team_that_read_once_is_held_for_having_read_until_it_is_lifted(toy: Toy) -> None:
    world, first = Replay.judged(toy, N, SHARE)
    leak = world.judge(world.upload("Neural", cleaned(world)))
    again = world.upload("Neural", range(100, N))
    assert earlier(again) == [first.pk, leak.pk]
    third_team(toy)
    chained = by_nobody(world.upload("Third", cleaned(world)))
    world.judge(chained)
    assert set(earlier(chained)) >= {first.pk}, "who copies the leak is found by the first sample"
    signs, drawn = signs_of(toy.track), earlier(leak)
    test = leak.leak_tests.get()
    decide(test, toy.users["Admin"], "The team showed us its log.", lift=True)
    assert signs_of(toy.track) != signs, "it is scored again"
    assert earlier(again) == [leak.pk]
    assert earlier(leak) == drawn, "its own sample was drawn so"
    data = read(toy.track)
    assert not data.disclosed_drawn[data.systems.index(leak.pk)].leaked
    assert Audit.objects.filter(what="leak lifted", why="The team showed us its log.").exists()
    evaluate(toy.track)
    assert honest(world.number(leak), world.truth(cleaned(world)))


def test_it_is_told_on_the_desk_and_to_the_team_and_an_admin_decides(
    toy: Toy, client: Client
) -> None:
    """It is also what holds by day that a leak is found, and printed near the truth."""
    world, first = Replay.judged(toy, N, SHARE)
    before, kept = world.number(first).value, cleaned(world)
    row = world.judge(world.upload("Neural", kept))
    test = row.leak_tests.get()
    assert test.seen and test.adjusted <= LEVEL
    assert honest(world.number(row), world.truth(kept))
    assert abs(world.number(first).value - before) < 0.02, "whom it read from is not moved"
    client.force_login(toy.users["Tim"])
    page = client.get(reverse("submission", args=[row.pk])).content.decode()
    assert "Scored as a second run on the sample of" in page
    token = Token.issue(toy.users["Tim"], "test")[1]
    told = client.get(
        reverse("api-submission", args=[row.pk]), headers={"Authorization": f"Token {token}"}
    )
    [told] = told.json()["seen_samples"]
    assert told["submission"] == first.pk and told["lifted"] is False
    assert client.post(reverse("desk-leak", args=[test.pk])).status_code == 403
    client.force_login(toy.users["Rosa"])
    assert "second run" not in client.get(reverse("submission", args=[row.pk])).content.decode()
    client.force_login(toy.users["Admin"])
    desk = client.get(reverse("desk")).content.decode()
    assert "made from others’ answers" in desk and f"it predicts {test.predicted}" in desk
    address = reverse("desk-leak", args=[test.pk])
    client.post(address, {"verb": "lift", "why": " "})
    test.refresh_from_db()
    assert test.decided_at is None, "without a reason nothing is lifted"
    client.post(address, {"verb": "confirm"})
    test.refresh_from_db()
    assert test.decided_by == toy.users["Admin"] and not test.lifted
    assert "made from others’ answers" not in client.get(reverse("desk")).content.decode()
    client.post(address, {"verb": "lift", "why": "Both are one team, and said so."})
    test.refresh_from_db()
    assert test.lifted
    client.force_login(toy.users["Tim"])
    page = client.get(reverse("submission", args=[row.pk])).content.decode()
    assert "found no fault" in page


def masked(world: Replay, *, seed: int) -> list[int]:
    """What is left without what was judged wrong, and as large a share of what was not judged."""
    wrong, right = world.known_wrong(), known_right(world)
    unknown = sorted(set(EVERYTHING) - wrong - right)
    n = round(len(wrong) / (len(wrong) + len(right)) * len(unknown))
    blindly = set(np.random.default_rng(seed).choice(unknown, n, replace=False).tolist())
    return sorted(set(EVERYTHING) - wrong - blindly)


@pytest.mark.soak
@pytest.mark.parametrize("leak_comes", ["before", "after"])
@pytest.mark.parametrize("seed", range(2, 12))
def test_who_is_judged_beside_a_run_that_was_made_from_answers_is_believed(
    toy: Toy, leak_comes: str, seed: int
) -> None:
    """That run asks of what was judged right alone, and of nothing that it left out."""
    world = Replay.of(toy, N, SHARE, seed=seed)
    world.judge(world.upload("Patterns", EVERYTHING))
    third_team(toy)
    leak = by_nobody(world.upload("Third", masked(world, seed=seed)))
    copy = world.upload("Neural", EVERYTHING)
    for row in (leak, copy) if leak_comes == "before" else (copy, leak):
        confirm(row, toy.users["Admin"])
        draw.tick()
    for row in (leak, copy):
        row.refresh_from_db()
        world.until_scored(row)
    assert not copy.leak_tests.filter(seen=True).exists()


@pytest.mark.statistical
@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_who_hides_what_was_read_is_found_by_what_is_judged_since(toy: Toy, design: str) -> None:
    """Alone on the board with the run that it was read from, as much deleted blindly: its draws say
    nothing, its answers do.
    """
    world, first = Replay.judged(toy, N, SHARE, design=design)
    kept = masked(world, seed=6)
    row = world.upload("Neural", kept)
    confirm(row, toy.users["Tim"])
    draw.tick()
    assert not row.leak_tests.get().seen
    row.refresh_from_db()
    world.until_scored(row)
    found = row.leak_tests.get()
    assert found.seen and found.channel == LeakTest.Channel.RIGHT and found.earlier == first
    assert honest(world.number(row), world.truth(kept))
    assert honest(world.number(first), world.truth(EVERYTHING))
    for who, address, what_to_do in (
        ("Tim", reverse("submission", args=[row.pk]), "tell an admin since when"),
        ("Admin", reverse("desk"), "Before you confirm it, see by"),
    ):
        client = Client()
        client.force_login(toy.users[who])
        text = " ".join(client.get(address).content.decode().split())
        assert "where people judge otherwise since than they did before" in text
        assert what_to_do in text
