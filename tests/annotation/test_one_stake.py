"""The crowd and the experts are kept from the same questions: one rule, held against both who use
it and against the same rule in Python, over random questions about relations and about texts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from annotation_world import make_submission, make_target, uuid

from annotation.hits import lease
from annotation.hits.stake import has_stake
from annotation.models import HIT, Question
from annotation.workers.worker import worker_of
from kbpo.accounts.models import User
from kbpo.corpus.models import Document, Predicate
from kbpo.experts import queue
from kbpo.instances.models import Instance, Target
from kbpo.money.purpose import Purpose
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.interest import at_stake
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.generation.declared import PreferenceTrack
from kbpo.tracks.generation.models import Written
from kbpo.tracks.models import Track
from kbpo.tracks.registry import KINDS

pytestmark = pytest.mark.django_db

SPANS = [(0, 3), (4, 9), (10, 12), (13, 20), (21, 22), (30, 33)]
WORDS = ["one text", "another text", "a third"]
REASONS = {"predicts", "linked", "read whole", "compared", "nothing"}


class World:
    """Random targets, of some of which two teams say something, each asked in one HIT and waiting
    for experts once.
    """

    def __init__(self, track: Track, seed: int) -> None:
        self.track, self.random = track, random.Random(seed)
        elsewhere = make_target(track, 100, 0.5)
        self.ours, self.theirs = (
            make_submission(track, [elsewhere], name) for name in ("Ours", "Theirs")
        )
        self.documents = [make_target(track, number, 0.5).its_document for number in range(12)]
        self.asked: dict[int, dict[str, Any]] = {}
        self.hit_of: dict[int, HIT] = {}
        for number in range(240):
            self.ask(self.target(number))
        for place, document in enumerate(self.documents):
            if place % 3:  # of the others, nobody says anything
                self.predict(document)

    def target(self, number: int) -> Target:
        kind = self.random.choice(["pair", "pair", "mention", "document", "pair-f00d", "output"])
        common = {"corpus": self.track.corpus, "kind": kind, "key": uuid(f"{number}"), "u": 0.5}
        if kind in ("pair-f00d", "output"):
            content: dict[str, Any] = {"input": f"i{self.random.randrange(9)}"}
            texts = self.random.sample(WORDS, 2)
            content |= {"texts": texts} if kind == "pair-f00d" else {"text": texts[0]}
            target = Target.objects.create(content=content, **common)
            instance = Instance.objects.create(target=target)
            self.sometimes_predicted(instance, 0.2)
            return target
        first, second = sorted(self.random.sample(SPANS, 2))
        spans = {"a_begin": first[0], "a_end": first[1]} if kind != "document" else {}
        spans |= {"b_begin": second[0], "b_end": second[1]} if kind == "pair" else {}
        document = self.random.choice(self.documents)
        return Target.objects.create(document=document, **spans, **common)

    def sometimes_predicted(self, instance: Instance, chance: float, **fields: Any) -> None:
        for submission in (self.ours, self.theirs):
            if self.random.random() < chance:
                Prediction.objects.create(submission=submission, instance=instance, **fields)

    def predict(self, document: Document) -> None:
        """Nothing; a pair of the document, asked about or not, is predicted now, by other names."""
        for pair in Target.objects.filter(document=document, kind="pair")[:2]:
            instance = Instance.objects.create(
                target=pair,
                document=document,
                subject_begin=pair.a_begin,
                subject_end=pair.a_end,
                object_begin=pair.b_begin,
                object_end=pair.b_end,
                predicate=Predicate.objects.get(corpus=self.track.corpus),
            )
            subject, object_ = (self.random.choice(SPANS) for _ in range(2))
            self.sometimes_predicted(
                instance,
                0.4,
                subject_canonical_begin=subject[0],
                subject_canonical_end=subject[1],
                object_canonical_begin=object_[0],
                object_canonical_end=object_[1],
            )

    def ask(self, target: Target) -> None:
        payload = dict(self.sides(target))
        question = Question.objects.create(
            status="published",
            track=self.track,
            target=target,
            interface="relation",
            order=self.random.random(),
            payer=Purpose("documents", 1),
            price="1.00",
            reward="1.00",
            payload=payload,
        )
        hit = HIT.objects.create(status="open", track=self.track, platform="pool", reward="1.00")
        hit.questions.add(question)
        ExpertCheck.objects.create(
            track=self.track, kind="disagreement", target=target, order=0.5, payload=payload
        )
        self.asked[target.pk], self.hit_of[target.pk] = payload, hit

    def sides(self, target: Target) -> Iterator[tuple[str, dict[str, Any]]]:
        for side, (begin, end) in {
            "a": (target.a_begin, target.a_end),
            "b": (target.b_begin, target.b_end),
        }.items():
            if self.random.random() < 0.9:
                others = self.random.sample(
                    [[begin, end], [0, 3], [4, 9]], self.random.choice([0, 1, 2])
                )
                yield side, {"span": [begin, end], "candidates": [{"span": at} for at in others]}

    def reasons(self, target: Target, submissions: set[int]) -> set[str]:
        """Why the teams of these submissions have a stake in the question about a target."""
        said = Prediction.objects.filter(submission__in=submissions).select_related("instance")
        inside = [
            one
            for one in said
            if target.document_id and one.instance.document_id == target.document_id
        ]
        found = {"predicts"} if any(one.instance.target_id == target.pk for one in said) else set()
        if target.kind == "document" and inside:
            found.add("read whole")
        named = {span for one in inside for span in mentions(one)}
        for asked in self.asked[target.pk].values():
            is_asked = any(one["span"] != asked["span"] for one in asked["candidates"])
            if is_asked and tuple(asked["span"]) in named:
                found.add("linked")
        content = target.content or {}
        wrote = Written.objects.filter(submission__in=submissions, key=content.get("input", ""))
        if {one.text for one in wrote} & set(content.get("texts", [])):
            found.add("compared")
        return found


def mentions(prediction: Prediction) -> set[tuple[int | None, int | None]]:
    """The mentions that a prediction names."""
    instance = prediction.instance
    return {
        (instance.subject_begin, instance.subject_end),
        (instance.object_begin, instance.object_end),
        (prediction.subject_canonical_begin, prediction.subject_canonical_end),
        (prediction.object_canonical_begin, prediction.object_canonical_end),
    }


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_the_crowd_and_the_experts_are_kept_from_the_same_questions(
    seed: int, track: Track, annotator: Callable[[str], User]
) -> None:
    world = World(track, seed)
    for submission in (world.ours, world.theirs):
        for number in world.random.sample(range(9), 5):
            text = world.random.choice(WORDS)
            Written.objects.create(submission=submission, key=f"i{number}", text=text, line=number)
    teams: dict[str, list[Submission]] = {
        "of ours": [world.ours],
        "of theirs": [world.theirs],
        "of both": [world.ours, world.theirs],
        "of none": [],
    }
    seen: Counter[str] = Counter()
    for name, submissions in teams.items():
        person = annotator(name)
        for submission in submissions:
            submission.team.members.add(person)
        told = {
            target.pk: world.reasons(target, {one.pk for one in submissions})
            for target in Target.objects.filter(pk__in=world.asked)
        }
        kept = {target for target, reasons in told.items() if reasons}
        worker = worker_of(person)
        assert {pk for pk, hit in world.hit_of.items() if has_stake(worker.pk, hit.pk)} == kept
        free = set(queue.askable(track, person).values_list("target", flat=True))
        assert free == set(world.asked) - kept
        assert lease.open_to(worker, most=1000) == len(free)
        for reasons in told.values():
            # Each rule has to be the only reason somewhere: else nobody would miss it.
            seen[
                next(iter(reasons)) if len(reasons) == 1 else "several" if reasons else "nothing"
            ] += 1
    assert seen.keys() >= REASONS


def test_what_a_kind_says_of_stakes_is_asked_of_every_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert all(rule in at_stake() for rule in PreferenceTrack.at_stake), "of declared forms too"
    monkeypatch.setitem(KINDS, "shy", f"{__name__}.ShyTrack")
    assert at_stake().endswith(" OR t.kind = 'shy'")


class ShyTrack:
    """A kind of track nobody of which judges anything of it who has any team."""

    at_stake = ("t.kind = 'shy'",)
