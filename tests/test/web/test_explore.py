"""The explorer: what is listed is what is counted, on every page once; nothing is told of what a
team may not see; and no request reads a whole run.
"""

from __future__ import annotations

import csv
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Token
from kbpo.clock import now
from kbpo.corpus.models import Mention
from kbpo.evaluation.latest import Latest
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label, Target
from kbpo.sampling.models import DocumentSample
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from kbpo.web.research.explorer import (
    Explorer,
    read_choice,
)
from tests.conftest import Toy
from tests.test.evaluation.world import LIVES, WORKS, World
from tests.test.web.scored import make_study

pytestmark = pytest.mark.django_db
MOST_QUERIES = 37
"""The team of a study sees what its runs miss, too."""


@pytest.fixture
def world(toy: Toy) -> World:
    """A study, whose team sees every judgment at once."""
    world = World(toy, n_documents=5)
    make_study(world.track, toy.teams["Patterns"])
    return world


@pytest.fixture
def row(world: World) -> Submission:
    """A scored run; four in ten of its relations are judged, one of them by people who were
    divided. Another run on the board predicts a third of the same.
    """
    row = world.system(
        "one", lambda one: True, confidence=lambda one: (None, 0.2, 0.7, 0.95)[one.pk % 4]
    )
    other = world.system("other", lambda one: one.pk % 3 == 0, team="Neural")
    for each in (row, other):
        each.scored_at = each.sampled_at
        each.move("scored")
    world.answer(world.sample(row, 0.4))
    divided = Label.objects.filter(value__has_key="shown").first()
    assert divided is not None
    divided.value["votes"] = dict.fromkeys(divided.value["shown"], 2)
    divided.save()
    return row


def share(track: Track) -> None:
    """Makes a study a shared track."""
    track.is_study, track.owner = False, None
    track.save()


def header_of(toy: Toy, name: str) -> dict[str, str]:
    """What a program of theirs sends along."""
    return {"Authorization": f"Token {Token.create_with_secret(toy.users[name], 'test')[1]}"}


def client_of(toy: Toy, name: str) -> Client:
    client = Client()
    client.force_login(toy.users[name])
    return client


def listed(explorer: Explorer, size: int = 7, **said: str) -> list[int]:
    """All that a choice lists, page by page."""
    choice = read_choice(said, explorer.submission)
    found, after = list[int](), "0"
    while True:
        page, _ = explorer.page(read_choice(said | {"after": after}, explorer.submission), size)
        found += page.ids
        if not page.after:
            break
        after = str(page.after)
    assert len(set(found)) == len(found), "nothing twice"
    page, counts = explorer.page(choice, size)
    assert page.n in (None, len(found)), (said, len(found), page.n)
    chosen = counts["verdict"].get(choice["verdict"], 0)
    assert choice["who"] or chosen in (None, len(found)), (said, len(found), chosen)
    assert [pk for pks in explorer.iterate_ids(choice) for pk in pks] == found
    return found


def test_new_labels_are_seen_in_what_is_kept(row: Submission, world: World) -> None:
    kept = Explorer(row, public=False).judged
    asked = set(row.batches.values_list("samples__target", flat=True))
    targets = Target.objects.filter(instances__predictions__submission=row).exclude(pk__in=asked)
    world.answer(list(targets.order_by("pk")[:2]))
    assert Explorer(row, public=False).judged.ids.size > kept.ids.size


def test_every_count_is_what_its_filter_lists(row: Submission) -> None:
    explorer = Explorer(row, public=False)
    everything = set(row.predictions.values_list("pk", flat=True))
    assert set(listed(explorer)) == everything
    for said in (
        {},
        {"relation": LIVES},
        {"verdict": "judged"},
        {"q": "Anna"},
        {"entity": "anna"},
        {"entity": "Town2", "document": "blog-2"},
        {"verdict": "unjudged"},
        {"who": "alone"},
    ):
        _, counts = explorer.page(read_choice(said, row))
        for name, values in counts.items():
            facets = {facet.name: facet for facet in explorer.kind.facets}
            words = facets[name].called(explorer.kind.corpus) if name in facets else {}
            for value, n in values.items():
                told = words[value][0] if value in words else str(value)
                if name in said or not value or n is None:
                    continue
                found = listed(explorer, **(said | {name: told}))
                assert len(found) == n, (said, name, told)
    right, wrong = (set(listed(explorer, verdict=one)) for one in ("right", "wrong"))
    unjudged = set(listed(explorer, verdict="unjudged"))
    assert right and wrong and unjudged and right | wrong | unjudged == everything
    assert len(listed(explorer, votes="split")) >= 1
    alone = set(listed(explorer, who="alone"))
    others = row.predictions.filter(instance__predictions__submission__name="other")
    assert alone == (right | wrong) - set(others.values_list("pk", flat=True))


def test_a_run_is_listed_by_the_name_of_an_entity(
    row: Submission,
    toy: Toy,
    django_assert_max_num_queries: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of subject or object, or of what the system says that either refers to;
    in capitals or not.
    """
    explorer = Explorer(row, public=False)
    called: dict[int, set[str]] = {}
    for one in row.predictions.select_related("instance__document"):
        place, text = one.instance, one.instance.document.gloss
        called[one.pk] = {
            text(place.subject_begin, place.subject_end),
            text(place.object_begin, place.object_end),
        }
    alias = min(pk for pk, names in called.items() if "Carl3x2" in names)
    anna = Prediction.objects.filter(pk=min(pk for pk, names in called.items() if "Anna" in names))
    document = row.predictions.get(pk=alias).instance.document
    at = document.text.index("Anna")
    row.predictions.filter(pk=alias).update(
        subject_canonical_begin=at, subject_canonical_end=at + len("Anna")
    )
    called[alias].add("Anna")
    for name in ("Anna", "Carl3x2", "Town1", "Firm0y4"):
        expected = {pk for pk, names in called.items() if name in names}
        for asked in (name, f" {name.upper()} "):
            assert set(listed(explorer, entity=asked)) == expected != set(), asked
    inside = {
        pk
        for pk in row.predictions.filter(instance__document=document).values_list("pk", flat=True)
        if "Anna" in called[pk]
    }
    assert set(listed(explorer, entity="Anna", document=document.key)) == inside >= {alias}
    assert set(listed(explorer, entity="Anna", q="Carl3x2")) == inside, "both hold"
    for part in ("Ann", "works for", "Anna works", "nobody", "%", '"Anna', "-", "&"):
        assert listed(explorer, entity=part) == [], part
    second = document.text.index(" ", at + len("Anna ")) - at
    row.predictions.filter(pk=alias).update(subject_canonical_end=at + second)
    whole = document.text[at : at + second].upper()
    assert listed(explorer, entity=whole) == [alias] == listed(explorer, entity=whole.split()[1])
    assert alias in listed(explorer, entity="Anna")
    assert explorer.all_found
    assert not explorer.kind.find_predictions(row.pk, 2, entity="Anna")[1], (
        "there are five texts with her"
    )
    assert explorer.kind.find_predictions(row.pk, 2, entity="Anna", key=document.key)[1]
    client, address = client_of(toy, "Rosa"), reverse("submission-explore", args=[row.pk])
    with monkeypatch.context() as patched:
        patched.setattr("kbpo.web.research.explorer.MOST_OF_ENTITY", 2)
        few = client.get(address, {"entity": "Anna"}).content.decode()
        assert "the first 2:" in few
    client.get(address)
    with django_assert_max_num_queries(MOST_QUERIES):
        page = client.get(address, {"entity": "Anna"})
    assert page.context["n"] == sum("Anna" in names for names in called.values())
    said = {"entity": "Anna", "q": "works", "relation": WORKS, "document": document.key}
    form = client.get(address, said).content.decode()
    for name, value in said.items():
        kept = rf'<input (id="{name}" )?(type="hidden" )?name="{name}"[^>]* value="{value}"'
        assert re.search(kept, form), f"the form keeps {name}"
    assert (
        f"Only predictions in <b>{document.key}</b>" in form
        and "predictions about <b>Anna</b>:" in form
    )
    opened = client.get(address, {"p": anna[0].pk}).content.decode()
    assert 'href="?entity=Anna"' in opened, "a name leads to all that is said about it"
    file: Any = client.get(
        reverse("submission-explore", args=[row.pk]), {"format": "csv", "entity": "Town1"}
    )
    rows = csv.DictReader(b"".join(file.streaming_content).decode().splitlines())
    api = client.get(
        reverse("api-predictions", args=[row.pk]),
        {"entity": "Town1"},
        headers=header_of(toy, "Rosa"),
    ).json()
    wanted = listed(explorer, entity="Town1")
    assert [int(one["prediction"]) for one in rows] == wanted
    assert [one["prediction"] for one in api["results"]] == wanted and api["count"] == len(wanted)


def test_the_worst_come_first_of_what_is_judged(row: Submission, toy: Toy) -> None:
    explorer = Explorer(row, public=False)
    judged = explorer.judged
    goodness = dict(zip(judged.ids.tolist(), judged.value.tolist(), strict=True))
    found = listed(explorer, sort="worst", verdict="judged")
    values = [goodness[pk] for pk in found if goodness[pk] in (0, 1)]
    assert set(found) == set(goodness) and values == sorted(values) and {0, 1} == set(values)
    choice = read_choice({"sort": "worst"}, row)
    assert choice["verdict"] == "judged" and "sort" not in choice.query_string(verdict="")
    assert "sort=worst" in choice.query_string(verdict="wrong")


def test_the_page_shows_a_claim_beside_what_people_said(
    row: Submission, toy: Toy, world: World, django_assert_max_num_queries: Any
) -> None:
    client, address = client_of(toy, "Rosa"), reverse("submission-explore", args=[row.pk])
    client.get(address)
    with django_assert_max_num_queries(MOST_QUERIES):
        page = client.get(address)
    assert page.status_code == 200 and len(page.context["rows"]) == 50
    wrong = client.get(address, {"verdict": "wrong", "relation": WORKS})
    one = wrong.context["one"]
    assert one.right is False and one.relation is False and one.predicate == WORKS
    html = wrong.content.decode()
    begin, end = one.row.subject
    assert f"{begin}–{end}" in html and one.document.key in html and "0 of 3" not in one.votes
    link = wrong.context["permalink"]
    again = client.get(link)
    assert again.context["one"].prediction.pk == one.prediction.pk
    assert again.context["rows"][0].prediction.pk == one.prediction.pk
    following = client.get(address + wrong.context["following"])
    assert following.context["one"].prediction.pk == wrong.context["rows"][1].prediction.pk
    assert client.get(address, {"relation": WORKS}).context["n"] is None, "nobody counted them"
    assert client.get(address, {"verdict": "perhaps"}).status_code == 400
    assert client.get(address, {"p": "9" * 15}).status_code == 404
    assert client.get(address, {"after": "²"}).status_code == 400
    assert client.get(address, {"q": '(a "b -', "document": "x"}).status_code == 200
    assert not client_of(toy, "Tim").get(address).context["rows"], "another team's study"
    assert client.get(reverse("explore"))["Location"] == address
    later = world.system("later", lambda one: True)
    Submission.objects.filter(pk=row.pk).update(scored_at=now())
    later.move("judging", scored_at=None)
    under_way = reverse("submission-explore", args=[later.pk])
    assert client.get(reverse("explore"))["Location"] == under_way, "what is being judged"
    row.move("scored", scored_at=now())
    assert client.get(reverse("explore"))["Location"] == address, "until another is scored"


def test_one_walks_through_a_page_and_back_one_prediction_at_a_time(
    row: Submission, toy: Toy
) -> None:
    client, address = client_of(toy, "Rosa"), reverse("submission-explore", args=[row.pk])
    for said in ("", "?verdict=judged", "?sort=sure", "?sort=worst"):
        page, seen = client.get(address + said), []
        for _ in range(3):
            seen.append(page.context["one"].prediction.pk)
            page = client.get(address + page.context["following"])
        for pk in reversed(seen):
            page = client.get(address + page.context["earlier"])
            assert page.context["one"].prediction.pk == pk, said
        assert not page.context["earlier"]


def test_files_and_the_api_hold_what_the_page_lists(row: Submission, toy: Toy) -> None:
    client, said = client_of(toy, "Rosa"), {"verdict": "judged", "relation": LIVES}
    wanted = listed(Explorer(row, public=False), **said)
    assert len(wanted) > 1
    files = {}
    for form in ("csv", "jsonl"):
        answer: Any = client.get(
            reverse("submission-explore", args=[row.pk]), said | {"format": form}
        )
        files[form] = b"".join(answer.streaming_content).decode().splitlines()
    assert [int(one["prediction"]) for one in csv.DictReader(files["csv"])] == wanted
    assert [json.loads(line)["prediction"] for line in files["jsonl"]] == wanted
    head = files["csv"][0]
    nothing: Any = client.get(
        reverse("submission-explore", args=[row.pk]), {"format": "csv", "q": "xyzzy"}
    )
    assert b"".join(nothing.streaming_content).decode().splitlines() == [head]
    nothing = client.get(
        reverse("submission-explore", args=[row.pk]), {"format": "jsonl", "q": "xyzzy"}
    )
    assert b"".join(nothing.streaming_content) == b""
    headers = header_of(toy, "Rosa")
    address, found = reverse("api-predictions", args=[row.pk]), []
    answer = client.get(address, said | {"limit": 1}, headers=headers).json()
    assert answer["count"] == len(wanted)
    while True:
        found += [one["prediction"] for one in answer["results"]]
        if not answer["next"]:
            break
        answer = client.get(answer["next"], headers=headers).json()
    assert found == wanted
    assert (
        json.loads(files["jsonl"][0])
        == client.get(address, said, headers=headers).json()["results"][0]
    )
    assert client.get(address, {"verdict": "no"}, headers=headers).status_code == 400
    assert client.get(address, {"limit": "0"}, headers=headers).status_code == 400
    for name in ("verdict", "votes", "who", "sort", "after"):
        assert client.get(address, {name: ""}, headers=headers).status_code == 400, name
    for after in ("0", str(2**31)):
        assert client.get(address, {"after": after}, headers=headers).status_code == 400
    unknown = client.get(address, {"predicate": "x"}, headers=headers)
    assert unknown.status_code == 400 and "relation" in unknown.json()["fields"]["predicate"][0]
    page = reverse("submission-explore", args=[row.pk])
    assert client.get(page, {"votes": "", "after": "", "q": ""}).status_code == 200, "of a form"


def test_the_api_tells_all_scores_by_slice_to_the_runs_own_team(row: Submission, toy: Toy) -> None:
    address = reverse("api-slices", args=[row.pk])
    score_track(row.track)
    rows = Client().get(address, headers=header_of(toy, "Rosa")).json()["slices"]
    assert len(rows) == len(Latest.read_latest(row).slices) > 3
    [told] = [
        one
        for one in rows
        if one["slice"].endswith(f":{LIVES}")
        and (one["quantity"], one["criterion"]) == ("precision", row.track.criterion)
    ]
    assert told["value"] is not None and told["low80"] <= told["value"] <= told["high80"]
    assert told["n_predictions"] == row.predictions.filter(predicate__name=LIVES).count()
    public = Client().get(address, headers=header_of(toy, "Tim")).json()["slices"]
    assert public == [], "each has few judgments, and the track is open"


def test_what_readers_found_is_told_once_the_track_closes(
    world: World, row: Submission, toy: Toy
) -> None:
    """A small run misses what the other predicts, and what nobody does; while the track is open
    that would be an answer key.
    """
    share(world.track)
    read = world.documents[:2]
    row.predictions.filter(instance__document__in=[one.pk for one in read]).exclude(
        instance__predicate__name=WORKS
    ).delete()
    world.read_in_full(read, lambda one: True)
    DocumentSample.objects.bulk_create(
        DocumentSample(
            track=world.track, document=one, stage=1, probability=0.4, position=at, settled_at=now()
        )
        for at, one in enumerate(read)
    )
    address, api = (reverse(name, args=[row.pk]) for name in ("submission-missed", "api-missed"))
    client = client_of(toy, "Rosa")
    page = client.get(address)
    assert page.status_code == 200 and not page.context["page"].object_list
    told = page.content.decode()
    assert "are shown once the track is closed" in told and "found by nobody" not in told, "not 0"
    file = client.get(reverse("submission-missed", args=[row.pk]) + "?format=jsonl")
    assert file.status_code == 404 and "once the track is closed" in file.content.decode()
    early = client.get(api, headers=header_of(toy, "Rosa"))
    assert early.status_code == 404 and "once the track is closed" in early.json()["detail"]
    text = reverse("track-document", args=["world", read[0].key])
    assert not client.get(text).context["found"]
    close_track(freeze_track(world.track))
    true = {one.pk for one in world.instances if world.truth[one.pk]}
    inside = [one for one in world.instances if one.document_id in {doc.pk for doc in read}]
    wanted: dict[str, set[str]] = {"missed": set(), "nobody": set()}
    for one in inside:
        predicted = set(one.predictions.values_list("submission__name", flat=True))
        if one.pk in true and "one" not in predicted:
            wanted["missed" if predicted else "nobody"].add(
                f"{one.document.key} {one.subject_begin} {one.predicate.name} {one.object_begin}"
            )
    assert all(wanted.values())
    for who, expected in wanted.items():
        file: Any = client.get(
            reverse("submission-missed", args=[row.pk]), {"format": "jsonl", "who": who}
        )
        rows = [json.loads(line) for line in b"".join(file.streaming_content).splitlines()]
        told = {
            f"{one['document']} {one['subject'][0]} {one['predicate']} {one['object'][0]}"
            for one in rows
        }
        assert told == expected, who
        listed = client.get(api, {"who": who}, headers=header_of(toy, "Rosa")).json()
        assert listed["results"] == rows and listed["count"] == len(rows)
        assert client.get(address, {"who": who}).context["page"].paginator.count == len(expected)
    chosen_of_what_is_missed(row, world, client, header_of(toy, "Rosa"))
    shown = Client().get(text)
    assert {systems[0].name for _, systems in shown.context["found"] if systems} == {"one", "other"}
    assert {run.name for _, runs in shown.context["claims"] for run in runs} == {"one", "other"}


def chosen_of_what_is_missed(
    row: Submission, world: World, client: Client, headers: dict[str, str]
) -> None:
    """Page, file and API list alike what is chosen by relation, name, document and words."""
    address, api = (reverse(name, args=[row.pk]) for name in ("submission-missed", "api-missed"))
    whole = Client().get(api, {"limit": 1000}, headers=headers).json()["results"]
    key, name = whole[-1]["document"], whole[-1]["claim"].split()[0]
    document = next(one for one in world.documents if one.key == key)

    def texts(one: dict[str, Any]) -> set[str]:
        text = next(each for each in world.documents if each.key == one["document"]).text
        return {text[begin:end] for begin, end in (one["subject"], one["object"])}

    for said, expected in (
        ({"relation": LIVES}, [one for one in whole if one["predicate"] == LIVES]),
        ({"entity": name.upper()}, [one for one in whole if name in texts(one)]),
        ({"document": key}, [one for one in whole if one["document"] == key]),
        ({"q": document.text.split()[6]}, [one for one in whole if one["document"] == key]),
        (
            {"relation": LIVES, "document": key},
            [one for one in whole if (one["predicate"], one["document"]) == (LIVES, key)],
        ),
        ({"sort": "most"}, sorted(whole, key=lambda one: -len(one["found_by"]))),
    ):
        told = client.get(api, said | {"limit": 1000}, headers=headers).json()
        assert told["results"] == expected != [], said
        file: Any = client.get(address, said | {"format": "jsonl"})
        lines = [json.loads(line) for line in b"".join(file.streaming_content).splitlines()]
        assert lines == expected, said
        page = client.get(address, said)
        assert page.context["page"].paginator.count == len(expected), said
        kept = {filter: value for filter, value in said.items() if filter != "sort"}
        for option in page.context["options"]:
            assert urlencode(kept) in option["url"], "it is kept where one looks at another list"
    for said in ({"who": "foo"}, {"sort": "bar"}, {"part": "relation"}, {"relation": "no"}):
        [name], [value] = said, said.values()
        for form in ("csv", "jsonl"):
            refused = client.get(address, said | {"format": form})
            assert refused.status_code == 400, said
            assert (name if name == "part" else value) in refused.content.decode(), said
        page = client.get(address, said)
        assert page.status_code == 400 and "All is listed." in page.content.decode(), said
        assert page.context["page"].paginator.count == len(whole)
    assert client.get(address, {"who": "", "sort": "", "part": ""}).status_code == 200, "of a form"
    page = client.get(address, {"document": key})
    [shown] = page.context["filters"]
    counts = {one["text"]: one["n"] for one in shown["options"]}
    assert sum(counts.values()) == sum(one["document"] == key for one in whole)
    assert client.get(address, {"relation": "none"}).status_code == 400
    for wrong in ({"relation": "none"}, {"verdict": "right"}, {"who": "me"}, {"sort": "sure"}):
        assert client.get(api, wrong, headers=headers).status_code == 400, wrong


def test_an_open_track_does_not_tell_which_names_are_one(world: World, toy: Toy) -> None:
    share(world.track)
    document = world.documents[0]
    Mention.objects.filter(document=document).delete()
    for begin, end in ((0, 2), (3, 5)):
        Mention.objects.create(
            document=document, begin=begin, end=end, type="PER", canonical_begin=0, canonical_end=2
        )
    address = reverse("track-document", args=["world", document.key])

    def numbers(client: Client) -> list[int | None]:
        return [span.number for span in client.get(address).context["spans"]]

    assert numbers(Client()) == numbers(client_of(toy, "Rosa")) == [1, 2]
    assert numbers(client_of(toy, "Admin")) == [1, 1]
    Track.objects.filter(slug="world").update(status="closed")
    assert numbers(Client()) == [1, 1]


def test_an_open_track_shows_a_document_and_only_ones_own_claims(
    row: Submission, world: World, toy: Toy
) -> None:
    share(world.track)
    address = reverse("track-document", args=["world", world.documents[0].key])
    assert not Client().get(address).context["claims"]
    Mention.objects.filter(document=world.documents[0]).delete()
    assert not Client().get(address).context["spans"], "nor of what others speak"
    shown = client_of(toy, "Rosa").get(address)
    mine = shown.context["claims"]
    spoken_of = {(span.start, span.end) for span in shown.context["spans"]}
    assert spoken_of == {place for one, _ in mine for place in (one.row.subject, one.row.object)}
    assert b"Underlined: mentions in the relations" in shown.content
    assert {run.pk for _, runs in mine for run in runs} == {row.pk}
    assert all(one.right is None for one, _ in mine), "judged in the test part"
    found = Client().get(reverse("track-documents", args=["world"]), {"q": "Carl3x2 Town2"})
    assert [one.key for one in found.context["rows"]] == [world.documents[3].key]
    world.corpus.may_be_downloaded = False
    world.corpus.save()
    assert Client().get(address).status_code == 404
