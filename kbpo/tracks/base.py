"""The contract of a track: what a new kind of evaluation must say. Copy `kbp/` to add one; then add
one line to
`registry.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

Answers: TypeAlias = "Mapping[int, Mapping[int, Mapping[str, Any]]]"
"""target -> what somebody said when asked about it: target (itself, its mentions) -> value"""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbpo.corpus.models import Corpus, Document
    from kbpo.tracks.models import Track as TrackRow


class Unusable(Exception):
    """A file of which nothing can be used; the text is a sentence for its owner."""


@dataclass(frozen=True)
class QuestionDraft:
    """What is to be asked about one target: which interface shows it, what the page needs, the set
    that is shown.
    """

    target_id: int
    interface: str
    payload: dict[str, Any]
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Facts:
    """What recall needs besides the draws."""

    fact: NDArray[np.int64]
    """(u,) code of the fact that the instance states"""
    in_scope: NDArray[np.bool_]
    """(u,) both mentions lie within the track's scope"""
    pool_weight: NDArray[np.float64]
    """(u,) 1 / number of instances of the pool that state the same fact"""
    stated: NDArray[np.bool_]
    """(u, m) the submission states the fact"""
    document: NDArray[np.int64]
    """(t,) code 0 … n_annotated − 1 of the document of each true fact found by annotation"""
    predicate: NDArray[np.int64]
    """(t,) id of its predicate"""
    found: NDArray[np.bool_]
    """(t,) some submission states that fact"""
    n_annotated: int
    n_documents: int
    inside: NDArray[np.int64]
    """(u,) code of the annotated document that the instance lies in; −1: in none"""
    marked: NDArray[np.bool_]
    """(u,) annotation of its document found the fact that it states"""
    code: NDArray[np.int64]
    """(t,) its code in `fact`; -1 if no instance here states it"""
    links: NDArray[np.str_]
    """(t, 2) what people linked its subject and its object to; empty where they did not"""
    missed: NDArray[np.int64]
    """(n_annotated,) true instances of each annotated document that annotation found and no
    submission states: a fact that is marked at three pairs of mentions is three instances"""


class Track(ABC):
    """One kind of evaluation. Stateless: everything it knows comes from the row `track` and the
    database.
    """

    kind: ClassVar[str]
    criteria: ClassVar[tuple[str, ...]]
    recall_criteria: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[dict[str, str]]
    """kind of distribution -> SQL of its unnormalised weight, over the columns of a prediction
    aliased `p`."""

    def __init__(self, track: TrackRow) -> None:
        self.track = track

    @property
    def corpus(self) -> Corpus:
        return self.track.corpus

    @abstractmethod
    def new_report(self) -> Any:
        """An empty report, for `read` to write to. Iterating it gives the kept messages (`code`,
        `severity`, `line`,
        `text`, `line_text`, `culprit`); `by_severity` and `by_code` count all of them."""

    @abstractmethod
    def read(self, path: str, report: Any, progress: Callable[[float], None]) -> Iterable[Any]:
        """Yields the claims of an uploaded file, streamed; writes what it noticed to `report`, and
        tells `progress` the share that was read.
        """

    @abstractmethod
    def store(self, submission_id: int, claims: Iterable[Any], report: Any) -> dict[str, Any]:
        """Stores what `read` gave as Targets, Instances and Predictions (COPY) and returns counts
        for people (relations, set_aside, documents, entities, lines …), and `door` and `run_id` of
        the file. Runs inside the caller's transaction. Raises Unusable; what was stored until then
        is for the caller to roll back.
        """

    def weights(self, distribution: str) -> str:
        """SQL of the unnormalised weight of a prediction `p` under a distribution; KeyError for any
        other.
        """
        return self.distributions[distribution]

    @abstractmethod
    def questions(
        self, target_ids: Sequence[int], submissions: Sequence[int]
    ) -> Iterable[QuestionDraft]:
        """Yields what must be asked about targets so that these submissions' predictions can be
        judged; nothing for a target whose labels already answer that. What is shown says nothing
        about who claims what.
        """

    @abstractmethod
    def judge(
        self, instances: NDArray[np.int64], submissions: Sequence[int]
    ) -> dict[str, NDArray[np.float64]]:
        """Right (1.0), wrong (0.0) or missing (NaN) per criterion, shape (n, m): each instance as
        each submission states it. Where a submission does not state it, missing or not is all that
        counts.
        """

    def again(self, target_ids: Sequence[int]) -> Iterable[QuestionDraft]:
        """Yields one question about each target that asks all of what was asked of it, as if nobody
        had answered yet: for experts. Nothing, if this kind of track cannot be checked.
        """
        return ()

    def rejudge(
        self, instances: NDArray[np.int64], submissions: Sequence[int], answers: Answers
    ) -> dict[str, NDArray[np.float64]]:
        """As `judge`, but each target by its own answer alone in the place of what labels say of it
        and its mentions; missing where the answer says nothing, which is everywhere if this kind of
        track cannot be checked.
        """
        return {
            criterion: np.full((instances.size, len(submissions)), np.nan)
            for criterion in self.criteria
        }

    def self_claims(self, submissions: Sequence[int]) -> dict[int, float]:
        """Of each submission, the share of its mentions of entities that it claims to be their own
        canonical ones; none where mentions are not linked.
        """
        return {}

    def facts(
        self, instances: NDArray[np.int64], submissions: list[int], annotated: list[int]
    ) -> Facts | None:
        """What recall needs besides the draws; None if this kind of track has no recall."""
        return None

    def in_scope(self, target_ids: Sequence[int]) -> set[int]:
        """Those of some targets whose relations recall asks for; none if this kind of track has no
        recall.
        """
        return set()

    def mentions_question(self, document: Document) -> QuestionDraft | None:
        """What is asked first of a document that is annotated whole; None if this kind of track has
        no such thing.
        """
        return None

    def relations_question(self, document: Document, origin: str) -> QuestionDraft | None:
        """What is asked then, between the mentions whose labels have that origin; None if there is
        nothing to ask.
        """
        return None

    def store_facts(self, origin: str) -> int:
        """How many facts the labels of that origin hold; each is an instance from then on, whoever
        claims it.
        """
        return 0

    def baseline(self) -> Path | None:
        """Path of a short script that anybody can run and whose output this track takes; None if
        this kind has none.
        """
        return None

    def baseline_output(self) -> Iterator[str]:
        """Yields the lines that the script would write for this track's corpus."""
        return iter(())

    @abstractmethod
    def unanswered(self, of: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
        """For submissions and some targets of each: those with a prediction of that submission that
        no label judges yet, and that nobody has given up: what a sample of them would have to ask
        and pay.
        """
