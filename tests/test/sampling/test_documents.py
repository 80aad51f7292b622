"""Documents to annotate whole: uniform and in two stages, each draw with its probabilities, again
from its seed.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count

from kbpo.corpus.lookup import name_occurrences
from kbpo.corpus.models import Corpus, Document
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.documents import second_stage
from kbpo.sampling.documents.draw import (
    CannotDraw,
    annotated_documents,
    describe_draw,
    documents_of_uniform_draw,
    order_documents,
    settle_documents,
    waiting_documents,
)
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall
from tests.conftest import SCHEMA, Toy
from tests.drawn_again import drawn_again

pytestmark = pytest.mark.django_db
PEOPLE = ["Ann Lee", "Bob Ray", "Cid Moe", "Dan Fox"]


@pytest.fixture
def track(toy: Toy) -> Track:
    """Forty documents; Ann is in every second, Bob in every fourth, Cid in one in ten, Dan in
    one.
    """
    corpus = Corpus.objects.create(name="News", slug="news", schema=SCHEMA, n_documents=40)
    for at in range(40):
        names = [
            name for name, every in zip(PEOPLE, (2, 4, 10, 40), strict=True) if at % every == 0
        ]
        text = "Nothing was said. " + " ".join(f"{name} spoke." for name in names)
        Document.objects.create(
            corpus=corpus,
            key=f"{at:02}",
            text=text,
            token_begin=[0],
            token_end=[1],
            sentence_begin=[0],
            sentence_end=[len(text)],
        )
    return Track.objects.create(corpus=corpus, name="News", slug="news", status="open")


def annotate(track: Track, documents: list[int], source: str = "document") -> None:
    """Labels of all names in the documents; nothing is settled by that."""
    rows = Document.objects.in_bulk(documents)
    places = {
        Place("mention", pk, (row.text.index(name), row.text.index(name) + len(name)))
        for pk, row in rows.items()
        for name in PEOPLE
        if name in row.text
    }
    targets = make_targets(track.corpus, sorted(places, key=lambda one: (one.document, one.a)))
    record_labels(
        NewLabel(pk, {"canonical": list(place.a), "type": "PER"}, source, "majority", 3, "read")
        for place, pk in targets.items()
    )


def give_up(track: Track, document: int) -> None:
    [target] = make_targets(track.corpus, [Place("document", document)]).values()
    record_labels([NewLabel(target, {}, "document", "nonresponse", 0, "nobody")])


def test_a_uniform_order_is_drawn_again_from_its_seed_and_additions_keep_one_probability(
    track: Track,
) -> None:
    first = order_documents(track, 6, seed=3)
    other = order_documents(track, 4, seed=3)
    drawn = {
        batch: list(batch.samples.order_by("position").values_list("document", flat=True))
        for batch in (first, other)
    }
    assert {batch: documents_of_uniform_draw(batch) for batch in drawn} == drawn
    assert len(set(drawn[first]) | set(drawn[other])) == 10
    assert set(DocumentSample.objects.values_list("probability", "stage", "design")) == {
        (0.25, 1, "uniform")
    }
    assert waiting_documents(track) == drawn[first] + drawn[other]


@pytest.mark.soak
@pytest.mark.statistical
def test_additions_leave_every_document_the_same_chance(track: Track) -> None:
    times = dict.fromkeys(
        Document.objects.filter(corpus=track.corpus).values_list("pk", flat=True), 0
    )
    for seed in range(150):
        order_documents(track, 4, seed=2 * seed)
        order_documents(track, 4, seed=2 * seed + 1)
        for pk in waiting_documents(track):
            times[pk] += 1
        DocumentSample.objects.all().delete()
        DocumentBatch.objects.all().delete()
    assert sum(times.values()) == 150 * 8
    off = 4.5 * (150 * 0.2 * 0.8) ** 0.5  # binomial, 150 draws with chance 8/40
    assert 30 - off < min(times.values()) and max(times.values()) < 30 + off


def test_what_cannot_be_drawn_is_refused_in_a_sentence(track: Track) -> None:
    for size, design, sentence in (
        (41, "uniform", "40 documents, 0 of them drawn already; 41 more"),
        (0, "uniform", "0 more cannot"),
        (3, "two_stage", "between 4 and 40"),
        (41, "two_stage", "between 4 and 40"),
        (5, "best", "no design best"),
    ):
        with pytest.raises(CannotDraw, match=sentence):
            order_documents(track, size, design)
    order_documents(track, 9, seed=1)
    with pytest.raises(CannotDraw, match="fewer than 2 are left"):
        order_documents(track, 10, "two_stage")
    order_documents(track, 20, "two_stage", seed=1)
    for call in (
        lambda: order_documents(track, 1),
        lambda: order_documents(track, 20, "two_stage"),
    ):
        with pytest.raises(CannotDraw, match="drawn in two stages"):
            call()
    left = (
        Document.objects.filter(corpus=track.corpus)
        .exclude(pk__in=waiting_documents(track))
        .first()
    )
    assert left is not None
    with pytest.raises(CannotDraw, match="1 of these were not drawn"):
        settle_documents(track, [left.pk])


def test_the_second_stage_waits_for_the_first_and_prefers_what_it_was_about(track: Track) -> None:
    order_documents(track, 20, "two_stage", seed=5)
    first = waiting_documents(track)
    assert len(first) == 4 and second_stage.tick() == 0
    annotate(track, first)
    settle_documents(track, first[:-1])
    assert second_stage.tick() == 0
    give_up(track, first[-1])  # nobody could annotate it: it holds nobody up
    assert second_stage.tick() == 1 and second_stage.tick() == 0
    batch = DocumentBatch.objects.get(stage=2)
    rows = list(batch.samples.order_by("position"))
    assert [(row.document_id, row.probability) for row in rows] == drawn_again(batch)
    assert batch.size == len(rows) == 16 and not {row.document_id for row in rows} & set(first)
    names = kind_with_recall(track).read_entities(first, batch.drawn_at)
    texts = dict(Document.objects.filter(corpus=track.corpus).values_list("pk", "text"))
    chance = {row.document_id: row.probability for row in rows}
    named = [p for pk, p in chance.items() if any(name in texts[pk] for name in names)]
    others = [p for pk, p in chance.items() if not any(name in texts[pk] for name in names)]
    assert min(named) > max(others) >= 0.5 * 16 / 36
    assert batch.settings["entities"] == len(names) > 0


def test_first_and_second_stage_count_with_their_probabilities_once_the_second_is_complete(
    track: Track,
) -> None:
    order_documents(track, 20, "two_stage", seed=5)
    first = waiting_documents(track)
    annotate(track, first)
    settle_documents(track, first)
    second_stage.tick()
    second = waiting_documents(track)
    settle_documents(track, second[:10])
    assert (
        annotated_documents(track).documents == sorted(first)
        and annotated_documents(track).inclusion is None
    )
    give_up(track, second[10])
    settle_documents(track, second[11:])
    found = annotated_documents(track)
    assert found.documents == sorted(
        [*first, *second[:10], *second[11:]]
    ) and found.first == sorted(first)
    chance = dict(DocumentSample.objects.filter(stage=2).values_list("document", "probability"))
    assert found.inclusion is not None
    expected = [1.0 if pk in first else chance[pk] * 15 / 16 for pk in found.documents]
    assert found.inclusion.tolist() == pytest.approx(expected)


def test_a_document_counts_when_all_before_it_are_done(track: Track) -> None:
    batch = order_documents(track, 5, seed=2)
    drawn = documents_of_uniform_draw(batch)
    settle_documents(track, [drawn[0], drawn[1], drawn[3]])
    assert annotated_documents(track).documents == sorted(drawn[:2])
    give_up(track, drawn[2])
    assert annotated_documents(track).documents == sorted([drawn[0], drawn[1], drawn[3]])
    others = [
        pk
        for pk in Document.objects.filter(corpus=track.corpus).values_list("pk", flat=True)
        if pk not in drawn
    ]
    settle_documents(track, others[:3])  # imported: annotated already
    assert set(others[:3]) < set(annotated_documents(track).documents)


def test_names_are_found_as_whole_words_the_longest_first(track: Track) -> None:
    Document.objects.filter(corpus=track.corpus, key="00").update(
        text="Ann Lee Fox, Ann Lee, Ann\nLee; Bob Rayburn."
    )
    found = [
        row[1:]
        for row in name_occurrences(track.corpus, {"Ann Lee": 0, "Ann Lee Fox": 1, "Bob Ray": 2})
    ]
    assert found[:2] == [(0, 2), (1, 1)]


def test_the_command_imports_what_was_drawn(toy: Any, tmp_path: Any) -> None:
    told = describe_draw(order_documents(toy.track, 4, "two_stage", seed=3))
    assert "Drew 2 documents of" in told and "second stage is drawn when" in told
    gold, mentions = tmp_path / "gold.tsv", tmp_path / "mentions.tsv"
    gold.write_text(
        "doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end\n"
    )
    mentions.write_text(
        "doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end\tlink\n"
    )
    call_command(
        "import_annotations", "toy", str(gold), str(mentions), "--drawn", stdout=StringIO()
    )
    assert DocumentSample.objects.filter(settled_at__isnull=True).count() == 0
    call_command("tick", "documents", stdout=StringIO())
    call_command(
        "import_annotations", "toy", str(gold), str(mentions), "--drawn", stdout=StringIO()
    )
    stages = DocumentSample.objects.values("stage").annotate(n=Count("pk")).order_by("stage")
    assert [row["n"] for row in stages] == [2, 2]
    for arguments, sentence in (
        (("import_annotations", "toy", str(gold), str(mentions), "--drawn"), "was drawn and waits"),
        (("import_annotations", "toy", str(gold), str(mentions), "--all"), None),
    ):
        if sentence is None:
            call_command(*arguments, stdout=StringIO())
        else:
            with pytest.raises(CommandError, match=sentence):
                call_command(*arguments)
