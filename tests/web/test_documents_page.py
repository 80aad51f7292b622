"""The desk's pages of documents: order them, see what counts, and what samples would reach."""

from __future__ import annotations

import csv
from collections import Counter
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from scipy import sparse

from kbpo import clock
from kbpo.accounts.models import Audit
from kbpo.evaluation.run import evaluate
from kbpo.evaluation.studies.reach import Incidence, reach, read_incidence, sharing
from kbpo.sampling.documents.draw import order_documents, settle_documents, waiting_documents
from kbpo.sampling.documents.second_stage import tick
from kbpo.sampling.models import DocumentBatch, DocumentSample
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.frequency import limits
from kbpo.tracks.kbp.traits import predicted_names
from kbpo.tracks.recall import kind_with_recall
from tests.conftest import Toy
from tests.drawn_again import drawn_again
from tests.evaluation.world import LIVES, World
from tests.web.scored import make_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(toy: Toy) -> World:
    return World(toy, n_documents=12)


@pytest.fixture
def admin(world: World) -> Client:
    client = Client()
    client.force_login(world.toy.users["Admin"])
    return client


def page(client: Client, name: str = "desk-reading", said: str = "") -> str:
    answer = client.get(reverse(name, args=["world"]) + said)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_admin_orders_documents_in_two_stages(world: World, admin: Client) -> None:
    address = reverse("desk-reading", args=["world"])
    text = page(admin)
    assert "Draw them" in text
    for trade in (
        "every further document makes it surer",
        "The price: where what was missed does not go with",
    ):
        assert trade in text
    said = {"size": "10", "design": "two_stage", "seed": "7"}
    unsaid = admin.post(address, said)
    assert unsaid.status_code == 409 and "say what the documents are for" in unsaid.content.decode()
    assert admin.post(address, said | {"why": "For recall."}).status_code == 302
    assert Audit.objects.get(what="draw documents").why == "For recall."
    batch = DocumentBatch.objects.get()
    assert (batch.size, batch.seed, batch.user) == (2, 7, world.toy.users["Admin"])
    assert "drawn by itself once the first is annotated" in page(admin)
    first = waiting_documents(world.track)
    world.read_in_full([one for one in world.documents if one.pk in first], lambda one: True)
    settle_documents(world.track, first)
    assert tick() == 1
    text = page(admin)
    assert (
        "Second stage" in text
        and "counts when all of it is annotated" in text
        and "Draw them" not in text
    )
    settle_documents(world.track, waiting_documents(world.track))
    assert "each with its own probability" in page(admin)
    rows = list(
        csv.DictReader(
            StringIO(
                admin.get(reverse("desk-reading", args=["world"]) + "?format=csv")
                .getvalue()
                .decode()
            )
        )
    )
    assert len(rows) == 10 and {row["stage"] for row in rows} == {"1", "2"}
    assert all(0 < float(row["probability"]) <= 1 for row in rows)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"size": "13", "design": "uniform"}, "13 more cannot be drawn"),
        ({"size": "many", "design": "uniform"}, "Size: Enter a whole number"),
        ({"size": "5", "design": "best"}, "Design: Select a valid choice"),
        ({"design": "uniform"}, "Size: This field is required"),
        ({"size": "5", "design": "uniform", "seed": "-1"}, "Seed: "),
        ({"size": "3", "design": "two_stage"}, "between 4 and 12"),
    ],
)
def test_a_bad_order_is_refused_in_a_sentence(
    world: World, admin: Client, said: dict[str, str], sentence: str
) -> None:
    answer = admin.post(reverse("desk-reading", args=["world"]), said | {"why": "For recall."})
    assert answer.status_code == 409 and sentence in answer.content.decode()
    assert not DocumentSample.objects.exists()


@pytest.mark.parametrize("said", ["", "?format=csv"])
def test_the_page_is_the_admins(world: World, said: str) -> None:
    client = Client()
    client.force_login(world.toy.users["Rosa"])
    address = reverse("desk-reading", args=["world"]) + said
    assert client.get(address).status_code == 403 and Client().get(address).status_code == 302


def test_diagnostics_show_what_documents_share_and_what_draws_reach(
    world: World, admin: Client
) -> None:
    world.read_in_full(world.documents, lambda one: True)
    settle_documents(world.track, [one.pk for one in world.documents])
    found = read_incidence(world.track)
    assert found is not None and found.source == "people", "as long as there are no runs"
    # Anna and five towns are in all twelve documents, four people and five firms in one each.
    assert found.by_frequency() == [(1, 12 * 9), (12, 6)]
    uniform, two_stage = sharing(found, 6)
    assert uniform.by_documents == [(1, 6 * 9.0), (6, 6.0)] == two_stage.by_documents
    assert uniform.shared == {"low": 0, "medium": 6, "high": 0} or sum(uniform.shared.values()) == 6
    assert uniform.documents == 6
    row = world.system("all", lambda one: True)
    for seen in reach(row):
        assert seen.strata == 3 and sum(seen.by_stratum.values()) == pytest.approx(1000)
        assert (
            sum(seen.entities.values()) == 1 and seen.several == 1
        )  # the world gives all one subject


def test_all_four_distributions_are_told_though_the_track_shows_one(
    world: World, admin: Client
) -> None:
    row = world.system("all", lambda one: True)
    own = list(row.predictions.select_related("instance__document"))
    names = [
        one.instance.document.text[one.instance.subject_begin : one.instance.subject_end]
        for one in own
    ]
    subjects, predicates = Counter(names), Counter(one.instance.predicate_id for one in own)
    code = {name: at for at, name in enumerate(subjects)}
    for at, (one, name) in enumerate(zip(own, names, strict=True)):
        one.subject_entity, one.object_entity, one.same_subject = (
            code[name],
            1000 + at,
            subjects[name],
        )
        one.same_predicate, one.subject_facts = (
            predicates[one.instance.predicate_id],
            subjects[name],
        )
    Prediction.objects.bulk_update(
        own, ["subject_entity", "object_entity", "same_subject", "same_predicate", "subject_facts"]
    )
    assert world.track.distributions == ["instance"]
    found = {one.kind: one for one in reach(row)}
    assert list(found) == ["instance", "relation", "entity", "entity_relation"]
    lives = predicates[world.predicates[LIVES].pk] / len(own)
    assert found["instance"].by_stratum[LIVES] == pytest.approx(1000 * lives, abs=10)
    assert found["relation"].by_stratum[LIVES] == pytest.approx(1000 / 3, abs=10), (
        "each predicate weighs the same"
    )
    anna = subjects["Anna"] / len(own)
    assert anna > 0.05 and found["entity"].by_stratum != found["instance"].by_stratum


def test_classes_of_frequency_are_those_of_persons_and_organisations_everywhere() -> None:
    """The study of what samples reach took all entities, and so called other ones rare."""
    table = np.zeros((10, 6))
    for entity, documents in enumerate((1, 2, 3, 10, 10, 10)):
        table[:documents, entity] = 1
    people = np.array([True] * 3 + [False] * 3)
    found = Incidence(sparse.csr_array(table), "corpus", people)
    assert found.limits == pytest.approx((2, 2.8)) == limits(found.frequency, people)
    assert found.classes.tolist() == ["low", "low", "high", "high", "high", "high"]
    nobody = np.zeros(6, dtype=bool)
    assert limits(found.frequency, nobody) == pytest.approx(
        (np.percentile([1, 2, 3, 10, 10, 10], 50), 10)
    )


def test_private_and_withdrawn_runs_count_in_what_is_rare(world: World) -> None:
    world.system("few", lambda one: one.predicate.name == LIVES)
    before = sorted(predicted_names(world.track))
    row = world.system("all", lambda one: True)
    shown = sorted(predicted_names(world.track))
    assert len(shown) > len(before)
    Submission.objects.filter(pk=row.pk).update(is_private=True, status="withdrawn")
    assert sorted(predicted_names(world.track)) == shown


def test_the_names_of_many_runs_are_read_at_once(
    world: World, django_assert_num_queries: Any
) -> None:
    for n in range(3):
        world.system(f"run {n}", lambda one: True)
    with django_assert_num_queries(4):
        assert predicted_names(world.track)


def test_without_mentions_of_the_corpus_no_later_run_moves_an_entity_to_another_class(
    world: World,
) -> None:
    """Classes went by all sampled runs: slices of a finished score changed since another came."""

    def classes_of(system: Submission) -> list[str]:
        instances = np.unique(system.predictions.values_list("instance_id", flat=True))
        trait = kind_with_recall(world.track).traits(instances, [system.pk])["frequency"]
        return [str(name) for name in trait.names[trait.code]]

    first = world.system("few", lambda one: one.predicate.name == LIVES)
    before = classes_of(first)
    assert len(set(before)) > 1
    later = world.system("all", lambda one: True)
    assert classes_of(first) == before
    known = predicted_names(world.track)
    Submission.objects.filter(pk=first.pk).update(sampled_at=clock.now())
    assert sorted(predicted_names(world.track)) != sorted(known), (
        "the order of draws, not of numbers"
    )
    assert set(classes_of(later)) <= {"low", "medium", "high"}


def test_without_mentions_of_the_corpus_all_pages_mean_the_same_by_rare(world: World) -> None:
    """The card went by what people had found, draws by one run, slices by all of them."""
    everything = world.system("all", lambda one: True)
    few = world.system("few", lambda one: one.predicate.name == LIVES)
    world.read_in_full(world.documents, lambda one: True)
    settle_documents(world.track, [one.pk for one in world.documents])
    kind, found = kind_with_recall(world.track), read_incidence(world.track)
    assert found is not None and found.source == "runs"
    names = sorted({row[1] for row in kind.entities_named([], clock.now()).rows})
    on_card = dict(zip(names, found.classes.tolist(), strict=True))
    assert len(set(on_card.values())) > 1
    for systems in ([everything.pk, few.pk], [few.pk]):
        rows = Prediction.objects.filter(submission__in=systems).select_related(
            "instance__document"
        )
        subject = {}
        for row in rows:
            span = slice(row.subject_canonical_begin, row.subject_canonical_end)
            subject[row.instance_id] = row.subject_link or row.instance.document.text[span]
        instances = np.array(sorted(subject))
        trait = kind.traits(instances, systems)["frequency"]
        told = trait.names[trait.code].tolist()
        assert told == [on_card[subject[one].lower()] for one in instances.tolist()]


def test_predicates_that_no_draw_reaches_are_told(
    world: World, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = world.system("lives", lambda one: one.predicate.name == LIVES)
    [seen, *_] = reach(row)
    assert seen.by_stratum[LIVES] == pytest.approx(1000)
    others = [number for name, number in seen.by_stratum.items() if name != LIVES]
    assert others and set(others) == {0.0}


@pytest.mark.parametrize(("share", "said"), [("0.05", "0.1"), ("1.5", "1"), ("x", "number")])
def test_a_uniform_share_that_cannot_be_is_refused(
    world: World, admin: Client, share: str, said: str
) -> None:
    form = {"size": 8, "design": "two_stage", "uniform_share": share, "why": "To try."}
    refused = admin.post(reverse("desk-reading", args=["world"]), form)
    assert refused.status_code == 409 and "Uniform share" in refused.content.decode()
    assert said in refused.content.decode() and not DocumentBatch.objects.exists()


def test_the_uniform_share_of_the_second_stage_is_the_tracks(world: World) -> None:
    """It was a constant."""
    batch = order_documents(world.track, 8, "two_stage", seed=1, uniform_share=0.25)
    assert batch.settings["uniform_share"] == 0.25
    drawn = waiting_documents(world.track)
    world.read_in_full([one for one in world.documents if one.pk in drawn], lambda one: True)
    settle_documents(world.track, drawn)
    tick()
    second = DocumentBatch.objects.get(track=world.track, stage=2)
    assert second.settings["uniform_share"] == 0.25
    assert [one for one, _ in drawn_again(second)] == list(
        DocumentSample.objects.filter(batch=second)
        .order_by("position")
        .values_list("document_id", flat=True)
    )


def test_two_stages_meet_the_same_entities_more_often() -> None:
    """Forty of four hundred documents tell of ten people; every other one tells of somebody of its
    own.
    """
    table = np.zeros((400, 370))
    for document in range(400):
        table[document, document % 10 if document < 40 else document - 30] = 1
    people = np.ones(370, dtype=bool)
    uniform, two_stage = sharing(Incidence(sparse.csr_array(table), "corpus", people), 60)
    assert (uniform.design, two_stage.design, uniform.n, two_stage.n) == (
        "uniform",
        "two_stage",
        60,
        60,
    )
    assert uniform.documents < 12, "a sixth or so of six"
    assert two_stage.documents > 1.5 * uniform.documents
    assert sum(two_stage.shared.values()) > sum(uniform.shared.values())


def test_the_board_and_the_submission_tell_what_annotators_miss(
    world: World, admin: Client, toy: Toy
) -> None:
    make_study(world.track, toy.teams["Patterns"])
    row = world.system("most", lambda one: one.pk % 5 != 0)
    world.answer(world.sample(row))
    world.read_in_full(world.documents, lambda one: one.pk % 3 != 0)
    settle_documents(world.track, [one.pk for one in world.documents])
    evaluate(world.track, [row])
    row.refresh_from_db()
    assert row.status == "scored"
    board = page(admin, "board", "?criterion=relation")
    assert "Annotators miss things" in board
    own = admin.get(reverse("submission", args=[row.pk])).content.decode()
    assert "Recall, with what annotators miss" in own
    shown = admin.get(reverse("board-csv", args=["world"]) + "?criterion=relation").content.decode()
    [line] = csv.DictReader(StringIO(shown))
    assert float(line["recall_corrected_value"]) < float(line["recall_value"])
    assert (
        "annotators had marked" in admin.get(reverse("desk-track", args=["world"])).content.decode()
    )
