"""On the page of every question about a pair stands each relation that is true of it, also where
something about the pair was settled before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from annotation.interfaces.shared.payload import directed_predicates
from annotation.models import Question
from annotation.questions import ask
from formats.schema import Schema, load_schema
from kbpo.accounts.models import Team, User
from kbpo.corpus.load import find_schema, load_corpus
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling import draw, plan
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.documents.draw import draw_documents
from kbpo.sampling.documents.import_annotations import import_annotations
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.submissions import ingest
from kbpo.submissions.receive import store_submission
from kbpo.tracks.models import Track
from rehearsal.newspaper import files
from rehearsal.newspaper.knows import Knowledge

pytestmark = pytest.mark.django_db


def follow(
    track: Track, knowledge: Knowledge, files: Collection[Path], seed: int
) -> Iterator[Question]:
    """The questions that systems lead to, each uploaded once the earlier ones are judged by people
    who are always right.
    """
    for number, path in enumerate(files):
        user = User.objects.create_user(f"user{number}", is_researcher=True)
        team = Team.objects.create(name=f"Team {number}", slug=f"team-{number}")
        with path.open("rb") as file:
            submission = store_submission(
                track, team, user, file, name=path.name, file_name=path.name
            )
        ingest.tick()
        plan.tick()
        submission.refresh_from_db()
        narrowest = min(submission.plan["options"])
        confirm_plan(submission, user, half_width=narrowest, good_lines_only=True)
        draw.tick()
        ask.tick()
        waiting = Question.objects.filter(track=track, status="waiting")
        for question in waiting.select_related("target__document").order_by("pk"):
            yield question
            settle(question, knowledge)


def settle(question: Question, knowledge: Knowledge) -> None:
    """Records the true answer to a question."""
    document, payload = question.target.document.key, question.payload
    a, b = tuple(payload["a"]["span"]), tuple(payload["b"]["span"])
    answer = knowledge.true_answer(document, a, b)
    true = {name + direction for name, direction in answer.holds}
    holds = [part for part in question.shown if part in true]
    value = {"shown": question.shown, "holds": holds}
    labels = [NewLabel(question.target_id, value, "crowd", "majority", 3, question.origin)]
    for side, canonical in (("a", answer.subject_canonical), ("b", answer.object_canonical)):
        value = {"canonical": list(canonical), "type": payload[side]["type"]}
        target = payload[side]["target"]
        labels.append(NewLabel(target, value, "crowd", "majority", 3, question.origin))
    record_labels(labels)
    question.move("settled")


def missing(question: Question, knowledge: Knowledge, schema: Schema) -> set[str]:
    """What is true of a question's pair, and allowed between the types that its page takes its
    mentions for, but cannot be chosen there.
    """
    document, payload = question.target.document.key, question.payload
    a, b = tuple(payload["a"]["span"]), tuple(payload["b"]["span"])
    offered = {
        part for predicate in payload["predicates"] for part in directed_predicates(predicate)
    }
    kinds = [knowledge.mention(document, span).type for span in (a, b)]
    absent = set()
    for name, direction in knowledge.true_answer(document, a, b).holds:
        types = kinds if direction == ">" else kinds[::-1]
        if schema.is_allowed(name, *types) and name + direction not in offered:
            absent.add(name + direction)
    return absent


def open_on(name: str, corpus: Path, schema: str | Path) -> Track:
    loaded = load_corpus(name, corpus, find_schema(str(schema)))
    track = create_track(loaded, name, money=Money(budget=Decimal(2000)), design="poisson")
    return open_track(track)


def test_every_true_relation_of_the_demo_can_be_chosen(tmp_path: Path) -> None:
    files.write_files(tmp_path)
    track = open_on("Harbour Wire", tmp_path / "corpus.jsonl", "tac_kbp")
    gold, mentions = tmp_path / "gold.tsv", tmp_path / "mentions.tsv"
    documents = draw_documents(track, 12, 1)
    import_annotations(track, gold, mentions, documents, seed=1)
    listed = files.read_systems(tmp_path)
    systems = [tmp_path / "systems" / one["file"] for one in listed[:2]]
    check(track, Knowledge(mentions, gold), systems)


def check(track: Track, knowledge: Knowledge, systems: Collection[Path]) -> None:
    schema = load_schema(track.corpus.schema)
    asked, absent = 0, {}
    for question in follow(track, knowledge, systems, seed=1):
        asked += 1
        if lost := missing(question, knowledge, schema):
            absent[question.pk] = lost
    assert asked > 50
    assert not absent, f"{len(absent)} of {asked} questions lack what is true: {absent}"
