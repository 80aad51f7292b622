"""Documents of which all but one are read, a system whose sample is judged, and people who judge
what a follow-up asks.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.test import Client

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Question
from annotation.questions import ask, follow_up
from kbpo.money.models import Budget, Price
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import FollowUp
from tests.conftest import Toy
from tests.evaluation.world import World

PI = 0.3


def make_world(toy: Toy, read: int = 2) -> World:
    """A world to be followed up: so many documents are read, and one is not."""
    made = World(toy, n_documents=read + 1)
    Price.objects.create(track=made.track, interface="relation", reward=Decimal("0.05"), seconds=20)
    Budget.objects.create(track=made.track, scope="track", cap=Decimal("500.00"))
    made.answer(made.sample(made.system("first", lambda one: one.pk % 4 != 0), PI))
    made.read_in_full(made.documents[:read], lambda one: one.pk % 3 != 0)
    settle_documents(made.track, [one.pk for one in made.documents[:read]])
    return made


def order(world: World) -> FollowUp:
    return follow_up.order_follow_up(world.track, follow_up.plan_follow_up(world.track).at_most)


def move() -> None:
    """Everything that the clock moves, once."""
    for tick in (settle.tick, ask.tick, follow_up.tick, publish.tick):
        tick()


def answers(world: World, name: str) -> Callable[[Question], dict[str, Any]]:
    """What somebody says who knows the truth."""

    def answer(question: Question) -> dict[str, Any]:
        of = [one for one in world.instances if one.target_id == question.target_id]
        parts = [
            f"{one.predicate.name}{'>' if one.forward else '<'}"
            for one in of
            if world.truth[one.pk]
        ]
        target = question.target
        said = {
            "a": [f"{target.a_begin}-{target.a_end}"],
            "b": [f"{target.b_begin}-{target.b_end}"],
        }
        return said | ({"holds": parts} if parts else {"none": ["1"]})

    return answer


def judge(world: World, *, most: int | None = None) -> int:
    """How many answers three people gave until nothing was open to them."""
    given = 0
    for name in ("Ada", "Bo", "Cy"):
        client, say, mine = Client(), answers(world, name), 0
        client.force_login(world.toy.users[name])
        while (
            mine != most and (address := client.get("/annotate/next/")["Location"]) != "/annotate/"
        ):
            assignment = Assignment.objects.select_related("hit").get(token=address.split("/")[2])
            question = assignment.hit.questions.select_related("target")[0]
            response = client.post(address, say(question))
            assert response.status_code == 302, response.content.decode()
            given, mine = given + 1, mine + 1
    return given
