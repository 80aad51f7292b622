"""Experts are asked about documents that people read whole: blind, pair by pair or all names anew;
no label moves.
"""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client
from documents_world import FACTS, marks_answer, order, partly, place, read_whole, true_marks

from annotation.desk import adjudicate
from annotation.desk.adjudicate import CannotAsk
from annotation.desk.trail import trail_of
from annotation.hits import publish
from annotation.models import HIT, Question, Response
from annotation.quality.error_rate import errors, errors_of_names
from annotation.quality.judged import MARKED, NAMES, judged
from annotation.questions.pilot import span_recall
from kbpo.accounts.models import Audit, User
from kbpo.experts.queue import Outcome, hold
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
NO = {"a": ["other"], "b": ["other"], "none": ["1"]}
FORM = {"a": "other", "b": "other", "none": "1"}


@pytest.fixture(autouse=True)
def quiet(settings: Any) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"


@pytest.fixture
def root(toy: Toy) -> User:
    return toy.users["Admin"]


@pytest.fixture
def other(db: None) -> User:
    return User.objects.create_user("other", password="long enough 1", is_staff=True)


@pytest.fixture
def read(toy: Toy, keep: Any) -> Toy:
    """Four documents that three people read, not all of one mind."""
    keep("four documents", lambda: read_whole(toy, 4, partly))
    assert Question.objects.counts() == {"settled": 8}
    return toy


def test_what_was_marked_is_drawn_with_its_probability_and_asked_alone(
    read: Toy, root: User
) -> None:
    labels = Label.objects.count()
    marked = (
        len([one for facts in FACTS.values() for one in facts]) - 1
    )  # the place of death has one vote of three
    assert adjudicate.queue_random(read.track, 500, root, MARKED) == marked
    assert adjudicate.queue_random(read.track, 500, root, MARKED) == 0, "each is drawn once"
    rows = ExpertCheck.objects.select_related("round")
    assert {(one.round.probability, one.question, one.interface) for one in rows} == {
        (1.0, None, "relation")
    }
    assert (
        publish.tick() == 0 and not HIT.objects.exclude(status__in=["closed", "disposed"]).exists()
    )
    says_no = adjudicate.next_of(read.track, root)
    assert says_no is not None
    assert adjudicate.answer(says_no, NO, root).agrees is False
    while (row := adjudicate.next_of(read.track, root)) is not None:
        holds = Label.objects.get(target=row.target_id, source="document").value["holds"]
        offered = [
            part
            for one in row.payload["predicates"]
            for part in [one["part"], *one.get("also", [])]
        ]
        assert set(holds) <= set(offered), "what was marked can be said"
        said = sides(row) | {"holds": holds}
        assert adjudicate.answer(row, said, root).agrees is True
    found = errors(read.track, MARKED)
    assert (found.against, found.of, found.share) == (1, marked, pytest.approx(1 / marked))
    assert errors(read.track).of == 0, "nothing was drawn of what was asked alone"
    assert Label.objects.count() == labels, "scores stay the crowd's"


def sides(question: ExpertCheck) -> dict[str, list[str]]:
    """What the two names of a pair refer to, as their readers settled it."""
    said = {}
    for side in ("a", "b"):
        data = question.payload[side]
        begin, end = Label.objects.get(target=data["target"]).value["canonical"]
        words = {one["gloss"]: one["span"] for one in data["candidates"]}
        begin, end = words[question.target.document.text[begin:end]]
        said[side] = [f"{begin}-{end}"]
    return said


def test_the_divided_ones_come_first_also_where_too_few_marked_anything(
    read: Toy, root: User
) -> None:
    of = {one.target: one for one in judged(read.track, MARKED)}
    divided = [one for one in of.values() if one.disagreement > 0]
    assert sorted((round(one.disagreement, 3), one.counts) for one in divided) == [
        (0.333, False),
        (0.333, True),
    ]
    assert adjudicate.queue_split_votes(read.track, 10, root, MARKED) == 2
    unmarked = ExpertCheck.objects.get(target=next(one.target for one in divided if not one.counts))
    document = unmarked.target.document
    assert document is not None and document.key == "d4"
    said = NO | {"none": [], "holds": ["per:place_of_death>"]}
    assert adjudicate.answer(unmarked, said, root).agrees is False, (
        "most of the readers marked nothing"
    )
    found = trail_of(read.track, unmarked.pk)
    assert found is not None
    assert [one for one in found.parts if one[0] == "per:place_of_death>"] == [
        ("per:place_of_death>", 1, None, True)
    ]
    assert found.voters == 3


def test_an_expert_marks_all_names_anew_and_both_stand_side_by_side(read: Toy, root: User) -> None:
    labels = Label.objects.count()
    assert adjudicate.queue_random(read.track, 4, root, NAMES) == 4
    d1, d2, d3 = (entry(read, key) for key in ("d1", "d2", "d3"))
    assert adjudicate.answer(d3, raw_of(true_marks(read.documents["d3"])), root).agrees is True, (
        "two of three found Oslo"
    )
    marks = true_marks(read.documents["d1"])
    bergen = next(
        one for one in marks if read.documents["d1"].text[slice(*one["span"])] == "Bergen"
    )
    lindt = next(
        one for one in marks if one["span"] == list(place(read.documents["d1"], "Lindt", 1))
    )
    bergen["type"], lindt["canonical"] = "PER", lindt["span"]
    done = adjudicate.answer(d1, raw_of(marks), root)
    found = trail_of(read.track, done.pk)
    assert found is not None and found.of_names and not found.flagged and found.rows == []
    assert [(one.words, one.now, one.says) for one in found.differing] == [
        ("Mara Lindt", "Person", "Person"),
        ("Lindt", "Person, the same as “Mara Lindt”", "Person"),
        ("Bergen", "State or city", "Person"),
    ], "of two mentions that are not the same, both are contradicted"
    marks = [one for one in true_marks(read.documents["d2"]) if one["type"] != "GPE"]
    missed = {"span": list(place(read.documents["d2"], "son")), "type": "PER"}
    assert adjudicate.answer(d2, raw_of([*marks, missed]), root).agrees is False
    wrong, more = errors_of_names(read.track)
    assert (wrong.against, wrong.of, wrong.drawn) == (3 + 1, 18, 3)
    assert wrong.share == pytest.approx(4 / 18) and wrong.low80 is not None and wrong.low80 < 4 / 18
    assert (more.against, more.of) == (1, 18)
    assert Label.objects.count() == labels and not Label.objects.filter(source="expert").exists()


def entry(toy: Toy, key: str) -> ExpertCheck:
    return ExpertCheck.objects.get(target__document=toy.documents[key], interface="entities")


def raw_of(marks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"mentions": [json.dumps(marks)], "read": ["3"]}


def test_what_people_find_together_is_held_against_what_an_expert_marked_after_a_random_draw(
    read: Toy, root: User
) -> None:
    assert span_recall(read.track)[1].startswith("spans that most of them marked")
    adjudicate.queue_split_votes(read.track, 1, root, NAMES)
    adjudicate.answer(entry(read, "d4"), raw_of(true_marks(read.documents["d4"])), root)
    assert span_recall(read.track)[1].startswith("spans that most"), (
        "divided ones are harder than the rest"
    )
    adjudicate.queue_random(read.track, 4, root, NAMES)
    more = {"span": list(place(read.documents["d3"], "born")), "type": "PER"}
    adjudicate.answer(entry(read, "d3"), raw_of([*true_marks(read.documents["d3"]), more]), root)
    recall, reference = span_recall(read.track)
    assert (
        reference
        == "an expert’s or imported spans, which 1 of 4 documents have; the others are left out"
    )
    one, two, three = (
        (5 + 2 / 3) / 7,
        6 / 7,
        6 / 7,
    )  # of seven names five were found by all, one by two, one by nobody
    assert [row.union for row in recall] == pytest.approx([one, two, three])


def test_a_flag_contradicts_all_names_and_counts_in_no_share(read: Toy, root: User) -> None:
    adjudicate.queue_random(read.track, 4, root, NAMES)
    done = adjudicate.answer(entry(read, "d1"), {"problem": ["text"]}, root)
    found = trail_of(read.track, done.pk)
    assert done.agrees is False and found is not None and found.flagged and found.marks == []
    assert errors_of_names(read.track)[0].of == 0


def test_documents_whose_names_people_were_divided_about_come_first(read: Toy, root: User) -> None:
    assert adjudicate.queue_split_votes(read.track, 1, root, NAMES) == 1
    document = ExpertCheck.objects.get().target.document
    assert document is not None and document.key == "d4", (
        "Oslo is named twice there, and once in the third"
    )
    assert adjudicate.queue_split_votes(read.track, 9, root, NAMES) == 1, (
        "of two documents all were of one mind"
    )


def test_readers_are_asked_nothing_of_the_documents_that_they_read(read: Toy, root: User) -> None:
    for what in (MARKED, NAMES):
        adjudicate.queue_random(read.track, 500, root, what)
    assert not adjudicate.open_to(read.track, read.users["Cy"]).exists()
    assert adjudicate.open_to(read.track, root).count() == 10 + 4
    with pytest.raises(CannotAsk, match="Say what to queue"):
        adjudicate.queue_random(read.track, 5, root, "coins")


def test_what_is_not_settled_is_not_asked(toy: Toy) -> None:
    order(toy.track, 2)
    for what in (MARKED, NAMES):
        assert adjudicate.queue_random(toy.track, 5, toy.users["Admin"], what) == 0
        assert adjudicate.queue_split_votes(toy.track, 5, toy.users["Admin"], what) == 0


def test_an_expert_answers_on_the_readers_page_and_keeps_a_draft(
    read: Toy, root: User, other: User
) -> None:
    adjudicate.queue_split_votes(read.track, 1, root, NAMES)
    row = ExpertCheck.objects.get()
    mine, theirs = Client(), Client()
    mine.force_login(root)
    theirs.force_login(other)
    address = mine.get("/annotate/adjudicate/toy/")["Location"]
    page = mine.get(address).content.decode()
    assert (
        "You see neither what others said nor why this is asked" in page
        and f"{address}draft/" in page
    )
    assert "vote" not in page and "divided" not in page
    marks = true_marks(read.documents["d4"])
    half = {"mentions": json.dumps(marks[:2])}
    assert mine.post(f"{address}draft/", half).json()["lease_seconds"] == 1800
    kept = mine.get(address).content.decode().split('name="mentions" value="')[1].split('"')[0]
    assert json.loads(unescape(kept)) == marks[:2], "the draft is there again"
    assert theirs.get(address)["Location"] == "/annotate/adjudicate/toy/", "somebody has it in hand"
    assert theirs.post(f"{address}draft/", half).status_code == 409
    outside = [marks[0] | {"type": "ANIMAL"}]
    refused = mine.post(address, {"mentions": json.dumps(outside)})
    assert refused.status_code == 422 and "not one of this page" in refused.content.decode()
    assert mine.post(address, {"mentions": "[["}).status_code == 422
    assert mine.post(address, marks_answer(read.documents["d4"])).status_code == 302
    again = mine.post(address, marks_answer(read.documents["d4"]), follow=True)
    assert (
        "the expert" in again.content.decode()
        and theirs.post(f"{address}draft/", half).status_code == 409
    )
    row.refresh_from_db()
    assert (row.status, row.expert, row.draft, row.holder) == ("answered", root, None, None)
    reader = Client()
    reader.force_login(read.users["Cy"])
    assert reader.get(address).status_code == 403


def test_the_first_of_two_experts_counts(read: Toy, root: User, other: User) -> None:
    adjudicate.queue_split_votes(read.track, 1, root, NAMES)
    row = ExpertCheck.objects.get()
    assert hold(row, root) is Outcome.STORED and hold(row, other) is Outcome.LOST
    adjudicate.answer(row, raw_of(true_marks(read.documents["d4"])), other)
    with pytest.raises(CannotAsk, match="answered already"):
        adjudicate.answer(row, raw_of([]) | {"nothing": ["1"]}, root)
    assert ExpertCheck.objects.get().expert == other


def test_a_pair_takes_only_the_relations_of_its_page(read: Toy, root: User) -> None:
    adjudicate.queue_split_votes(read.track, 1, root, MARKED)
    row = ExpertCheck.objects.get()
    client = Client()
    client.force_login(root)
    address = f"/annotate/adjudicate/toy/{row.pk}/"
    refused = client.post(address, FORM | {"none": "", "holds": "org:ate_for_lunch>"})
    assert (
        refused.status_code == 422
        and "not one of the relations on this page" in refused.content.decode()
    )
    assert client.post(address, FORM).status_code == 302
    assert not Response.objects.filter(target=row.target_id).exists()
    assert "says" in client.get(f"/desk/tracks/toy/adjudication/{row.pk}/").content.decode()


def test_the_admins_page_queues_each_kind_and_tells_its_errors(read: Toy, root: User) -> None:
    client, address = Client(), "/desk/tracks/toy/adjudication/"
    client.force_login(root)
    page = client.get(address).content.decode()
    assert (
        "relations marked in documents read whole" in page
        and "documents whose names were marked" in page
    )
    assert (
        client.post(
            address, {"verb": "random", "n": "5", "what": "coins", "why": "To see."}
        ).status_code
        == 422
    )
    assert (
        client.post(
            address, {"verb": "random", "n": "4", "what": "names", "why": "To see."}
        ).status_code
        == 302
    )
    adjudicate.answer(entry(read, "d1"), raw_of(true_marks(read.documents["d1"])), root)
    page = client.get(address).content.decode()
    assert "Names marked in documents" in page and "0 of 6" in page and "every name" in page


def test_a_dispute_may_be_of_a_name_and_then_all_names_are_marked_anew(
    read: Toy, root: User, other: User
) -> None:
    target = Label.objects.filter(
        target__kind="pair", source="document", target__document=read.documents["d1"]
    )[0].target
    row = ExpertCheck.objects.create(
        track=read.track,
        **adjudicate.asked_about(read.track, target.pk),
        kind="dispute",
        order=0.5,
        note="That is no person at all.",
        raised_by=other,
    )
    client, address = Client(), "/desk/tracks/toy/adjudication/"
    client.force_login(root)
    for _ in range(2):
        reply = client.post(address, {"verb": "names", "entry": str(row.pk)})
        page = client.get(address).content.decode()
    assert reply.status_code == 422 and "already" in reply.content.decode()
    assert "every name" in page and page.count("Is a name wrong?") == 1
    made = entry(read, "d1")
    assert (made.kind, made.note, made.raised_by) == ("dispute", row.note, other)
    assert adjudicate.page_of(made).endswith("/explore/?document=d1"), "no prediction is all names"
    assert Audit.objects.get(what="queue for experts").why == "Disputed: That is no person at all."
    assert errors_of_names(read.track)[0].of == 0
    assert adjudicate.answer(made, raw_of(true_marks(read.documents["d1"])), root).agrees is True
    assert errors_of_names(read.track)[0].of == 0, (
        "what was disputed tells nothing of how often the crowd errs"
    )
    Question.objects.filter(interface="entities").update(status="unanswered")
    with pytest.raises(CannotAsk, match="Nobody was asked about all names"):
        adjudicate.dispute_names(row, root)
