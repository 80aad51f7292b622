"""What the API tells of a run's predictions is what its pages show to the same person, no less and
no more.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.sampling.models import ExpertCheck
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.submissions.models import Prediction, Submission
from kbpo.web.research.explorer import Explorer
from tests.conftest import Toy
from tests.test.evaluation.world import World
from tests.test.web.test_explore import client_of, header_of, row, world
from tests.test.web.test_whose_judgments import judged_of

pytestmark = pytest.mark.django_db
__all__ = ["row", "world"]
PARTS = ("relation", "subject", "object")
PEOPLE = ("", "Tim", "Ada", "Rosa", "Admin")


def page_and_api(toy: Toy, name: str, page: str, api: str, pk: int, **said: str) -> tuple[Any, Any]:
    """What somebody (nobody in particular: "") is answered by a page and by the API."""
    client = client_of(toy, name) if name else Client()
    headers = header_of(toy, name) if name else {}
    return (
        client.get(reverse(page, args=[pk]), said),
        Client().get(reverse(api, args=[pk]), said, headers=headers),
    )


def judged_counts(toy: Toy, name: str, pk: int) -> tuple[int | None, int | None]:
    """How many judged predictions somebody sees on the page, and over the API; None where there is
    nothing to see.
    """
    page, api = page_and_api(
        toy, name, "submission-explore", "api-predictions", pk, verdict="judged"
    )
    assert page.status_code == api.status_code in (200, 404), name
    if page.status_code == 404:
        return None, None
    return judged_of(page), api.json()["count"]


def test_predictions_are_told_to_whom_the_page_shows_them(
    row: Submission, world: World, toy: Toy
) -> None:
    late = world.system("late", lambda one: True, team="Neural")
    world.answer(world.sample(late, 0.05))
    private = world.system("private", lambda one: True)
    private.is_private = True
    private.scored_at = private.sampled_at
    private.save()
    private.move("scored")
    assert judged_counts(toy, "Rosa", late.pk) == (None, None), "of Neural, and not on the board"
    close_track(freeze_track(world.track))
    for name in ("", "Tim"):
        assert judged_counts(toy, name, private.pk) == (None, None)
    asked = {"verdict": "wrong", "limit": "500"}
    public = page_and_api(toy, "", "submission-explore", "api-predictions", row.pk, **asked)[1]
    assert {one["right"] for one in public.json()["results"]} == {False}
    assert "dispute" not in public.content.decode().replace('"dispute":null', "")
    dispute = reverse("api-dispute", args=[row.pk, row.predictions.earliest("pk").pk])
    said = {"note": "It is said in the first sentence."}
    for headers, status in (({}, 401), (header_of(toy, "Tim"), 404)):
        assert Client().post(dispute, said, headers=headers).status_code == status, "own team's"


def test_what_is_missed_is_told_to_whom_the_page_shows_it(
    row: Submission, world: World, toy: Toy
) -> None:
    asked = ("submission-missed", "api-missed", row.pk)
    for name in ("", "Tim"):
        page, api = page_and_api(toy, name, *asked)
        assert not page.context["page"].object_list and api.status_code == 404
    close_track(freeze_track(world.track))
    for name in PEOPLE:
        assert [one.status_code for one in page_and_api(toy, name, *asked)] == [200, 200], name


def test_a_record_has_what_people_answered_as_the_page_has_it(row: Submission, toy: Toy) -> None:
    asked = {"verdict": "judged", "limit": "500"}
    told = page_and_api(toy, "Rosa", "submission-explore", "api-predictions", row.pk, **asked)[1]
    client, address = client_of(toy, "Rosa"), reverse("submission-explore", args=[row.pk])
    file: Any = client.get(address, asked | {"format": "jsonl"})
    lines = [json.loads(line) for line in b"".join(file.streaming_content).splitlines()]
    assert lines == told.json()["results"]
    held = 0
    for one in lines:
        page = client.get(address, {"p": one["prediction"]}).context
        for end in page["more"].ends:
            people = one["people"][end.role]
            assert people["text"] == end.people != "" and people["link"] == end.people_link
            assert people["votes"] == end.votes
            begin, stop = people["canonical"]
            assert page["one"].document.text[begin:stop] == end.people
            assert tuple(one[f"{end.role}_canonical"]) == end.canonical_span
            assert one[f"{end.role}_link"] == end.link
        sentences = ["".join(text for _, text in claim) for claim in page["more"].holds]
        assert [claim["claim"] for claim in one["people"]["holds"]] == sentences
        assert one["people"]["offered"] == page["more"].asked
        held += bool(sentences)
    assert 0 < held < len(lines)
    asked["verdict"] = "unjudged"
    told = page_and_api(toy, "Rosa", "submission-explore", "api-predictions", row.pk, **asked)[1]
    assert {str(one["people"]) for one in told.json()["results"]} == {"None"}


def test_what_became_of_a_dispute_stands_in_the_record(row: Submission, toy: Toy) -> None:
    explorer = Explorer(row, public=False)
    one, other = explorer.judged.ids.tolist()[:2]
    places = {pk: Prediction.objects.get(pk=pk).instance for pk in (one, other)}
    check = ExpertCheck.objects.create(
        track=row.track,
        target_id=places[one].target_id,
        kind="dispute",
        order=0.5,
        submission=row,
        interface="relation",
        payload={},
        remark="Not said yet.",
    )

    def told(name: str, verdict: str = "judged") -> dict[int, Any]:
        asked = {"limit": "500", "verdict": verdict}
        answer = page_and_api(toy, name, "submission-explore", "api-predictions", row.pk, **asked)[
            1
        ]
        return {found["prediction"]: found for found in answer.json()["results"]}

    open_ = {"status": "open", "agrees": None, "remark": ""}
    assert told("Rosa")[one]["dispute"] == open_ and told("Rosa")[other]["dispute"] is None
    about = set(row.predictions.filter(instance__target=places[one].target_id))
    assert set(told("Rosa", "disputed")) == {found.pk for found in about}
    ExpertCheck.objects.filter(pk=check.pk).update(status="dropped")
    assert told("Rosa")[one]["dispute"] == open_ | {"status": "dropped", "remark": "Not said yet."}
    close_track(freeze_track(row.track))
    public = told("")
    assert {public[pk]["dispute"] for pk in places} == {None} and told("", "disputed") == {}
