"""What kinds have in common whose targets are wholes by themselves: a text, an answer, an output.

Each is asked about once, in one interface; what people say of it are ratings in [0, 1] that
accumulate (`ratings.py`), a verdict is their mean or what most say. A kind adds how its files are
read, what a question carries, and its words.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Target
from kbpo.tracks.base import (
    DEFAULT,
    Answers,
    Column,
    Distribution,
    Judged,
    Quantity,
    QuestionDraft,
    Track,
    Verdicts,
)
from kbpo.tracks.content import explore
from kbpo.tracks.content.ratings import (
    NOBODY,
    NOTHING,
    Rated,
    noise_of,
    rated,
    seconded,
    targets_of,
)
from kbpo.tracks.content.store import contents
from scoring.arrays import Ids
from scoring.data import LIKE, Noise

SECOND_SHARE, FEWEST_SECOND, MOST_SECOND = Decimal("0.05"), 20, 40
"""Second opinions cost what metrics save (with a fifth the plain mean was as good as the product
with all metrics), but below 20 pairs annotator noise is not separable."""


class ContentTrack(Track):
    """A kind of evaluation whose targets are wholes by themselves."""

    distributions: ClassVar[dict[str, Distribution]] = {
        "instance": Distribution("Every item", "1.0::float8")
    }
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("mean", "Mean", "M", "better"),)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mean", "mean", DEFAULT, "first"),
        Column("mean_unaided", "mean", "unaided", "beneath", "people alone", "mean"),
        Column("mean_expert", "mean", "expert", "beneath", "corrected", "mean"),
        Column("mean_algorithm_1", "mean", "algorithm_1", "published", "Algorithm 1"),
    )
    n_beside: ClassVar[int] = 2
    rates: ClassVar[bool] = True
    population: ClassVar[str] = LIKE
    unchecked: ClassVar[str] = ""
    second_share: ClassVar[Decimal | None] = Decimal("0")
    """Share of the targets, at random, about which one more person is asked: what people differ by
    is learnt from these alone. None: 5 %, at least 20 and at most 40 on a track"""

    @abstractmethod
    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        """What a question about each of these targets carries, by its number: all that the page
        needs, and nothing about who says it.
        """

    def second_opinions(self, new: int, before: int = 0) -> int:
        if self.second_share is not None:
            return math.ceil(self.second_share * new)
        wanted = max(FEWEST_SECOND - before, math.ceil(SECOND_SHARE * new))
        return max(0, min(new, MOST_SECOND - before, wanted))

    @property
    def interface(self) -> str:
        """The interface that targets are asked about in."""
        return self.asking[0].interface

    def to_judge(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        return {pk: {"text": content["text"]} for pk, content in contents(instances).items()}

    def shown(self, targets: Sequence[int]) -> dict[int, dict[str, Any]]:
        contents_of = Target.objects.filter(pk__in=targets).values_list("pk", "content")
        return {pk: content or {} for pk, content in contents_of}

    def questions(
        self, target_ids: Sequence[int], submissions: Sequence[int]
    ) -> Iterable[QuestionDraft]:
        waiting = set().union(*self.unanswered(dict.fromkeys(submissions, target_ids)).values())
        return self._drafts([target for target in target_ids if target in waiting])

    def again(self, target_ids: Sequence[int], *, made: bool = True) -> Iterable[QuestionDraft]:
        return self._drafts(target_ids)

    def _drafts(self, target_ids: Sequence[int]) -> Iterator[QuestionDraft]:
        target_of = Target.objects.in_bulk(target_ids)
        targets = [target_of[pk] for pk in dict.fromkeys(target_ids) if pk in target_of]
        payloads = self.payloads(targets)
        for target in targets:
            yield QuestionDraft(
                target.pk,
                self.interface,
                payloads[target.pk],
                list(self.criterion_names()),
            )

    def unanswered(self, of: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
        wanted = sorted(set().union(*of.values()))
        predicted = fetch(
            "SELECT p.submission_id, i.target_id FROM instances_instance i JOIN"
            " submissions_prediction p ON p.instance_id = i.id WHERE i.target_id = ANY(%s) AND"
            " p.submission_id = ANY(%s)",
            [wanted, list(of)],
        )
        rated_of = rated(wanted)
        left: dict[int, set[int]] = {submission: set() for submission in of}
        for submission, target in predicted:
            rated_text = rated_of.get(target, NOTHING)
            if (
                target in of[submission]
                and not rated_text.unanswered
                and not self._is_answered(rated_text)
            ):
                left[submission].add(target)
        return left

    def _is_answered(self, rated_text: Rated) -> bool:
        """Whether the criterion that the track guarantees has a rating: people rate all of them,
        but a study that was done elsewhere need not.
        """
        return bool(rated_text.ratings.get(self.track.criterion))

    def judge(
        self, instances: Ids, submissions: Sequence[int], *, until: int | None = None
    ) -> dict[str, NDArray[np.float64]]:
        # A mean of ratings moves with each of them: that is no verdict that turns.
        targets = targets_of(instances)
        return self._verdicts(targets, rated(np.unique(targets).tolist()), len(submissions))

    def rejudge(
        self, instances: Ids, submissions: Sequence[int], answers: Answers
    ) -> dict[str, NDArray[np.float64]]:
        targets = targets_of(instances)
        rated_of = rated(np.unique(targets).tolist())
        for target, answer in answers.items():
            rated_of[target] = Rated(answer.get(target, {}).get("ratings", {}))
        return self._verdicts(targets, rated_of, len(submissions))

    def _verdicts(
        self, targets: Ids, rated_of: Mapping[int, Rated], m: int
    ) -> dict[str, NDArray[np.float64]]:
        """(n, m) the verdicts on each target, the same for all systems."""
        verdicts: dict[str, NDArray[np.float64]] = {}
        for criterion in self.criteria:
            values = (rated_of.get(target, NOTHING).value(criterion) for target in targets.tolist())
            column = np.fromiter(values, dtype=np.float64, count=targets.size)
            verdicts[criterion.name] = np.repeat(column[:, None], m, axis=1)
        return verdicts

    def noise(self, instances: Ids, submissions: Sequence[int] = ()) -> dict[str, Noise]:
        targets = targets_of(instances)
        rated_of = rated(np.unique(targets).tolist())
        random = seconded(rated_of)
        noise = {
            criterion.name: noise_of(targets, rated_of, criterion.name, random)
            for criterion in self.criteria
            if criterion.single == "mean"
        }
        if not self.opposes:
            return noise
        lowers = self.lowered(instances, submissions)
        # Who prefers what raises one system and lowers the other: no judge has a level of his own.
        return {
            criterion: replace(one, single=NOBODY, lowers=lowers)
            for criterion, one in noise.items()
        }

    def lowered(self, instances: Ids, submissions: Sequence[int]) -> NDArray[np.bool_]:
        """(n, m) where what is rated is another system's, beside which this one's is as much the
        worse.
        """
        return np.zeros((instances.size, len(submissions)), dtype=np.bool_)

    def opinions(self, instances: Ids) -> dict[str, list[Sequence[float]]]:
        targets = targets_of(instances).tolist()
        rated_of = rated(targets)
        random = seconded(rated_of)
        return {
            criterion.name: [
                said if target in random else said[:1]
                for target in targets
                for said in [rated_of.get(target, NOTHING).ratings.get(criterion.name, ())]
            ]
            for criterion in self.criteria
            if criterion.single == "mean"
        }

    def verdicts(
        self, submission_id: int, *, public: bool, targets: Collection[int] | None = None
    ) -> Verdicts:
        criterion = self.criterion(self.track.criterion)
        return explore.verdicts(criterion, submission_id, public=public, targets=targets)

    def describe(
        self,
        submission_id: int,
        predictions: Sequence[int],
        *,
        public: bool,
        unjudged: Collection[int] = (),
    ) -> list[Judged]:
        return explore.describe(
            self.criteria,
            self.shown,
            predictions,
            public=public,
            unjudged=unjudged,
            is_taste=self.is_taste,
        )
