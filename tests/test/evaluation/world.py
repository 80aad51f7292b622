"""A small made-up world: documents, systems that state relations of them, and a truth that answers
every question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
from django.utils import timezone

from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.models import Sample, SampleBatch, SamplingDistribution, Threshold
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from scoring.data import Data
from tests.conftest import SCHEMA, Toy, sentences_of, tokens_of

WORKS, BASED, LIVES = (
    "per:employee_or_member_of",
    "org:place_of_headquarters",
    "per:place_of_residence",
)
FOUNDED, BORN = "per:organizations_founded", "per:place_of_birth"
SENTENCES = 5


class World:
    """A track (design poisson, relations alone are judged) whose systems predict what `predicts`
    says.
    """

    def __init__(
        self, toy: Toy, n_documents: int = 6, seed: int = 1, *, is_study: bool = False
    ) -> None:
        self.toy, self.rng = toy, np.random.default_rng(seed)
        self.corpus = Corpus.objects.create(
            name="World", slug="world", schema=SCHEMA, n_documents=n_documents
        )
        self.predicates = {
            one["name"]: Predicate.objects.create(corpus=self.corpus, name=one["name"], position=at)
            for at, one in enumerate(SCHEMA["predicates"])
        }
        self.track = Track.objects.create(
            corpus=self.corpus,
            name="World track",
            slug="world",
            status="open",
            scope="document",
            design="poisson",
            distribution="instance",
            criterion="relation",
            distributions=["instance"],
            is_study=is_study,  # nothing is hidden then, so that every number is stored
            owner=toy.teams["Patterns"] if is_study else None,
        )
        self.documents = [self._document(at) for at in range(n_documents)]
        self.instances = [one for document in self.documents for one in self._instances(document)]
        self.truth = {one.pk: bool(self.rng.random() < 0.6) for one in self.instances}

    def _document(self, at: int) -> Document:
        # Anna is in every document, Carl only in his own: high and low frequency.
        text = " ".join(
            f"{'Anna' if s == 0 else f'Carl{at}x{s}'} works for Firm{at}y{s} of Town{s}."
            for s in range(SENTENCES)
        )
        tokens, sentences = tokens_of(text), sentences_of(text)
        return Document.objects.create(
            corpus=self.corpus,
            key=f"{'news' if at % 2 else 'blog'}-{at}",
            text=text,
            token_begin=[b for b, _ in tokens],
            token_end=[e for _, e in tokens],
            sentence_begin=[b for b, _ in sentences],
            sentence_end=[e for _, e in sentences],
        )

    def _instances(self, document: Document) -> list[Instance]:
        """Works for, is based in, lives in (in its sentence, and for Anna in the next one's
        town).
        """
        found = []
        words = [sentence.rstrip(".").split(" ") for sentence in document.text.split(". ")]
        for s, (person, _, _, firm, _, town) in enumerate(words):
            found += [(person, WORKS, firm), (firm, BASED, town), (person, LIVES, town)]
            if s + 1 < len(words):
                found.append((person, LIVES, words[s + 1][5]))

        def span(text: str) -> tuple[int, int]:
            at = document.text.index(text)
            return at, at + len(text)

        places = [
            Place.of_unordered_pair(document.pk, span(subject), span(object_))
            for subject, _, object_ in found
        ]
        targets = make_targets(self.corpus, places)
        rows = [
            Instance(
                target_id=targets[place],
                document=document,
                predicate=self.predicates[predicate],
                subject_begin=span(subject)[0],
                subject_end=span(subject)[1],
                object_begin=span(object_)[0],
                object_end=span(object_)[1],
            )
            for place, (subject, predicate, object_) in zip(places, found, strict=True)
        ]
        return Instance.objects.bulk_create(rows)

    def also_said(self, instances: Sequence[Instance]) -> list[Instance]:
        """Another relation of each pair, which is not true: who works for a firm founded it, who
        lives in a town was born there.
        """
        other = {WORKS: FOUNDED, LIVES: BORN}
        rows = Instance.objects.bulk_create(
            Instance(
                target_id=one.target_id,
                document_id=one.document_id,
                predicate=self.predicates[other[name]],
                subject_begin=one.subject_begin,
                subject_end=one.subject_end,
                object_begin=one.object_begin,
                object_end=one.object_end,
            )
            for one in instances
            if (name := one.predicate.name) in other
        )
        self.instances += rows
        self.truth |= dict.fromkeys((one.pk for one in rows), False)
        return rows

    def system(
        self,
        name: str,
        predicts: Callable[[Instance], bool],
        *,
        team: str = "Patterns",
        confidence: Callable[[Instance], float | None] = lambda one: None,
    ) -> Submission:
        """A submission that is being judged and predicts the instances for which `predicts`
        holds."""
        row = Submission.objects.create(
            track=self.track,
            team=self.toy.teams[team],
            name=name,
            status="judging",
            file="x",
            file_name="x",
            file_size=1,
            file_digest=name,
            confirmed_at=timezone.now(),
            sampled_at=timezone.now(),
            plan={"chosen": "0.030", "options": {}},
        )
        mine = [one for one in self.instances if predicts(one)]
        types = {WORKS: ("PER", "ORG"), BASED: ("ORG", "GPE"), LIVES: ("PER", "GPE")}
        types |= {FOUNDED: ("PER", "ORG"), BORN: ("PER", "GPE")}
        Prediction.objects.bulk_create(
            Prediction(
                submission=row,
                instance=one,
                predicate=one.predicate,
                confidence=confidence(one),
                subject_type=types[one.predicate.name][0],
                object_type=types[one.predicate.name][1],
                subject_canonical_begin=one.subject_begin,
                subject_canonical_end=one.subject_end,
                object_canonical_begin=one.object_begin,
                object_canonical_end=one.object_end,
                provenance=[0, 10],
                subject_entity=0,
                object_entity=1,
                same_predicate=1,
                same_subject=1,
                subject_facts=1,
            )
            for one in mine
        )
        row.counts = {"relations": len(mine)}
        row.save()
        SamplingDistribution.objects.create(
            submission=row,
            kind="instance",
            total=len(mine),
            n=len(mine),
            overlaps={row.pk: 1 / len(mine)},
        )
        return row

    def sample(self, row: Submission, pi: float = 1.0) -> list[Target]:
        """The targets drawn for a submission, all with the same threshold."""
        batch = SampleBatch.objects.create(
            submission=row,
            distribution=row.distributions.get(),
            design="poisson",
            seed=0,
            size=1,
            stage=row.batches.count() + 1,
        )
        targets = list(Target.objects.filter(instances__predictions__submission=row).distinct())
        Threshold.objects.bulk_create(Threshold(batch=batch, target=one, pi=pi) for one in targets)
        asked = [one for one in targets if one.u < pi]
        Sample.objects.bulk_create(Sample(batch=batch, target=one, probability=pi) for one in asked)
        return sorted(asked, key=lambda one: one.u)

    def answer(
        self, targets: Sequence[Target], *, source: str = "crowd", hours_ago: float = 0
    ) -> None:
        """Labels of targets that say the truth of everything predicted of them, and that every name
        is its own.
        """
        spans = [
            (one.document_id, span)
            for one in targets
            for span in ((one.a_begin, one.a_end), (one.b_begin, one.b_end))
        ]
        mentions = make_targets(
            self.corpus, [Place("mention", document, span) for document, span in spans]
        )
        labels = [
            NewLabel(
                pk,
                {"canonical": list(place.a), "type": "PER"},
                source,
                "majority",
                3,
                f"mention:{pk}",
            )
            for place, pk in mentions.items()
        ]
        for target in targets:
            of = [one for one in self.instances if one.target_id == target.pk]
            parts = {
                f"{one.predicate.name}{'>' if one.forward else '<'}": self.truth[one.pk]
                for one in of
            }
            value = {
                "shown": sorted(parts),
                "holds": sorted(part for part, true in parts.items() if true),
            }
            labels.append(
                NewLabel(target.pk, value, source, "majority", 3, f"question:{target.pk}")
            )
        record_labels(labels)
        if hours_ago:
            Label.objects.filter(target__in=targets).update(
                created_at=timezone.now() - timedelta(hours=hours_ago)
            )

    def read_in_full(
        self,
        documents: Sequence[Document],
        marks: Callable[[Instance], bool],
        *,
        closed: bool = False,
    ) -> None:
        """Labels of documents that people read: what they mark of what is true, all names, and the
        documents' own.
        """
        inside = {one.pk for one in documents}
        marked = [
            one
            for one in self.instances
            if one.document_id in inside and self.truth[one.pk] and marks(one)
        ]
        spans = {
            (one.document_id, span)
            for one in self.instances
            if one.document_id in inside
            for span in ((one.subject_begin, one.subject_end), (one.object_begin, one.object_end))
        }
        mentions = make_targets(
            self.corpus, [Place("mention", document, span) for document, span in sorted(spans)]
        )
        whole = make_targets(self.corpus, [Place("document", pk) for pk in sorted(inside)])
        parts: dict[int, list[str]] = {}
        for one in marked:
            parts.setdefault(one.target_id, []).append(
                f"{one.predicate.name}{'>' if one.forward else '<'}"
            )
        found = [
            *(({"canonical": list(place.a), "type": "PER"}, pk) for place, pk in mentions.items()),
            *(({"shown": sorted(some), "holds": sorted(some)}, pk) for pk, some in parts.items()),
            *(({"scope": "document", "closed": closed}, pk) for pk in whole.values()),
        ]
        record_labels(
            NewLabel(pk, value, "document", "majority", 3, "read in full") for value, pk in found
        )

    def share_true(self, instances: Sequence[Instance]) -> float:
        """The share of some instances that is true."""
        return float(np.mean([self.truth[one.pk] for one in instances]))


def half_asked(data: Data, rng: np.random.Generator, *, chance: float = 0.5, u: Any = None) -> Data:
    """What is known where everything was judged, had each target been asked with this probability:
    those whose number `u` lies below it.
    """
    numbers = rng.random(data.pool.target_id.size) if u is None else u
    counts = numbers < chance
    kept = np.flatnonzero(counts[data.pool.target[data.judged]])
    pi = np.full(counts.size, chance)
    return replace(
        data,
        inclusion=replace(data.inclusion, drawn=counts, asked=pi, threshold=pi),
        judged=data.judged[kept],
        f={name: f[kept] for name, f in data.f.items()},
    )
