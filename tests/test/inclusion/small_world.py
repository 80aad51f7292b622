"""A world of a few targets in a few documents, in which every chance is a fate's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import comb
from typing import Any

from django.db import connection
from django.utils import timezone
from undone import undone

from kbpo.corpus.models import Document
from kbpo.instances.models import Instance, Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.draw import freeze_withdrawn_batches
from kbpo.sampling.models import (
    DocumentSample,
    Sample,
    SampleBatch,
    SamplingDistribution,
    Threshold,
)
from kbpo.submissions.models import Prediction, Submission
from tests.conftest import Toy
from tests.test.inclusion.chance import Fate

PART = "per:place_of_birth>"
TEXT = "ab " * 40


class SmallWorld:
    """Targets 0, 1, … with one relation each; target k lies in document k modulo their number."""

    def __init__(self, toy: Toy, true: list[bool], documents: int) -> None:
        self.toy, self.true, self.n_documents = toy, true, documents
        track = toy.track
        track.criterion, track.distribution, track.distributions = (
            "relation",
            "instance",
            ["instance"],
        )
        track.scope, track.secret = "document", "small world"
        track.save()
        toy.corpus.n_documents = documents
        toy.corpus.save()
        self.track = track
        self.documents = [
            Document.objects.create(
                corpus=toy.corpus,
                key=f"small-{at}",
                text=TEXT,
                token_begin=[0],
                token_end=[2],
                sentence_begin=[0],
                sentence_end=[len(TEXT)],
            )
            for at in range(documents)
        ]
        spans = [((6 * k, 6 * k + 2), (6 * k + 3, 6 * k + 5)) for k in range(len(true))]
        places = [
            Place.of_unordered_pair(self.documents[k % documents].pk, *pair)
            for k, pair in enumerate(spans)
        ]
        found = make_targets(toy.corpus, places)
        self.target = [found[place] for place in places]
        mentions = [
            Place("mention", place.document, span)
            for place in places
            for span in (place.a, place.b)
        ]
        of_mention = make_targets(toy.corpus, mentions)
        record_labels(
            NewLabel(
                of_mention[one], {"canonical": list(one.a)}, "crowd", "majority", 3, "question:0"
            )
            for one in mentions
        )
        self.instance = Instance.objects.bulk_create(
            Instance(
                target_id=pk,
                document_id=place.document,
                subject_begin=place.a[0],
                subject_end=place.a[1],
                object_begin=place.b[0],
                object_end=place.b[1],
                predicate=toy.predicates["per:place_of_birth"],
            )
            for pk, place in zip(self.target, places, strict=True)
        )

    def tell(self, fate: Fate, story: Any) -> Any:
        """What a story comes to with this fate; nothing of it stays."""
        with undone():
            return story(Play(self, fate))


@dataclass
class Play:
    """What happens with one fate. Time goes by an hour from one event to the next."""

    world: SmallWorld
    fate: Fate
    now: datetime = field(default_factory=lambda: timezone.now() - timedelta(days=10))
    rows: dict[str, Submission] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)

    def later(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now

    def numbers(self, cuts: dict[int, list[float]]) -> None:
        """The random numbers of targets, between the thresholds that they will meet."""
        ids, u = zip(
            *((self.world.target[k], self.fate.number(some)) for k, some in cuts.items()),
            strict=True,
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE instances_target t SET u = n.u FROM unnest(%s::bigint[], %s::float8[])"
                " AS n (id, u) WHERE t.id = n.id",
                [list(ids), list(u)],
            )
        self.u = dict(zip(cuts, u, strict=True))

    def upload(self, name: str, team: str, predicts: Iterable[int]) -> Submission:
        """A submission that is confirmed now."""
        toy, when, predicted = self.world.toy, self.later(), list(predicts)
        row = Submission.objects.create(
            track=self.world.track,
            team=toy.teams[team],
            name=name,
            status="judging",
            file="x",
            file_name="x",
            file_size=1,
            file_digest=name,
            received_at=when,
            read_at=when,
            confirmed_at=when,
            sampled_at=when,
            user=toy.users["Rosa" if team == "Patterns" else "Tim"],
            counts={"relations": len(predicted)},
        )
        Prediction.objects.bulk_create(
            Prediction(
                submission=row,
                instance=one,
                subject_type="PER",
                object_type="GPE",
                provenance=[0, 9],
                subject_canonical_begin=one.subject_begin,
                subject_canonical_end=one.subject_end,
                object_canonical_begin=one.object_begin,
                object_canonical_end=one.object_end,
                subject_entity=1,
                object_entity=2,
                same_predicate=1,
                same_subject=1,
                subject_facts=1,
            )
            for one in (self.world.instance[k] for k in predicted)
        )
        SamplingDistribution.objects.create(
            submission=row, kind="instance", total=len(predicted), n=len(predicted)
        )
        self.rows[name] = row
        return row

    def ask(self, name: str, thresholds: dict[int, float]) -> None:
        """Thresholds of a submission: what lies below is asked and answered,
        unless it has a label.
        """
        self.answer(self.publish(name, thresholds))

    def publish(self, name: str, thresholds: dict[int, float]) -> list[int]:
        """What lies below the thresholds of a submission; nobody has answered yet."""
        batch = self._batch(name, "poisson", 1)
        Threshold.objects.bulk_create(
            Threshold(batch=batch, target_id=self.world.target[k], pi=pi)
            for k, pi in thresholds.items()
        )
        asked = [k for k, pi in thresholds.items() if self.u[k] < pi]
        Sample.objects.bulk_create(
            Sample(batch=batch, target_id=self.world.target[k], probability=thresholds[k])
            for k in asked
        )
        return asked

    def withdraw(self, name: str) -> None:
        """A run is withdrawn before all was answered that was published for it."""
        row = self.rows[name]
        row.batches.update(settled_at=None)
        Submission.objects.filter(pk=row.pk).update(status="withdrawn", withdrawn_at=self.later())
        freeze_withdrawn_batches(row.track)

    def draw(self, name: str, predicts: list[int], size: int, *, answered: bool = True) -> None:
        """Draws with replacement, each of the targets with the same chance."""
        batch, times = self._batch(name, "iid", size), dict[int, int]()
        left = size
        for at, k in enumerate(predicts):  # how often each is drawn, one after the other
            p = 1 / (len(predicts) - at)
            ways = [(n, comb(left, n) * p**n * (1 - p) ** (left - n)) for n in range(left + 1)]
            times[k] = self.fate.one_of(ways)
            left -= times[k]
        drawn = [k for k, n in times.items() if n]
        Sample.objects.bulk_create(
            Sample(
                batch=batch,
                target_id=self.world.target[k],
                instance=self.world.instance[k],
                multiplicity=times[k],
                probability=1 / len(predicts),
            )
            for k in drawn
        )
        if answered:
            self.answer(drawn)

    def _batch(self, name: str, design: str, size: int) -> SampleBatch:
        row, when = self.rows[name], self.later()
        return SampleBatch.objects.create(
            submission=row,
            distribution=row.distributions.get(),
            design=design,
            seed=0,
            size=size,
            drawn_at=when,
            settled_at=when,
        )

    def labelled(self) -> set[int]:
        """Targets that have a label, or lie where what is not marked is false."""
        with_label = set(
            Label.objects.filter(target__in=self.world.target).values_list("target_id", flat=True)
        )
        return {
            k
            for k, pk in enumerate(self.world.target)
            if pk in with_label or k % self.world.n_documents in self.closed
        }

    def answer(self, asked: Iterable[int]) -> None:
        """People say the truth about what has no label."""
        known = self.labelled()
        self._label([k for k in asked if k not in known], "crowd")

    def _label(self, which: Iterable[int], source: str) -> None:
        when, labels = self.later(), []
        for k in which:
            value = {"shown": [PART], "holds": [PART] if self.world.true[k] else []}
            labels.append(
                Label(
                    target_id=self.world.target[k],
                    value=value,
                    source=source,
                    method="majority",
                    n=3,
                    origin=f"{source}:{k}",
                    created_at=when,
                )
            )
        Label.objects.bulk_create(labels)

    def read(self, documents: list[int]) -> None:
        """Documents are read whole: everything true is marked, and the rest is false."""
        world, known = self.world, self.labelled()
        inside = [k for k in range(len(world.true)) if k % world.n_documents in documents]
        marked = [k for k in inside if world.true[k]]
        source = "import"
        when = self.later()
        value = {"shown": [PART], "holds": [PART]}
        Label.objects.bulk_create(
            Label(
                target_id=world.target[k],
                value=value,
                source=source,
                method="majority",
                n=3,
                origin=f"read:{k}",
                created_at=when,
            )
            for k in marked
        )
        pks = [world.documents[at].pk for at in documents]
        whole = make_targets(world.toy.corpus, [Place("document", pk) for pk in pks])
        Label.objects.bulk_create(
            Label(
                target_id=pk,
                value={"scope": "document", "closed": True},
                source=source,
                method="majority",
                n=3,
                origin="read",
                created_at=when,
            )
            for pk in whole.values()
        )
        self.closed |= set(documents)
        settle_documents(world.track, pks)
        DocumentSample.objects.filter(track=world.track, document__in=pks).update(settled_at=when)
        assert known <= self.labelled()
