"""Answers can be read in words and in their text: by who gave them, by admins before they decide,
and in files.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from annotation_world import GOOD, answer_all
from django.test import Client

from annotation.labels import settle
from annotation.labels.export import EXPORTS
from annotation.models import Assignment, Gold, Worker
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
WRONG = {"a": "0-3", "b": "other", "holds": ["org:founded_by<"]}
STUDIED = "Ann 2 Lee studied at Elm College 2"
FOUNDED = "Elm College 2 was founded by Ann 2 Lee"


@pytest.fixture
def desk(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


@pytest.fixture
def judged(two_published: Submission, clients: list[Client]) -> Assignment:
    """Two questions with three answers each; those of the last worker differ from the others'."""
    for client, said in zip(clients, (GOOD, GOOD, WRONG), strict=True):
        answer_all(client, said)
    settle.tick()
    rows = Assignment.objects.filter(
        worker__user__username="cy", hit__questions__target__document__key="doc-2"
    )
    return rows.get()


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return str(response.content.decode())


def test_an_admin_reads_an_answer_beside_the_others_and_in_the_text(
    judged: Assignment, desk: Client
) -> None:
    for address in (f"/desk/answers/{judged.pk}/", f"/desk/answers/{judged.pk}/?refuse"):
        told = page(desk, address)
        assert FOUNDED in told and STUDIED in told, "what was said, and what most others said"
        assert "0 of 2" in told and "2 of 2" in told
        assert '<mark class="m-subject"' in told and ">Right</th>" not in told
    Gold.objects.create(
        question=judged.hit.questions.get(),
        source=judged.hit.questions.get(),
        made_by=User.objects.get(username="root"),
        why="Sure.",
        expected=[
            {"target": one.target_id, "criterion": one.criterion, "value": one.value}
            for one in judged.hit.assignments.exclude(pk=judged.pk)[0].responses.all()
        ],
    )
    assert ">Right</th>" in page(desk, f"/desk/answers/{judged.pk}/")
    assert desk.get("/desk/answers/999999/").status_code == 404


def test_who_gave_an_answer_reads_it_and_nothing_of_the_others(
    judged: Assignment, clients: list[Client]
) -> None:
    address = f"/annotate/answers/{judged.pk}/"
    assert f'href="{address}"' in page(clients[2], "/annotate/history/")
    told = page(clients[2], address)
    assert FOUNDED in told and STUDIED not in told and " of 2" not in told
    assert "B, “Elm College 2”, is none of the names that were offered" in told


def test_answers_labels_and_agreement_are_files_by_page_and_command(
    judged: Assignment, desk: Client, track: Track
) -> None:
    judged.responses.filter(criterion="relation").update(counts=False, excluded_reason="=Left out")
    for what, (header, rows) in EXPORTS.items():
        as_csv = desk.get(f"/desk/tracks/{track.slug}/{what}.csv")
        as_json = desk.get(f"/desk/tracks/{track.slug}/{what}.jsonl")
        assert as_csv.streaming and as_json.streaming
        assert f"{what}-{track.slug}.csv" in as_csv["Content-Disposition"]
        table = list(csv.DictReader(io.StringIO(body_of(as_csv))))
        objects = [json.loads(line) for line in body_of(as_json).splitlines()]
        assert len(table) == len(objects) == len(list(rows(track))) > 0
        assert list(table[0]) == list(objects[0]) == header
    assert desk.get(f"/desk/tracks/{track.slug}/secrets.csv").status_code == 404
    assert Client().get(f"/desk/tracks/{track.slug}/answers.csv").status_code in (302, 404)


def test_exported_answers_say_what_who_and_whether_they_count(
    judged: Assignment, track: Track
) -> None:
    judged.responses.filter(criterion="relation").update(counts=False, excluded_reason="=Left out")
    header, rows = EXPORTS["answers"]
    answers = [dict(zip(header, row, strict=True)) for row in rows(track)]
    assert len(answers) == 3 * 2 * 3, "three people, two questions: a relation and two links"
    mine = [one for one in answers if one["answer"] == judged.pk and one["criterion"] == "relation"]
    assert [one["words"] for one in mine] == [FOUNDED]
    assert (mine[0]["counts"], mine[0]["why_not"]) == (False, "=Left out")
    assert mine[0]["document"] == "doc-2" and mine[0]["worker"] == judged.worker.handle
    assert {one["worker"] for one in answers} == set(
        Worker.objects.values_list("handle", flat=True)
    )
    assert not any(f'"{name}"' in json.dumps(answers, default=str) for name in ("ada", "bo", "cy"))
    [flagged] = judged.hit.questions.all()
    response = judged.responses.filter(criterion="relation").get()
    response.criterion, response.value = "flag", {"problem": "text", "remark": "I am Cy Lee"}
    response.save()
    assert "Cy Lee" not in json.dumps([row[:] for row in rows(track)], default=str)
    assert flagged.pk in {one["question"] for one in answers}


def test_labels_are_exported_with_where_they_came_from(judged: Assignment, track: Track) -> None:
    header, rows = EXPORTS["labels"]
    labels = [dict(zip(header, row, strict=True)) for row in rows(track)]
    [one] = [one for one in labels if one["kind"] == "pair" and one["document"] == "doc-2"]
    assert one["value"]["holds"] == ["per:schools_attended>"]
    assert (one["source"], one["n"]) == ("crowd", 3) and one["origin"].startswith("question:")


def body_of(response: Any) -> str:
    return b"".join(response.streaming_content).decode()
