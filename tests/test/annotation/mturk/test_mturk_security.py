"""What a worker, or somebody who pretends to be one, cannot do."""

from __future__ import annotations

import json

import pytest
from annotation_world import GOOD
from django.test import Client
from mturk_world import Refusal, Turk, rounds

from annotation.models import HIT, Assignment, Payment, PlatformBooks, Question, Response, Worker
from annotation.platforms import proof
from annotation.platforms.mturk.platform import Unreadable, form_fields
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db


def path_of(src: str) -> str:
    return "/" + src.partition("//")[2].partition("/")[2]


def test_a_question_that_is_not_in_the_workers_hit_cannot_be_answered(
    up: Submission, turk: Turk
) -> None:
    first, second = HIT.objects.order_by("pk")[:2]
    assignment, src = turk.accept("W1", first.external_id)
    form = turk.fill_in(src)
    foreign = second.questions.get()
    stuffed = json.loads(form["answer"]) | {
        f"q{foreign.pk}.none": ["1"],
        f"q{foreign.pk}.a": ["0-3"],
    }
    turk.send(form | {"answer": json.dumps(stuffed)})
    rounds()
    assert set(Response.objects.values_list("question", flat=True)) == {first.questions.get().pk}
    assert Question.objects.get(pk=foreign.pk).responses.count() == 0
    assert Assignment.objects.get(external_id=assignment).status == "paid"


def test_the_form_of_one_hit_does_not_answer_another(up: Submission, turk: Turk) -> None:
    first, second = turk.hits()[:2]
    _, src1 = turk.accept("W1", first)
    _, src2 = turk.accept("W1", second)
    page = Client().get(path_of(src1)).content.decode()
    stolen = page.split('name="proof" value="')[1].split('"')[0]
    answer = Client().post(path_of(src2), {"proof": stolen, "answer": "{}"} | GOOD)
    assert answer.status_code == 403
    assert "not opened by a known marketplace" in answer.content.decode()


def test_an_assignment_that_the_platform_does_not_have_is_never_an_answer(
    up: Submission, turk: Turk
) -> None:
    src = turk.preview("W1", turk.hits()[0])
    forged = (
        path_of(src).replace("ASSIGNMENT_ID_NOT_AVAILABLE", "3FORGED")
        + f"&workerId=WEVIL&turkSubmitTo={turk.url}"
    )
    form = turk.fill_in("http://x" + forged)
    assert form["assignmentId"] == "3FORGED"
    with pytest.raises(Refusal, match="no such assignment"):
        turk.send(form)
    rounds()
    assert not Payment.objects.exists() and not Response.objects.exists()
    assert Assignment.objects.get().status == "leased"


def test_a_proof_that_we_did_not_write_proves_nothing(up: Submission, turk: Turk) -> None:
    hit = HIT.objects.order_by("pk").first()
    assert hit is not None
    assignment, _src = turk.accept("W1", hit.external_id)
    answer = json.dumps(
        {
            f"q{hit.questions.get().pk}.{name}": [value] if isinstance(value, str) else value
            for name, value in GOOD.items()
        }
    )
    other = proof.sign_form(hit.pk + 1, assignment, "0" * 32)
    turk.send({"assignmentId": assignment, "answer": answer, "proof": other})
    rounds()
    answered = Assignment.objects.get(external_id=assignment)
    assert answered.status == "failed" and answered.raw == {
        "unproven": {"answer": answer, "proof": other}
    }
    assert not Response.objects.exists()


def test_a_form_that_was_sent_in_cannot_be_sent_again(up: Submission, turk: Turk) -> None:
    first, second = turk.hits()[:2]
    _, src = turk.accept("W1", first)
    form = turk.fill_in(src)
    turk.send(form)
    with pytest.raises(Refusal, match="submitted; nothing can be sent in"):
        turk.send(form)
    other, _ = turk.accept("W1", second)
    turk.send(form | {"assignmentId": other})  # the same answer for another assignment
    rounds()
    assert Assignment.objects.get(external_id=other).status == "failed"
    assert Response.objects.filter(criterion="relation").count() == 1


def test_no_gold_no_claim_and_no_other_answer_is_in_the_page(up: Submission, turk: Turk) -> None:
    hit = turk.hits()[0]
    turk.do("WONEOFAKIND", hit)  # so long that no token of the page has it in it by chance
    rounds()
    _, src = turk.accept("W2", hit)
    page = Client().get(path_of(src)).content.decode()
    for secret in (
        "Patterns",
        "WONEOFAKIND",
        "gold",
        "votes",
        'holds" value="per:schools_attended>" checked',
        Worker.objects.get(assignments__status="paid").handle,
    ):
        assert secret not in page, secret


def test_only_task_pages_may_be_framed_and_only_by_sites_that_we_know(
    up: Submission, turk: Turk, ada: Client
) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    for path in (path_of(src), path_of(turk.preview("W1", turk.hits()[0]))):
        page = Client().get(path)
        assert f"frame-ancestors {turk.url};" in page["Content-Security-Policy"]
        assert "X-Frame-Options" not in page
        assert not page.cookies
    for path in ("/annotate/", "/login/", "/annotate/next/"):
        page = ada.get(path, follow=True)
        assert page["X-Frame-Options"] == "DENY", path
    example = ada.get("/annotate/try/1/")  # which the page of instructions shows in a frame
    assert example["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self';" in example["Content-Security-Policy"]


OTHER_SITES = [
    "https://evil.example",
    "https://www.mturk.com.evil.example",
    "javascript:alert(1)",
    "//evil.example",
    "",
    "https://www.mturk.com@evil.example",
    "https://evil.example#https://www.mturk.com",
    "http://[",
    "data:text/x,y",
]


def test_an_answer_is_sent_to_no_site_but_those_that_we_know(up: Submission, turk: Turk) -> None:
    for site in OTHER_SITES:
        path = path_of(turk.preview("W1", turk.hits()[0])).partition("?")[0]
        page = Client().get(path, {"assignmentId": "3A", "workerId": "W1", "turkSubmitTo": site})
        assert page.status_code == 403
        assert "evil" not in page.content.decode() and "<form" not in page.content.decode()
        assert not Assignment.objects.exists()


def test_an_address_that_we_did_not_sign_is_no_page(up: Submission, turk: Turk) -> None:
    path = path_of(turk.preview("W1", turk.hits()[0])).partition("?")[0]
    number, _, mac = path.split("/")[3].partition("~")
    assert Client().get(f"/annotate/task/{int(number) + 1}~{mac}/").status_code == 404
    assert Client().get(f"/annotate/task/{number}/").status_code == 404


def test_a_whole_document_is_shown_only_with_a_proof_of_its_hit(up: Submission, turk: Turk) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    signed = path_of(src).split("/")[3]
    hit = HIT.objects.get(external_id=turk.hits()[0])
    path = f"/annotate/task/{signed}/document/{hit.questions.get().pk}/"
    assert Client().get(path).status_code == 403
    good = proof.sign_form(hit.pk, "3A", "0" * 32)
    assert Client().get(path, {"proof": good}).status_code == 200
    other = HIT.objects.exclude(pk=hit.pk).first()
    assert other is not None
    assert (
        Client()
        .get(f"/annotate/task/{signed}/document/{other.questions.get().pk}/", {"proof": good})
        .status_code
        == 404
    )


def test_a_notification_is_taken_only_at_its_secret_address(up: Submission, turk: Turk) -> None:
    rounds()
    assert Client().post("/annotate/task/mturk/notify/").status_code == 404
    body = {"Message": json.dumps({"Events": [{"HITId": turk.hits()[0]}]})}
    for content in (json.dumps(body), "no json", "[" * 90_000, "[]", '{"Events": 5}'):
        hook = Client(enforce_csrf_checks=True)
        assert (
            hook.post(
                proof.notification_path("mturk"), content, content_type="text/plain"
            ).status_code
            == 204
        )
    assert PlatformBooks.objects.get().hinted_at is not None
    assert HIT.objects.filter(checked_at=None).count() == 1


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
        "<x><y></x>",
        "",
        '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
        '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>',
        "<x>" + "a" * 2_000_001 + "</x>",
    ],
    ids=["entity", "not closed", "empty", "file", "laughs", "long"],
)
def test_xml_that_is_more_than_plain_elements_is_refused(xml: str) -> None:
    with pytest.raises(Unreadable):
        form_fields(xml)


def test_an_answer_with_odd_characters_comes_back_as_it_was_sent() -> None:
    from rehearsal.mturk.pages import answers_xml

    said = {
        "answer": json.dumps({"q1.a_title": ["<b>&amp; ]]> \x0b “Ö” \U0001f600"]}),
        "proof": "a:b~c",
    }
    assert form_fields(answers_xml(said)) == said
