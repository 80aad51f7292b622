"""The pooling study: what a team alone found is lost without it, and the pages and commands that
tell.
"""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.accounts.models import Token
from kbpo.evaluation.models import Slice
from kbpo.evaluation.run import evaluate
from kbpo.evaluation.studies.pooling import study
from kbpo.instances.models import Instance, Target
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Prediction, Submission
from kbpo.web.components.drawing import LEGENDS
from kbpo.web.desk import inquiries, pooling
from tests.evaluation.world import LIVES, WORKS, World

pytestmark = pytest.mark.django_db


def named(world: World, one: Instance) -> tuple[str, str]:
    text = next(row.text for row in world.documents if row.pk == one.document_id)
    return text[one.subject_begin : one.subject_end], text[one.object_begin : one.object_end]


@pytest.fixture
def admin(world: World) -> Client:
    client = Client()
    client.force_login(world.toy.users["Admin"])
    return client


@pytest.fixture
def rosa(world: World) -> Client:
    client = Client()
    client.force_login(world.toy.users["Rosa"])
    return client


@pytest.fixture
def two(world: World) -> tuple[Submission, Submission]:
    """Everything is true. One team predicts every second instance, the other the first half; all is
    judged.
    """
    world.truth = dict.fromkeys(world.truth, True)
    order = {one.pk: at for at, one in enumerate(world.instances)}
    first = world.system("evens", lambda one: order[one.pk] % 2 == 0)
    other = world.system("half", lambda one: order[one.pk] < len(order) // 2, team="Neural")
    for row in (first, other):
        world.answer(world.sample(row))
    return first, other


def test_without_its_team_a_system_keeps_what_the_other_found(
    world: World, two: tuple[Submission, Submission]
) -> None:
    found = study(world.track)
    assert found is not None and found.systems == list(two) and found.n_teams == 2
    n = len(world.instances)
    shared = n // 4 + (n // 2) % 2
    bias = found.bias["official"]
    assert bias.true.precision.tolist() == [1.0, 1.0]
    assert bias.precision.tolist() == pytest.approx([1 - shared / (n // 2), 1 - shared / (n // 2)])
    assert {row["quantity"] for row in found.summary()} == {"precision", "recall", "f1"}


def test_what_people_found_stays_in_the_pool(
    world: World, two: tuple[Submission, Submission]
) -> None:
    before = study(world.track)
    world.answer(
        [one.target for one in world.instances], source="import"
    )  # the same labels: nothing changes
    settle_documents(world.track, [one.pk for one in world.documents])
    for one in world.instances:  # and now from reading in full
        one.target.labels.update(source="import")
    after = study(world.track)
    assert before is not None and after is not None and before.n_human == 0
    assert after.n_human == len(world.instances) and max(after.bias["official"].precision) == 0.0
    assert max(before.bias["official"].precision) > 0


def test_any_document_forgives_where_a_relation_was_found(world: World) -> None:
    """Anna lives in Town0 by every document; here only the first says so, and its team alone found
    that there.
    """
    lives = [
        one
        for one in world.instances
        if one.predicate.name == LIVES and named(world, one) == ("Anna", "Town0")
    ]
    world.truth = dict.fromkeys(world.truth, False) | {lives[0].pk: True}
    for row in (
        world.system("there", lambda one: one == lives[0]),
        world.system("here", lambda one: one == lives[1], team="Neural"),
    ):
        world.answer(world.sample(row))
    found = study(world.track)
    assert found is not None
    assert found.bias["official"].true.precision.tolist() == [1.0, 0.0]
    assert (
        found.bias["anydoc"].true.precision.tolist()
        == found.bias["anydoc"].true.recall.tolist()
        == [1.0, 1.0]
    )


def test_what_people_found_at_other_mentions_stays_in_the_pool(world: World) -> None:
    """They marked it where the pair is named again; the system alone was asked where it said it."""
    first = next(one for one in world.instances if one.predicate.name == WORKS)
    world.truth = dict.fromkeys(world.truth, True)
    world.answer(world.sample(world.system("finds", lambda one: one == first)))
    other = world.system("other", lambda one: one.document_id != first.document_id, team="Neural")
    world.answer(world.sample(other))
    before = study(world.track)
    next_one = next(
        one for one in world.instances if one.predicate.name == WORKS and one.pk > first.pk
    )
    span, place = (
        (first.subject_begin, first.subject_end),
        (next_one.object_begin, next_one.object_end),
    )
    again = Place.pair(first.document_id, span, place)
    same = Place("mention", first.document_id, place)
    pk = targets_at(world.corpus, [again, same])
    mark = {"shown": [f"{WORKS}>"], "holds": [f"{WORKS}>"]}
    name = {"canonical": [first.object_begin, first.object_end], "type": "ORG"}
    record(
        [
            NewLabel(pk[again], mark, "import", "majority", 1, "i"),
            NewLabel(pk[same], name, "import", "majority", 1, "i"),
        ]
    )
    settle_documents(world.track, [first.document_id])
    after = study(world.track)
    assert before is not None and before.bias["official"].precision.tolist() == [1.0, 1.0]
    assert (
        after is not None
        and after.n_human == 1
        and after.bias["official"].precision.tolist() == [0.0, 1.0]
    )


def test_a_marked_fact_counts_for_recall_though_it_was_not_drawn(world: World) -> None:
    """Readers marked three facts. One was drawn; one is predicted and was not drawn; one only a
    withdrawn run predicts.
    """
    works = [one for one in world.instances if one.predicate.name == WORKS]
    of = [next(one for one in works if one.document_id == row.pk) for row in world.documents]
    drawn, undrawn, withdrawn, wrong = of[:4]
    world.truth = dict.fromkeys(world.truth, True) | {wrong.pk: False}
    Target.objects.filter(pk=undrawn.target_id).update(u=0.9)
    Target.objects.filter(
        pk__in=[one.target_id for one in (drawn, withdrawn, wrong, of[4])]
    ).update(u=0.1)
    mine = world.system("mine", lambda one: one in (drawn, undrawn, wrong))
    world.answer(world.sample(mine, 0.5))
    gone = world.system("gone", lambda one: one in (withdrawn, undrawn), team="Neural")
    world.answer(world.sample(gone, 0.5))
    other = world.system("other", lambda one: one == of[4], team="Neural")
    world.answer(world.sample(other, 0.5))
    gone.move("withdrawn")
    world.read_in_full(world.documents[:3], lambda one: one in of[:3])
    settle_documents(world.track, [one.pk for one in world.documents[:3]])
    found = study(world.track)
    assert found is not None and found.systems == [mine, other]
    assert found.n_instances == 3 and found.n_human == 3
    bias = found.bias["official"]
    # Four relations are known to be true: two of them are mine, one the other's, which no people
    # marked.
    assert bias.true.recall.tolist() == pytest.approx([2 / 4, 1 / 4])
    assert bias.recall.tolist() == pytest.approx([0.0, 1 / 4])
    # That the one which was not drawn is true is known only because readers mark what is true.
    assert bias.true.precision.tolist() == pytest.approx([1 / 2, 1.0])
    assert bias.true.f1.tolist() == pytest.approx([1 / 2, 2 / 5])


def linked(world: World, one: Instance, titles: tuple[str, str]) -> None:
    """Readers of a document mark a relation, and link both of its names."""
    spans = ((one.subject_begin, one.subject_end), (one.object_begin, one.object_end))
    places = [Place("mention", one.document_id, span) for span in spans]
    pk = targets_at(world.corpus, places)
    part = f"{one.predicate.name}>"
    record(
        NewLabel(
            pk[place],
            {"canonical": list(place.a), "type": "PER", "link": title},
            "document",
            "majority",
            3,
            "r",
        )
        for place, title in zip(places, titles, strict=True)
    )
    record(
        [
            NewLabel(
                one.target_id, {"shown": [part], "holds": [part]}, "document", "majority", 3, "r"
            )
        ]
    )


def test_what_people_linked_to_the_same_titles_is_one_relation_in_every_document(
    world: World,
) -> None:
    """Nobody predicts it; people find it in three documents, in two of them with titles. Where a
    system links what it predicts so, that is the same relation.
    """
    world.truth = dict.fromkeys(world.truth, True)
    works = [one for one in world.instances if one.predicate.name == WORKS]
    of = [next(one for one in works if one.document_id == row.pk) for row in world.documents]
    for one, team in ((of[4], "Patterns"), (of[5], "Neural")):
        world.answer(
            world.sample(world.system(team, lambda other, one=one: other == one, team=team))
        )
    before = study(world.track)
    titles = ("Anna A.", "Firm Inc.")
    for at in range(3):
        linked(world, of[at], titles if at < 2 else ("", ""))
    settle_documents(world.track, [one.document_id for one in of[:3]])
    after = study(world.track)
    assert before is not None and after is not None and after.n_human == before.n_human + 3
    # Official recall counts relations: those of both systems, the linked one once, the other by
    # itself.
    assert before.bias["official"].true.recall.tolist() == pytest.approx([1 / 2, 1 / 2])
    assert after.bias["official"].true.recall.tolist() == pytest.approx([1 / 4, 1 / 4])
    Prediction.objects.filter(instance=of[4]).update(
        subject_link="anna a.", object_link="FIRM Inc."
    )
    same = study(world.track)
    assert same is not None and same.bias["official"].true.recall.tolist() == pytest.approx(
        [1 / 3, 1 / 3]
    )


def test_the_page_the_file_and_the_command_say_the_same(
    world: World, two: tuple[Submission, Submission], admin: Client
) -> None:
    address = reverse("desk-pooling", args=["world"])
    assert admin.get(reverse("desk-pooling-csv", args=["world"])).status_code == 404
    assert admin.post(address).status_code == 302
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "study", lambda track: pytest.fail("within the request"))
        assert "being worked out" in admin.get(address).content.decode()
    assert inquiries.tick() == 1
    page = admin.get(address)
    text = page.content.decode()
    assert (
        page.status_code == 200
        and text.count('<figure class="card">') == 6
        and "judged instances" in text
    )
    lines = admin.get(reverse("desk-pooling-csv", args=["world"])).content.decode().splitlines()
    out = StringIO()
    call_command("pooling_bias", "world", "--csv", stdout=out)
    assert out.getvalue().splitlines() == lines and len(lines) == 1 + 2 * 3 * 2
    out = StringIO()
    call_command("pooling_bias", "world", stdout=out)
    assert "2 systems of 2 teams" in out.getvalue() and "anydoc" in out.getvalue()


def test_nothing_to_pool_is_said(world: World, admin: Client) -> None:
    address = reverse("desk-pooling", args=["world"])
    admin.post(address)
    inquiries.tick()
    assert "Nothing to pool yet" in admin.get(address).content.decode()
    assert admin.get(reverse("desk-pooling-csv", args=["world"])).status_code == 404
    for track, sentence in (("world", "nothing to pool"), ("none", "no track none")):
        with pytest.raises(CommandError, match=sentence):
            call_command("pooling_bias", track)


@pytest.mark.parametrize("name", ["desk-pooling", "desk-pooling-csv", "desk-slices"])
def test_the_studies_are_the_admins(world: World, rosa: Client, name: str) -> None:
    address = reverse(name, args=["world"])
    assert rosa.get(address).status_code == 403 and Client().get(address).status_code == 302


def test_an_admin_defines_and_removes_a_slice(world: World, admin: Client) -> None:
    address = reverse("desk-slices", args=["world"])
    rule = '{"frequency": ["low"], "weight": "instance"}'
    assert admin.post(address, {"name": "Rare", "rule": rule}).status_code == 302
    assert Slice.objects.get().rule == {"frequency": ["low"], "weight": "instance"}
    again = admin.post(address, {"name": "Rare", "rule": rule})
    assert again.status_code == 422 and "already" in again.content.decode()
    assert "Rare" in admin.get(address).content.decode()
    assert admin.post(address, {"remove": "Rare"}).status_code == 302 and not Slice.objects.exists()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"name": "", "rule": "{}"}, "1 to 80 characters"),
        ({"name": "x", "rule": "{"}, "This is no JSON"),
        ({"name": "x", "rule": "[" * 100_000}, "This is no JSON"),
        ({"name": "x", "rule": '{"weight": "uniform"}'}, "weight must be one of"),
        ({"remove": "x"}, "no such slice"),
    ],
)
def test_a_bad_definition_changes_nothing_and_keeps_what_was_typed(
    world: World, admin: Client, said: dict[str, str], sentence: str
) -> None:
    page = admin.post(reverse("desk-slices", args=["world"]), said)
    assert page.status_code == 422 and sentence in page.content.decode()
    assert (
        not Slice.objects.exists()
        and said.get("rule", "")[:20].replace('"', "&quot;") in page.content.decode()
    )


@pytest.fixture
def watched(world: World) -> Submission:
    row = world.system("whole", lambda one: True)
    asked = world.sample(row)
    for upto in (40, 70):
        world.answer(asked[:upto])
        evaluate(world.track)
    return row


def test_a_submission_that_is_judged_shows_what_may_be_watched(
    watched: Submission, rosa: Client
) -> None:
    text = rosa.get(reverse("submission", args=[watched.pk])).content.decode()
    assert "Precision as judgments arrive" in text and "safe to watch" in text
    lines = rosa.get(reverse("submission-looks", args=[watched.pk])).content.decode().splitlines()
    assert [line.split(",")[1] for line in lines] == ["n", "40", "70"]
    assert Client().get(reverse("submission-looks", args=[watched.pk])).status_code == 404
    address = reverse("api-intervals", args=[watched.pk])
    token = f"Token {Token.issue(watched.team.members.get(), 'test')[1]}"
    told = rosa.get(address, headers={"Authorization": token}).json()["intervals"]
    assert [row["n"] for row in told] == [40, 70]
    assert [f"{row['low80']}" for row in told] == [line.split(",")[4] for line in lines[1:]]
    assert Client().get(address).status_code == 404


def test_an_interval_that_stands_says_on_how_many_of_the_judgments_it_rests(
    watched: Submission, world: World, rosa: Client
) -> None:
    address = reverse("submission", args=[watched.pk])
    words = "The hatched interval rests on"
    assert words not in rosa.get(address).content.decode(), "it rests on all"
    waiting = Target.objects.filter(samples__batch__submission=watched, labels=None)
    world.answer(list(waiting.order_by("u")[:1]))
    evaluate(world.track)
    assert watched.interim_intervals.count() == 2, "one more is not enough for the next"
    text = " ".join(rosa.get(address).content.decode().split())
    assert f"{words} 70 of these 71 judgments. It stands until enough more have come." in text


@pytest.mark.soak
def test_an_interval_that_leaves_nothing_out_is_not_shown(
    watched: Submission, rosa: Client
) -> None:
    address, csv = (reverse(name, args=[watched.pk]) for name in ("submission", "submission-looks"))
    assert "safe to watch" in rosa.get(address).content.decode()
    watched.interim_intervals.update(low80=0.0, high80=1.0, low95=0.0, high95=1.0)
    assert "safe to watch" not in rosa.get(address).content.decode()
    assert len(rosa.get(csv).content.decode().splitlines()) == 1
    assert "0–100" not in rosa.get(reverse("runs")).content.decode()


def test_only_the_interval_that_may_be_watched_is_hatched(
    watched: Submission, rosa: Client
) -> None:
    address = reverse("submission", args=[watched.pk])
    [table] = rosa.get(address).context["tables"]
    assert [row["kind"] for row in table["rows"]] == ["live"], "of the rest nothing is told yet"
    Submission.objects.filter(pk=watched.pk).update(scored_at=clock.now())
    page = rosa.get(address)
    [live] = [
        row for table in page.context["tables"] for row in table["rows"] if row["kind"] == "live"
    ]
    assert live["safe"] and live["name"].startswith("Precision")
    others = [row for table in page.context["tables"] for row in table["rows"] if row is not live]
    assert others and {row["kind"] for row in others} == {"moment"}
    assert {row["kind"] for row in page.context["slices"]["rows"]} <= {"moment", "few"}
    [first, *_] = page.context["tables"]
    known = (live["interval"].low95, live["interval"].high95)
    assert first["axis"].low <= min(known) and max(known) <= first["axis"].high
    text = page.content.decode()
    assert LEGENDS["live"] in text and LEGENDS["moment"] in text
    watched.move("scored", stage_reason="target")
    text = rosa.get(address).content.decode()
    assert "iv-live" not in text and "iv-moment" not in text and LEGENDS["moment"] not in text


def test_slices_are_switched_by_the_address_and_thin_ones_say_what_would_do(
    watched: Submission, rosa: Client
) -> None:
    address = reverse("submission", args=[watched.pk])
    watched.move("scored", stage_reason="target")
    text = rosa.get(address).content.decode()
    assert "Precision by relation" in text and "more for ±10" in text and "works for" in text
    assert "Rare entities" in rosa.get(address, {"by": "frequency"}).content.decode()
    assert "Both names in one sentence" in rosa.get(address, {"by": "sentence"}).content.decode()
    fold = '<details id="slices-fold"'
    assert f"{fold}>" in rosa.get(address).content.decode(), "folded where nobody cut"
    assert f"{fold} open>" in rosa.get(address, {"by": "sentence"}).content.decode()
    assert "Precision by relation" in rosa.get(address, {"by": "nonsense"}).content.decode()


def test_others_see_no_thin_slice_while_the_track_is_open(
    watched: Submission, rosa: Client
) -> None:
    watched.move("scored", stage_reason="target")
    address = reverse("submission", args=[watched.pk])
    own = rosa.get(address, {"by": "sentence"}).context["slices"]["rows"]
    others = Client().get(address, {"by": "sentence"}).context["slices"]["rows"]
    assert any(row["figure"].few for row in own) and not any(row["figure"].few for row in others)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("target", "takes are there"),
        pytest.param("budget", "The money for this submission ended", marks=pytest.mark.soak),
        ("exhausted", "is not reached"),
        pytest.param("all", "Only more people a question", marks=pytest.mark.soak),
    ],
)
def test_why_judging_ended_is_a_sentence(
    watched: Submission, rosa: Client, reason: str, sentence: str
) -> None:
    watched.move("scored", stage_reason=reason)
    assert sentence in rosa.get(reverse("submission", args=[watched.pk])).content.decode()
