"""A verdict that turns, since more answers about its target came in, is logged and told to its
team.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Audit
from kbpo.evaluation.flips import flips_of
from kbpo.evaluation.judges import answers_about
from kbpo.evaluation.models import Evaluation, Flip
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.world import World

pytestmark = pytest.mark.django_db


def as_user(toy: Toy, name: str) -> Client:
    client = Client()
    client.force_login(toy.users[name])
    return client


def judged(world: World) -> tuple[Submission, list[Target]]:
    """A system with the targets that were drawn for it, all judged and scored."""
    row = world.system("one", lambda one: True)
    asked = world.sample(row)
    world.answer(asked)
    evaluate(world.track, [row])
    Submission.objects.filter(pk=row.pk).update(status="scored")
    row.refresh_from_db()
    return row, asked


def say_again(target: Target, holds: bool, n: int, question: str) -> None:
    """A label of another question about a pair: n people say that all of it holds, or nothing."""
    [first, *_] = Label.objects.filter(target=target).order_by("pk")
    shown = first.value["shown"]
    value = {"shown": shown, "holds": shown if holds else []}
    value["votes"] = dict.fromkeys(shown, n if holds else 0)
    record([NewLabel(target.pk, value, "crowd", "majority", n, question)])


def test_answers_that_outvote_earlier_ones_turn_a_verdict_and_its_team_reads_so(
    toy: Toy,
) -> None:
    world = World(toy, is_study=True)
    row, asked = judged(world)
    right = next(one for one in world.instances if world.truth[one.pk])
    target = next(one for one in asked if one.pk == right.target_id)
    say_again(target, False, 2, "question:a")
    evaluate(world.track)
    assert not Flip.objects.exists(), "two against three: nothing turns"
    say_again(target, False, 2, "question:b")
    evaluate(world.track)
    assert flips_of(row)[right.pk].before == 1.0 and flips_of(row)[right.pk].now == 0.0
    entry = Audit.objects.get(what="verdicts turned")
    assert (entry.about, entry.track) == (f"submission:{row.pk}", "world")
    evaluate(world.track)
    assert Audit.objects.filter(what="verdicts turned").count() == 1, "told once"
    page = as_user(toy, "Rosa").get(reverse("submission", args=[row.pk])).content.decode()
    assert "changed since" in page and "verdict=turned" in page
    address = reverse("submission-explore", args=[row.pk]) + "?verdict=turned"
    listing = as_user(toy, "Rosa").get(address).content.decode()
    assert listing.count("changed from right to wrong") == 1
    assert listing.count('class="x-claim"') == 1
    strangers = as_user(toy, "Tim").get(reverse("submission", args=[row.pk])).content.decode()
    assert "changed since" not in strangers


def asked_about(part: str, votes: int, question: int, method: str = "majority") -> NewLabel:
    """What three people were asked about one predicate of a pair, of whom so many say yes; a model
    takes it for true whatever most say.
    """
    holds = [part] if 2 * votes > 3 or method != "majority" else []
    value = {"shown": [part], "holds": holds, "votes": {part: votes}}
    share = min(votes, 3 - votes) / 3
    return NewLabel(
        0, value, "crowd", method, 3, f"q:{question}", disagreement=share, question=question
    )


GIVEN_UP = NewLabel(0, {}, "crowd", "nonresponse", 0, "q:1/given-up", question=1)


@pytest.mark.parametrize(
    ("labels", "answers", "against"),
    [
        ([asked_about("a", 2, 1)], 3, 1),
        ([asked_about("a", 2, 1), asked_about("b", 2, 2)], 6, 2),
        ([asked_about("a", 2, 1), asked_about("b", 1, 2), asked_about("c", 2, 3)], 9, 3),
        ([asked_about("a", 3, 1), asked_about("a", 1, 2)], 6, 2),
        ([asked_about("a", 3, 1), asked_about("a", 0, 2), asked_about("a", 0, 3)], 9, 3),
        ([asked_about("a", 1, 1), asked_about("a", 1, 1, "dawid_skene")], 3, 1),
        ([asked_about("a", 2, 1), GIVEN_UP], 3, 1),
        ([asked_about("a", 2, 1), replace(GIVEN_UP, again=1)], 0, 0),
    ],
    ids=[
        "one",
        "two predicates",
        "three",
        "again",
        "turned",
        "a model's",
        "given up",
        "taken back",
    ],
)
def test_who_differs_in_one_question_differs_whatever_else_was_asked_about_the_pair(
    toy: Toy, labels: list[NewLabel], answers: int, against: int
) -> None:
    world = World(toy, is_study=True)
    target = world.instances[0].target_id
    record([replace(label, target_id=target) for label in labels])
    said, differ = answers_about(np.array([target]))
    assert (said.tolist(), differ.tolist()) == ([answers], [pytest.approx(against)])


def latest(world: World) -> Evaluation:
    return world.track.evaluations.order_by("-number")[0]


def test_a_mention_that_is_settled_anew_turns_what_is_said_of_it(toy: Toy) -> None:
    world = World(toy, is_study=True)
    world.track.criterion = "correct"
    world.track.save()
    row, _ = judged(world)
    right = next(one for one in world.instances if world.truth[one.pk])
    spans = [(right.subject_begin, right.subject_end), (right.object_begin, right.object_end)]
    [subject, object_] = [Place("mention", right.document_id, span) for span in spans]
    targets = targets_at(world.corpus, [subject, object_])
    value = {"canonical": list(object_.a), "type": "PER"}
    record([NewLabel(targets[subject], value, "crowd", "majority", 4, "question:a")])
    evaluate(world.track)
    turned = flips_of(row)
    assert right.pk in turned and turned[right.pk].now == 0.0
    same_subject = {one.pk for one in world.instances if _states(one, subject)}
    assert set(turned) <= same_subject, "of nothing else"


def _states(instance: Instance, place: Place) -> bool:
    ends = {(instance.subject_begin, instance.subject_end)}
    return instance.document_id == place.document and place.a in ends | {
        (instance.object_begin, instance.object_end)
    }
