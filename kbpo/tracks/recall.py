"""What a kind says besides if documents are read in full on its tracks, so that it has recall.

Only rooms that deal with annotated documents ask for it (`recall_of`): sampling of documents,
exhaustive follow-ups, recall in evaluation, and the questions about whole documents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kbpo.tracks.base import QuestionDraft, Track
from kbpo.tracks.registry import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbpo.corpus.models import Document
    from kbpo.tracks.models import Track as TrackRow


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


class TrackWithRecall(Track):
    """A kind of evaluation whose documents can be annotated whole."""

    recall_criteria: ClassVar[tuple[str, ...]]

    @abstractmethod
    def facts(
        self, instances: NDArray[np.int64], submissions: list[int], annotated: list[int]
    ) -> Facts:
        """What recall needs besides the draws."""

    @abstractmethod
    def in_scope(self, target_ids: Sequence[int]) -> set[int]:
        """Those of some targets whose relations recall asks for."""

    @abstractmethod
    def mentions_question(self, document: Document) -> QuestionDraft:
        """What is asked first of a document that is annotated whole."""

    @abstractmethod
    def relations_question(self, document: Document, origin: str) -> QuestionDraft | None:
        """What is asked then, between the mentions whose labels have that origin; None if there is
        nothing to ask.
        """

    @abstractmethod
    def store_facts(self, origin: str) -> int:
        """How many facts the labels of that origin hold; each is an instance from then on, whoever
        claims it.
        """


def recall_of(track: TrackRow) -> TrackWithRecall | None:
    """The kind of a track, if it has recall; None otherwise."""
    kind = kind_of(track)
    return kind if isinstance(kind, TrackWithRecall) else None


def recall_criteria(track: TrackRow) -> tuple[str, ...]:
    """The criteria that have recall on a track; none if its kind has not."""
    kind = recall_of(track)
    return kind.recall_criteria if kind is not None else ()


def kind_with_recall(track: TrackRow) -> TrackWithRecall:
    """The kind of a track on which documents are read in full. Raises LookupError for any other:
    nothing but such a track ever gets as far as asking.
    """
    kind = recall_of(track)
    if kind is None:
        raise LookupError(f"On {track.name} no documents are read in full.")
    return kind
