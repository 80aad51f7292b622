"""A small world in which precision is known: teams upload, people who are always right judge, teams
upload again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
from django.db import connection
from kept import kept

from kbpo.corpus.models import Document
from kbpo.evaluation.due import finished_submissions
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Instance
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.money.spend import spend_money
from kbpo.sampling import draw, plan
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Prediction, Submission
from scoring.report import Figure
from tests.conftest import Toy
from tests.reports import figure_of

PART = "per:place_of_birth>"
T = TypeVar("T")


@dataclass
class Replay:
    """Relations numbered from 0, each on a pair of its own, spread evenly over documents; `true`
    says which hold.
    """

    toy: Toy
    true: np.ndarray[Any, Any]
    documents: list[Document]
    target: list[int]
    instance: list[int]
    costs: Decimal = Decimal(0)
    """What an answer takes of what was set aside for whoever pays for it"""

    @classmethod
    def of(
        cls,
        toy: Toy,
        n: int,
        share: float,
        *,
        design: str = "poisson",
        documents: int = 8,
        seed: int = 2,
    ) -> Replay:
        """n relations of which a share holds; all that is random is the seed's."""
        random = np.random.default_rng(seed)
        toy.track.design, toy.track.criterion, toy.track.distribution = (
            design,
            "relation",
            "instance",
        )
        toy.track.distributions = ["instance"]
        # A study: nothing is hidden, so that every number is stored.
        toy.track.is_study, toy.track.owner = True, toy.teams["Patterns"]
        toy.track.save()
        toy.corpus.n_documents = documents
        toy.corpus.save()
        texts = ["ab " * (2 * n)] * documents
        rows = [
            Document.objects.create(
                corpus=toy.corpus,
                key=f"w{at}",
                title="",
                text=text,
                token_begin=[0],
                token_end=[2],
                sentence_begin=[0],
                sentence_end=[len(text)],
            )
            for at, text in enumerate(texts)
        ]
        spans = [((6 * at, 6 * at + 2), (6 * at + 3, 6 * at + 5)) for at in range(n)]
        of = [rows[at % documents] for at in range(n)]
        places = [
            Place.of_unordered_pair(row.pk, *pair) for row, pair in zip(of, spans, strict=True)
        ]
        found = make_targets(toy.corpus, places)
        target = [found[place] for place in places]
        _set_u(target, random.random(n))
        mentions = [
            Place("mention", row.pk, span)
            for row, pair in zip(of, spans, strict=True)
            for span in pair
        ]
        of_mention = make_targets(toy.corpus, mentions)
        record_labels(
            NewLabel(
                of_mention[one], {"canonical": list(one.a)}, "crowd", "majority", 3, "question:0"
            )
            for one in mentions
        )
        _analyse()
        made = Instance.objects.bulk_create(
            Instance(
                target_id=pk,
                document=row,
                subject_begin=a[0],
                subject_end=a[1],
                object_begin=b[0],
                object_end=b[1],
                predicate=toy.predicates["per:place_of_birth"],
            )
            for pk, row, (a, b) in zip(target, of, spans, strict=True)
        )
        return cls(toy, random.random(n) < share, rows, target, [one.pk for one in made])

    @classmethod
    def judged(cls, toy: Toy, n: int, share: float, **options: Any) -> tuple[Replay, Submission]:
        """The same with a run of Patterns on the board that predicts all relations: it is played
        once a process.
        """

        def play() -> tuple[Replay, Submission]:
            world = cls.of(toy, n, share, **options)
            return world, world.judge(world.upload("Patterns", range(n)))

        return cls.once(toy, f"{n} relations, {share} of them true, judged, {options}", play)

    @staticmethod
    def once(toy: Toy, name: str, play: Callable[[], tuple[Replay, T]]) -> tuple[Replay, T]:
        """What `play` gives, played once a process; what a test changes in its toy, it sees."""
        world, rest = kept(name, play)
        vars(toy).update(vars(world.toy))
        world.toy = toy
        return world, rest

    def upload(self, team: str, which: Iterable[int]) -> Submission:
        """A planned submission of a team that predicts these relations."""
        row = self.store(team, which, status="read")
        _analyse()
        plan.tick()
        row.refresh_from_db()
        assert row.status == "planned", row.reason
        return row

    def store(self, team: str, which: Iterable[int], **fields: Any) -> Submission:
        """A submission of a team that predicts these relations."""
        instances = Instance.objects.in_bulk([self.instance[at] for at in which])
        return self.store_instances(team, list(instances.values()), **fields)

    def store_instances(self, team: str, stated: list[Instance], **fields: Any) -> Submission:
        """A submission of a team that predicts these instances."""
        row = Submission.objects.create(
            track=self.toy.track,
            team=self.toy.teams[team],
            name=f"run {Submission.objects.count()}",
            file="x",
            file_name="x",
            file_size=1,
            target_half_width="0.050",
            counts={"relations": len(stated)},
            user=self.toy.users["Rosa" if team == "Patterns" else "Tim"],
            **fields,
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
            for one in stated
        )
        return row

    def judge(self, row: Submission) -> Submission:
        """The submission on the board: confirmed, drawn and judged in stages until it is enough."""
        confirm_plan(row, self.toy.users["Admin"])
        return self.until_scored(row)

    def until_scored(self, row: Submission) -> Submission:
        """The confirmed submission on the board: drawn and judged in stages until it is enough."""
        for _ in range(12):
            self.stage(row)
            if row.status == "scored":
                return row
        raise AssertionError(f"still {row.status}: {row.reason}")

    def stage(self, row: Submission) -> None:
        """One stage of everybody's judging: drawn, answered, estimated."""
        draw.tick()
        if self.costs:
            self._pay()
        self.answer()
        _analyse()
        score_track(self.toy.track, finished_submissions(self.toy.track))
        row.refresh_from_db()

    def _pay(self) -> None:
        """Nothing; every answer that is waited for is paid, once."""
        waiting = Sample.objects.filter(target__labels__isnull=True, pays=True)
        for one in waiting.select_related("batch__submission"):
            purpose = one.batch.submission.purpose
            spend_money(self.toy.track, purpose, self.costs, key=f"answer:{one.target_id}")

    def answer(self, most: int | None = None) -> int:
        """How many of the targets that wait were answered, rightly, in the order of u."""
        waiting = (
            Sample.objects.filter(target__labels__isnull=True)
            .order_by("target__u")
            .values_list("target", flat=True)
        )
        return self.answer_of(list(dict.fromkeys(waiting))[:most])

    def answer_of(self, targets: Iterable[int]) -> int:
        """How many of these targets were answered, rightly: all of them."""
        which = {pk: at for at, pk in enumerate(self.target)}
        return record_labels(
            NewLabel(
                pk,
                {"shown": [PART], "holds": [PART] if self.true[which[pk]] else []},
                "crowd",
                "majority",
                3,
                "q",
            )
            for pk in targets
        )

    def truth(self, which: Iterable[int]) -> float:
        """The precision of a run that predicts these relations."""
        return float(self.true[list(which)].mean())

    def number(
        self, row: Submission, quantity: str = "precision", criterion: str = "relation"
    ) -> Figure:
        """What is printed for a submission."""
        of = {"quantity": quantity, "criterion": criterion, "method": "centred"}
        return figure_of(self.toy.track.evaluations.latest("number"), row, **of)


def _set_u(targets: list[int], u: np.ndarray[Any, Any]) -> None:
    """Nothing; the targets have these random numbers, so that a test does not depend on their
    primary keys.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE instances_target t SET u = n.u FROM unnest(%s::bigint[], %s::float8[]) AS n"
            " (id, u) WHERE t.id = n.id",
            [targets, u.tolist()],
        )


def _analyse() -> None:
    """Nothing; PostgreSQL knows how large the tables are, which within one transaction it would
    never notice.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE instances_target, instances_label, instances_instance, submissions_prediction,"
            " sampling_sample, sampling_threshold"
        )
