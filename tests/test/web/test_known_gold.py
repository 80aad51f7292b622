"""Gold is made of imported judgments before anybody was asked anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Gold, Question
from annotation.questions.ask import (
    imported_answer,
    imported_questions,
    unsaved_questions_about_targets,
)
from kbpo.instances.models import Target
from kbpo.sampling.documents.draw import named_documents
from kbpo.sampling.documents.import_annotations import import_annotations
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
FOUNDED = "per:organizations_founded>"
MENTIONS = {
    "d1": [("Mara Lindt", "PER"), ("Nordwerk", "ORG")],
    "d2": [("Ola Berg", "PER"), ("Nordwerk", "ORG")],
}


@pytest.fixture
def annotated(toy: Toy, tmp_path: Path) -> Callable[..., None]:
    """Imports annotations of two documents: a pair of which something holds, and one that nobody
    marked.
    """
    gold, mentions = tmp_path / "gold.tsv", tmp_path / "mentions.tsv"
    subject, object_ = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    spans = [*subject, "per:organizations_founded", *object_, 0, 36]
    gold.write_text(
        "doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end\n"
        + "\t".join(map(str, ["d1", *spans]))
        + "\n",
        encoding="utf-8",
    )
    lines = ["doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end\tlink"]
    for document, names in MENTIONS.items():
        for number, (name, kind) in enumerate(names):
            begin, end = toy.span(document, name)
            row = [document, begin, end, kind, number, name, begin, end, ""]
            lines.append("\t".join(map(str, row)))
    mentions.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def bring(*, closed: bool) -> None:
        documents = named_documents(toy.track, list(MENTIONS))
        import_annotations(toy.track, gold, mentions, documents, closed=closed)

    return bring


def test_gold_is_made_of_what_was_imported(
    toy: Toy, annotated: Callable[..., None], as_user: As
) -> None:
    admin, address = as_user("Admin"), reverse("desk-gold", args=["toy"])
    assert "no judgments" in admin.get(address).content.decode()
    annotated(closed=True)
    before = list(Target.objects.order_by("pk").values_list("pk", flat=True))
    page = admin.get(address).content.decode()
    judged = re.findall(r"/annotate/gold/toy/(\d+)/", page)
    assert len(judged) == 1 and not Question.objects.exists()
    assert list(Target.objects.order_by("pk").values_list("pk", flat=True)) == before
    questions = unsaved_questions_about_targets(toy.track, [int(judged[0])])
    answers = {one.target_id: imported_answer(one) for one in questions}
    assert len(answers) == 1
    for pk, answer in answers.items():
        assert answer is not None
        make = reverse("gold_know", args=["toy", pk])
        assert "checked" in admin.get(make).content.decode(), "it begins with what is known"
        assert admin.post(make, answer).status_code == 422, "nobody says why"
        assert admin.post(make, answer | {"why": "It was imported."})["Location"] == address
        assert admin.get(make).status_code == 404
    golds = Gold.objects.filter(question__status="gold", source=None)
    assert [gold.expected[0]["value"]["holds"] for gold in golds] == [[FOUNDED]]
    assert imported_questions(toy.track) == []
