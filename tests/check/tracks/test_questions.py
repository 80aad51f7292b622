"""What is asked about a pair: the same to everybody, nothing about who claims what, nothing
twice.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from annotation.interfaces.registry import interface_by_name
from annotation.models import Question, Response
from annotation.questions import ask
from formats.schema import load_schema
from kbpo.corpus.models import Mention
from kbpo.evaluation.due import finished_submissions, unjudged_targets
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.kbp.pairs import Claim, Pair
from kbpo.tracks.kbp.questions import shown_and_settled_predicates
from kbpo.tracks.registry import kind_of

pytestmark = pytest.mark.django_db
Span = tuple[int, int]


class World:
    """Predicts relations of the toy corpus without files."""

    def __init__(self, toy: Any) -> None:
        self.toy = toy
        self.kind = kind_of(toy.track)
        self.submissions: dict[str, Submission] = {}

    def system(self, team: str) -> Submission:
        if team not in self.submissions:
            self.submissions[team] = Submission.objects.create(
                status="judging",
                track=self.toy.track,
                team=self.toy.teams[team],
                name=team,
                file="x",
                file_name="x",
                file_size=1,
                confirmed_at=timezone.now(),
            )
        return self.submissions[team]

    def state(
        self,
        document: str,
        subject: Span,
        predicate: str,
        object_: Span,
        *,
        team: str = "Patterns",
        types: tuple[str, str] = ("PER", "ORG"),
        canonical: tuple[Span, Span] | None = None,
    ) -> int:
        """The target of a relation that a team's system predicts from now on."""
        row = self.toy.documents[document]
        place = Place.of_unordered_pair(row.pk, subject, object_)
        target = make_targets(self.toy.corpus, [place])[place]
        instance, _ = Instance.objects.get_or_create(
            target_id=target,
            document=row,
            subject_begin=subject[0],
            subject_end=subject[1],
            predicate=self.toy.predicates[predicate],
            object_begin=object_[0],
            object_end=object_[1],
        )
        ends = canonical or (subject, object_)
        Prediction.objects.create(
            submission=self.system(team),
            instance=instance,
            subject_type=types[0],
            object_type=types[1],
            subject_canonical_begin=ends[0][0],
            subject_canonical_end=ends[0][1],
            object_canonical_begin=ends[1][0],
            object_canonical_end=ends[1][1],
            provenance=[0, 10],
            subject_entity=0,
            object_entity=1,
            same_predicate=1,
            same_subject=1,
            subject_facts=1,
        )
        return target

    def ask(self, *targets: int) -> list[QuestionDraft]:
        confirmed = Submission.objects.filter(confirmed_at__isnull=False).values_list(
            "pk", flat=True
        )
        return list(self.kind.draft_questions(list(targets), list(confirmed)))

    def find_unanswered(self, target: int) -> set[int]:
        everybody = list(Submission.objects.values_list("pk", flat=True))
        return set().union(
            *self.kind.find_unanswered({one: [target] for one in everybody}).values()
        )

    def label(self, target: int, value: dict[str, Any], origin: str = "question:1") -> None:
        record_labels([NewLabel(target, value, "crowd", "majority", 3, origin)])


@pytest.fixture
def world(toy: Any) -> World:
    return World(toy)


@pytest.fixture
def founded(world: World) -> int:
    """The target of “Lindt founded Nordwerk”, predicted of the second mention in d1."""
    toy = world.toy
    lindt, mara = toy.span("d1", "Lindt", 1), toy.span("d1", "Mara Lindt")
    nordwerk = toy.span("d1", "Nordwerk", 1)
    return world.state(
        "d1", lindt, "per:organizations_founded", nordwerk, canonical=(mara, nordwerk)
    )


def test_the_text_shown_is_whole_sentences_over_both_mentions_with_context(
    world: World, founded: int
) -> None:
    [draft] = world.ask(founded)
    payload, text = draft.payload, world.toy.documents["d1"].text
    assert draft.interface == "relation"
    assert text[slice(*payload["lit"])] == "Lindt was born in Halden. Nordwerk is based in Bergen."
    assert payload["text"] == text and payload["begin"] == 0 and payload["sentences"] == [1, 3, 3]
    assert (payload["a"]["gloss"], payload["b"]["gloss"]) == ("Lindt", "Nordwerk")
    assert (payload["a"]["type"], payload["b"]["type"]) == ("PER", "ORG")
    assert payload["document"] == {"key": "d1", "title": "d1"}


def test_both_mentions_get_targets_of_their_own(world: World, founded: int) -> None:
    [draft] = world.ask(founded)
    for side, span in (
        ("a", world.toy.span("d1", "Lindt", 1)),
        ("b", world.toy.span("d1", "Nordwerk", 1)),
    ):
        target = Target.objects.get(pk=draft.payload[side]["target"])
        assert (target.kind, (target.a_begin, target.a_end)) == ("mention", span)
    assert [one.payload["a"]["target"] for one in world.ask(founded)] == [
        draft.payload["a"]["target"]
    ]


def test_shown_are_the_predicates_of_the_union_of_types_in_both_directions(
    world: World, founded: int
) -> None:
    [draft] = world.ask(founded)
    assert draft.shown == ["per:employee_or_member_of>", "per:organizations_founded>"]
    lindt, nordwerk = world.toy.span("d1", "Lindt", 1), world.toy.span("d1", "Nordwerk", 1)
    world.state(
        "d1", nordwerk, "org:place_of_headquarters", lindt, team="Neural", types=("ORG", "GPE")
    )
    [wider] = world.ask(founded)
    assert wider.shown == [
        "per:employee_or_member_of>",
        "per:organizations_founded>",
        "org:place_of_headquarters<",
    ]
    assert [one["part"] for one in wider.payload["predicates"]] == wider.shown
    assert wider.payload["predicates"][0]["template"] == "{subject} works for {object}"


def test_candidates_are_names_of_the_type_each_wording_once_in_the_order_of_the_text(
    world: World, founded: int
) -> None:
    toy = world.toy
    for name, kind in (("Halden", "GPE"), ("Nordwerk", "ORG")):
        begin, end = toy.span("d1", name)
        Mention.objects.create(
            document=toy.documents["d1"],
            begin=begin,
            end=end,
            type=kind,
            canonical_begin=begin,
            canonical_end=end,
        )
    [draft] = world.ask(founded)
    assert [one["gloss"] for one in draft.payload["a"]["candidates"]] == ["Mara Lindt", "Lindt"]
    assert [one["gloss"] for one in draft.payload["b"]["candidates"]] == ["Nordwerk"]


def test_nothing_says_who_claims_what(world: World, founded: int) -> None:
    before = json.dumps([draft.payload for draft in world.ask(founded)])
    for word in ("Patterns", "confidence", "provenance", "submission"):
        assert word not in before
    lindt, mara = world.toy.span("d1", "Lindt", 1), world.toy.span("d1", "Mara Lindt")
    nordwerk = world.toy.span("d1", "Nordwerk", 1)
    world.state(
        "d1",
        lindt,
        "per:employee_or_member_of",
        nordwerk,
        team="Neural",
        canonical=(mara, nordwerk),
    )
    assert json.dumps([draft.payload for draft in world.ask(founded)]) == before


def answer(
    world: World, draft: QuestionDraft, holds: list[str], origin: str = "question:1"
) -> None:
    world.label(draft.target_id, {"shown": draft.shown, "holds": holds}, origin)
    for side in ("a", "b"):
        mention = draft.payload[side]
        world.label(
            mention["target"], {"canonical": mention["span"], "type": mention["type"]}, origin
        )


def test_a_pair_is_asked_once_and_what_was_not_offered_then_is_nonresponse(
    world: World, founded: int
) -> None:
    assert world.find_unanswered(founded) == {founded}
    [draft] = world.ask(founded)
    answer(world, draft, ["per:organizations_founded>"])
    assert world.find_unanswered(founded) == set()
    assert world.ask(founded) == []
    lindt, nordwerk = world.toy.span("d1", "Lindt", 1), world.toy.span("d1", "Nordwerk", 1)
    world.state(
        "d1", nordwerk, "org:place_of_headquarters", lindt, team="Neural", types=("ORG", "GPE")
    )
    assert world.find_unanswered(founded) == set()


def test_a_label_that_was_given_up_says_that_nobody_needs_to_ask_again(
    world: World, founded: int
) -> None:
    assert world.find_unanswered(founded) == {founded}
    world.label(founded, {})
    assert world.find_unanswered(founded) == set()


def test_only_the_claims_of_the_given_submissions_count(world: World, founded: int) -> None:
    assert world.kind.find_unanswered({}) == {}


def test_a_closed_document_answers_for_its_pairs_once_their_mentions_are_known(
    world: World, founded: int
) -> None:
    [draft] = world.ask(founded)
    document = world.toy.documents["d1"]
    place = Place("document", document.pk)
    world.label(
        make_targets(world.toy.corpus, [place])[place], {"scope": "document", "closed": True}
    )
    assert world.find_unanswered(founded) == {founded}  # linking is not known
    for side in ("a", "b"):
        world.label(
            draft.payload[side]["target"], {"canonical": draft.payload[side]["span"], "type": "PER"}
        )
    assert world.find_unanswered(founded) == set()


def test_what_readers_of_a_document_leave_undecided_is_asked_with_the_names_that_they_gave(
    world: World, founded: int
) -> None:
    [draft] = world.ask(founded)
    sides = {side: (draft.payload[side]["target"], draft.payload[side]["span"]) for side in "ab"}
    document = Place("document", world.toy.documents["d1"].pk)
    whole = make_targets(world.toy.corpus, [document])[document]
    world.label(whole, {"scope": "document", "closed": True})
    other = world.toy.span("d1", "Lindt", 1)
    votes = {f"{begin}-{end}": 1 for begin, end in (sides["a"][1], other)}
    divided = {"undecided": True, "cluster": sides["a"][1], "type": "PER", "votes": votes}
    record_labels([NewLabel(sides["a"][0], divided, "document", "token_majority", 2, "question:7")])
    world.label(sides["b"][0], {"canonical": sides["b"][1], "type": "ORG"}, "question:8")
    assert world.find_unanswered(founded) == {founded}
    [again] = world.ask(founded)
    offered = [one["span"] for one in again.payload["a"]["candidates"]]
    assert list(other) in offered and sides["a"][1] in offered
    tie = {"undecided": True, "votes": {"0-10": 1, "other": 1}, "titles": {}}
    world.label(sides["a"][0], tie, "question:9")
    assert world.find_unanswered(founded) == set(), (
        "those who were asked about it alone are divided too"
    )


def test_a_target_that_nobody_predicts_is_not_asked(world: World, founded: int) -> None:
    Label.objects.all().delete(), Prediction.objects.all().delete()
    assert world.ask(founded) == [] and world.find_unanswered(founded) == set()


def claim(part: str) -> Claim:
    return Claim(part, "PER", "PER", (0, 1), (2, 3))


def test_a_claim_that_no_type_allows_counts_as_wrong_and_is_not_on_the_page(toy: Any) -> None:
    schema = load_schema(toy.corpus.schema)
    pair = Pair(1, 1, (0, 1), (2, 3), [claim("per:parents>"), claim("org:subsidiaries<")])
    visible, shown = shown_and_settled_predicates(pair, {"PER"}, {"PER"}, schema)
    assert visible == ["per:parents>", "per:parents<"]
    assert shown == ["per:parents>", "per:parents<", "org:subsidiaries<"]
    pair.shown = {"per:parents>", "per:parents<"}
    assert shown_and_settled_predicates(pair, {"PER"}, {"PER"}, schema) == (
        ["per:parents>", "per:parents<", "org:subsidiaries<"],
        ["org:subsidiaries<"],
    )


def answered(draft: QuestionDraft, **sides: str) -> list[tuple[int, dict[str, Any]]]:
    """What three people who agree make of a question: what each side's mention refers to."""
    question = Question(pk=1, target_id=draft.target_id, payload=draft.payload, shown=draft.shown)
    relation, responses = interface_by_name("relation"), []
    for at in range(3):
        raw = {"holds": [draft.payload["predicates"][0]["part"]]} | sides
        responses += [
            Response(assignment_id=at, question=question, **vars(one))
            for one in relation.parse(question, raw)
        ]
    return [(one.target_id, one.value) for one in relation.aggregate(question, responses)]


def test_who_saw_one_name_alone_says_nothing_of_others(world: World) -> None:
    """A run that links nothing leaves “Lindt” by itself; whether a later one that links it is right
    nobody was asked: it is nonresponse.
    """
    toy = world.toy
    lindt, mara = toy.span("d1", "Lindt", 1), toy.span("d1", "Mara Lindt")
    nordwerk = toy.span("d1", "Nordwerk", 1)
    target = world.state("d1", lindt, "per:organizations_founded", nordwerk)
    [draft] = world.ask(target)
    assert [one["span"] for one in draft.payload["a"]["candidates"]] == [list(lindt)]
    for place, value in answered(draft):
        world.label(place, value)
        if place != target:
            own = value["canonical"]
            assert value["votes"] == {f"{own[0]}-{own[1]}": 3} and value["offered"] == [own]
    assert not world.find_unanswered(target), "nobody says anything else"
    world.state(
        "d1",
        lindt,
        "per:organizations_founded",
        nordwerk,
        team="Neural",
        canonical=(mara, nordwerk),
    )
    first, later = world.submissions["Patterns"].pk, world.submissions["Neural"].pk
    instance = Instance.objects.get(target=target)

    def linking() -> list[float]:
        verdicts = world.kind.judge(np.array([instance.pk]), [first, later])
        return verdicts["linking"][0].tolist()

    before = linking()
    assert before[0] == 1.0 and np.isnan(before[1]), "nobody was asked about that"
    open_now = world.kind.find_unanswered({first: [target], later: [target]})
    assert open_now == {first: set(), later: set()}


def test_a_run_that_refers_a_mention_elsewhere_finishes_without_another_question(
    world: World,
) -> None:
    """Through step 5 itself: what waits for an answer has a question, and ends with it."""
    toy = world.toy
    lindt, mara = toy.span("d1", "Lindt", 1), toy.span("d1", "Mara Lindt")
    nordwerk = toy.span("d1", "Nordwerk", 1)

    def predicted(team: str, canonical: Span) -> tuple[int, Submission]:
        ends = (canonical, nordwerk)
        target = world.state(
            "d1", lindt, "per:organizations_founded", nordwerk, team=team, canonical=ends
        )
        run = world.submissions[team]
        wanted = SamplingDistribution.objects.create(
            submission=run, kind="instance", total=1.0, n=1
        )
        batch = SampleBatch.objects.create(
            submission=run,
            distribution=wanted,
            design="poisson",
            stage=1,
            seed=0,
            size=1,
        )
        Sample.objects.create(
            batch=batch, target_id=target, multiplicity=1, probability=1.0, pays=True
        )
        return target, run

    def settle(chosen: Span) -> None:
        question = Question.objects.exclude(status="settled").get()
        draft = QuestionDraft(question.target_id, "relation", question.payload, question.shown)
        for place, value in answered(draft, a=f"{chosen[0]}-{chosen[1]}"):
            world.label(place, value, f"question:{question.pk}")
        Question.objects.filter(pk=question.pk).update(status="settled")

    _, first = predicted("Patterns", lindt)
    assert ask.tick() == 1
    settle(lindt)
    assert finished_submissions(toy.track) == [first]
    Submission.objects.filter(pk=first.pk).update(status="scored")
    _, later = predicted("Neural", mara)
    assert unjudged_targets(later) == set() and finished_submissions(toy.track) == [later]
    assert ask.tick() == 0


def test_a_name_that_people_saw_and_did_not_pick_is_wrong_and_not_asked_again(
    world: World,
) -> None:
    toy = world.toy
    lindt, mara = toy.span("d1", "Lindt", 1), toy.span("d1", "Mara Lindt")
    nordwerk = toy.span("d1", "Nordwerk", 1)
    predicted = ("d1", lindt, "per:organizations_founded", nordwerk)
    target = world.state(*predicted, canonical=(mara, nordwerk))
    world.state(*predicted, team="Neural")
    [draft] = world.ask(target)
    for place, value in answered(draft, a="other"):
        world.label(place, value)
        if place == draft.payload["a"]["target"]:
            assert value["elsewhere"] and "canonical" not in value
    verdicts = world.kind.judge(
        np.array([Instance.objects.get(target=target).pk]),
        [one.pk for one in world.submissions.values()],
    )
    assert verdicts["linking"][0].tolist() == [0.0, 0.0] and not world.find_unanswered(target)
