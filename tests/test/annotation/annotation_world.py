"""A small track whose questions a person can check by hand, and workers who answer through the
pages.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.hits.lease import lease_next
from annotation.hits.submit import Outcome, submit_answer
from annotation.models import Worker
from annotation.workers import consent, payout, teach
from annotation.workers.models import TutorialRun
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Document, Predicate
from kbpo.instances.models import Instance, Label, Target
from kbpo.money.spend import reserve_money
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Asking, QuestionDraft
from kbpo.tracks.models import Track

PARTS = ["per:schools_attended>", "per:employee_or_member_of>", "org:founded_by<"]
TEMPLATES = {
    "per:schools_attended>": "{subject} studied at {object}",
    "per:employee_or_member_of>": "{subject} works or worked for {object}",
    "org:founded_by<": "{subject} was founded by {object}",
}


class ToyTrack:
    """Asks about every target that has no label, with the same three relations."""

    shown = list(PARTS)
    asking = (Asking("relation", Decimal("0.05"), 20),)
    answers = Decimal(3)

    def __init__(self, track: Track) -> None:
        self.track = track

    def draft_questions(
        self, target_ids: Sequence[int], submissions: Sequence[int]
    ) -> Iterable[QuestionDraft]:
        open_ones = _without_label(target_ids)
        for target in Target.objects.filter(pk__in=open_ones).select_related("document"):
            yield QuestionDraft(
                target.pk, "relation", payload_of(target, self.shown), list(self.shown)
            )

    def count_second_opinions(self, new: int, before: int = 0) -> int:
        return 0

    def find_unanswered(self, of: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
        return {submission: _without_label(targets) for submission, targets in of.items()}


def _without_label(target_ids: Collection[int]) -> set[int]:
    labelled = Label.objects.filter(target__in=target_ids).exclude(value={})
    return set(target_ids) - set(labelled.values_list("target", flat=True))


def payload_of(target: Target, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    text = target.document.text
    spans = {"a": (target.a_begin, target.a_end), "b": (target.b_begin, target.b_end)}
    types = {"a": "PER", "b": "ORG"}
    sides = {}
    for side, (begin, end) in spans.items():
        mention = Target.objects.get_or_create(
            corpus=target.corpus,
            document=target.document,
            kind="mention",
            a_begin=begin,
            a_end=end,
            defaults={"key": uuid(f"mention {target.document_id} {begin}"), "u": 0.5},
        )[0]
        candidates = [
            {"span": [0, 3], "gloss": text[0:3]},
            {"span": [begin, end], "gloss": text[begin:end]},
        ]
        sides[side] = {
            "target": mention.pk,
            "span": [begin, end],
            "gloss": text[begin:end],
            "type": types[side],
            "candidates": candidates,
        }
    return {
        "document": {"key": target.document.key, "title": target.document.title},
        "text": text,
        "begin": 0,
        "length": len(text),
        "sentences": [1, 1, 1],
        "lit": [0, len(text)],
        **sides,
        "others": [],
        "predicates": [{"part": part, "template": TEMPLATES[part]} for part in parts],
    }


def uuid(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def make_target(track: Track, number: int, u: float) -> Target:
    text = f"Ann {number} Lee studied at Elm College {number}. She founded nothing."
    document = Document.objects.create(
        corpus=track.corpus,
        key=f"doc-{number}",
        title=f"Story {number}",
        text=text,
        token_begin=[0],
        token_end=[3],
        sentence_begin=[0],
        sentence_end=[len(text)],
    )
    b = text.index("Elm")
    return Target.objects.create(
        corpus=track.corpus,
        document=document,
        kind="pair",
        a_begin=0,
        a_end=len(f"Ann {number} Lee"),
        b_begin=b,
        b_end=b + len(f"Elm College {number}"),
        key=uuid(f"pair {number}"),
        u=u,
    )


def make_neighbour(track: Track, of: Target) -> Target:
    """A second pair of the same document: the college and "She"."""
    begin = of.document.text.index("She")
    return Target.objects.create(
        corpus=track.corpus,
        document=of.document,
        kind="pair",
        a_begin=of.b_begin,
        a_end=of.b_end,
        b_begin=begin,
        b_end=begin + 3,
        key=uuid(f"neighbour of {of.key}"),
        u=of.u / 2,
    )


def make_submission(
    track: Track, targets: Sequence[Target], name: str = "Patterns", money: str = "100.00"
) -> Submission:
    team, _ = Team.objects.get_or_create(name=f"Team {name}", slug=f"team-{name.lower()}")
    submission = Submission.objects.create(
        status="judging",
        track=track,
        team=team,
        name=name,
        file="uploads/x.tsv",
        file_name="x.tsv",
        file_size=1,
        file_digest="0" * 64,
        confirmed_at="2026-11-20T10:00:00Z",
    )
    distribution = SamplingDistribution.objects.create(
        submission=submission, kind="instance", total=1, n=len(targets)
    )
    batch = SampleBatch.objects.create(
        submission=submission, distribution=distribution, design="iid", seed=1, size=len(targets)
    )
    predicate = Predicate.objects.get(corpus=track.corpus, name="per:schools_attended")
    for target in targets:
        instance, _ = Instance.objects.get_or_create(
            target=target,
            document=target.document,
            subject_begin=target.a_begin,
            subject_end=target.a_end,
            predicate=predicate,
            object_begin=target.b_begin,
            object_end=target.b_end,
        )
        Sample.objects.create(
            batch=batch, target=target, instance=instance, probability=1 / len(targets)
        )
    if Decimal(money):
        reserve_money(
            track, team, submission.purpose, Decimal(money), key=f"confirm:{submission.pk}"
        )
    return submission


GOOD = {"a": "0-3", "b": "other", "holds": ["per:schools_attended>"]}


def learn(worker: Worker) -> None:
    """Lets a worker agree to the terms and pass every tutorial."""
    consent.store_consent(worker, consent.current_terms().version)
    for tutorial in teach.tutorials().values():
        run = teach.begin_tutorial(worker, tutorial)
        for number, question in enumerate(tutorial.questions, start=1):
            assert run is not None
            run = teach.store_tutorial_answer(run, number, question["right"])


def has_learned(worker: Worker) -> None:
    """A worker agreed to the terms and passed every tutorial before tutorials were paid."""
    consent.store_consent(worker, consent.current_terms().version)
    now = timezone.now()
    TutorialRun.objects.bulk_create(
        TutorialRun(
            worker=worker,
            interface=one.interface,
            version=one.version,
            attempt=1,
            passed=True,
            ended_at=now,
        )
        for one in teach.tutorials().values()
    )


IBAN = "NO93 8601 1117 947, Ada Lee"


def says_where_the_money_goes(*workers: Worker) -> None:
    """Workers give an address for their payouts; without any given, all who have an account."""
    for worker in workers or Worker.objects.exclude(user=None):
        payout.set_payout_address(worker, IBAN)


def take(client: Client) -> str:
    """The address of the worker's next question; empty if there is none."""
    response = client.get("/annotate/next/")
    return response["Location"] if response["Location"] != "/annotate/" else ""


def answer_all(client: Client, answer: dict[str, Any] = GOOD) -> int:
    """How many questions a worker answered until nothing was left: as the pages store answers, and
    without the pages, which tests of their own are about.
    """
    worker = worker_of_user(client_user(client))
    raw = {name: value if isinstance(value, list) else [value] for name, value in answer.items()}
    count = 0
    while (assignment := lease_next(worker)) is not None:
        outcome = submit_answer(assignment, raw)
        assert outcome is Outcome.STORED, outcome
        count += 1
    return count


def client_user(client: Client) -> User:
    """Whoever is logged in at a client."""
    return User.objects.get(pk=client.session["_auth_user_id"])


def at_once(functions: list[Callable[[], object]]) -> list[BaseException]:
    """What was raised by functions that ran at the same time."""
    gate, raised = threading.Barrier(len(functions)), []

    def run(function: Callable[[], object]) -> None:
        try:
            gate.wait()
            function()
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised
