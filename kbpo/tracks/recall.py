"""What a kind says besides if documents are read in full on its tracks, so that it has recall.

Only rooms that deal with annotated documents ask for it (`recall_of`): sampling of documents,
recall in evaluation, and the questions about whole documents.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kbpo.instances.merge import Value
from kbpo.instances.targets import Place
from kbpo.tracks.base import QuestionDraft, Track
from kbpo.tracks.registry import kind_of
from scoring.documents import Facts

NAME, RELATION = "name", "relation"
"""What is asked for in a document that is annotated whole: first every name (`mentions_question`),
then every relation between these (`relations_question`)"""

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from kbpo.corpus.models import Document
    from kbpo.tracks.models import Track as TrackRow


@dataclass(frozen=True)
class Found:
    """A true fact that readers of a whole document marked."""

    document: int
    key: str
    title: str
    claim: list[tuple[str, str]]
    """As a sentence, in pieces: (role, text)"""
    record: dict[str, Any]
    """The same for programs, as files of runs call things"""
    facets: Mapping[str, str]
    """By which of the kind's facets it is chosen -> its value, as addresses call it"""

    @property
    def anchor(self) -> str:
        """Return the HTML id of the fact within its document."""
        places = [
            str(end) for value in self.record.values() if isinstance(value, list) for end in value
        ]
        return "-".join(["fact", *places, *self.facets.values()])

    def is_about(self, name: str) -> bool:
        """Return whether one of its mentions contains the name."""
        called = name_matcher(name)
        return any(called(text) for role, text in self.claim if role)


@dataclass(frozen=True)
class Marks:
    """The marks of annotation files in whole documents."""

    values: Mapping[str, Iterator[tuple[Place, Value]]]
    """What is marked, in words for people -> what labels say of it, streamed, to be read in this
    order
    """
    lacking: Mapping[Any, int]
    """What relations name without its being marked -> the line that names it first; known once all
    values are read"""


def fold_name(name: str) -> str:
    """Return a name for comparison: lower case, with single spaces."""
    return " ".join(name.split()).casefold()


def name_matcher(name: str) -> Callable[[str], bool]:
    """Return whether a text contains the words of a name, one after the other."""
    sought = re.compile(rf"(?<!\w){re.escape(fold_name(name))}(?!\w)")
    # Kept, for mentions are called alike.
    return cache(lambda text: sought.search(fold_name(text)) is not None)


class TrackWithRecall(Track):
    """A kind of evaluation whose documents can be annotated whole."""

    recall_criteria: ClassVar[tuple[str, ...]]
    found_also: ClassVar[Mapping[str, str]] = {}
    """A criterion with recall -> another one that a prediction has to meet too, to have found a
    fact: that a relation holds is what readers marked, how it is linked is not"""
    found_facets: ClassVar[tuple[str, ...]] = ()
    """By which of its facets what readers found is chosen, too"""
    found_columns: ClassVar[tuple[str, ...]]
    """What a record of what readers found has (`Found.record`), in this order"""

    @abstractmethod
    def read_facts(
        self,
        instances: NDArray[np.int64],
        submissions: list[int],
        annotated: list[int],
        entered: list[int] | None = None,
    ) -> Facts:
        """Return the facts that recall is computed from; those of the submissions that have
        `entered` count, or all.
        """

    @abstractmethod
    def in_scope(self, target_ids: Sequence[int]) -> set[int]:
        """Return the targets among these that are in the scope of recall."""

    @abstractmethod
    def read_marks(self, gold: Path, mentions: Path, documents: Collection[int]) -> Marks:
        """Read the annotations of these documents from the two files, which may cover more
        documents, and return them. Raises CannotLoad (kbpo.corpus.load), in part only while values
        are read: then none may be stored.
        """

    @abstractmethod
    def facts_with_systems(
        self, documents: list[int], systems: list[int], *, public: bool
    ) -> list[tuple[Found, set[int]]]:
        """Return the true facts of documents that were read in full, in text order, each with the
        systems that predict it. With `public`, only public labels are used.
        """

    @abstractmethod
    def read_entities(self, documents: Sequence[int], when: datetime) -> dict[str, int]:
        """Return a mapping: name -> code of its entity, of all entities of the world that people
        had found in these documents by then.
        """

    @abstractmethod
    def mentions_question(self, document: Document) -> QuestionDraft:
        """Return the first question about a document that is annotated whole."""

    @abstractmethod
    def relations_question(self, document: Document, question: int) -> QuestionDraft | None:
        """Return the second question, about relations between the mentions of the first question's
        labels; None if there are none.
        """

    def tiebreak_questions(self, document: Document, question: int) -> Iterable[QuestionDraft]:
        """Return a question for one further annotator about each thing on which the readers of that
        question disagreed, once however often it is named; none by default.
        """
        return ()

    @abstractmethod
    def store_facts(self, question: int) -> int:
        """Store each fact in the labels of that question as an instance, and return how many there
        are.
        """


def recall_of(track: TrackRow) -> TrackWithRecall | None:
    """Return the kind of a track, if it has recall; None otherwise."""
    kind = kind_of(track)
    return kind if isinstance(kind, TrackWithRecall) else None


def recall_criteria(track: TrackRow) -> tuple[str, ...]:
    """Return the criteria that have recall on a track; none if its kind has not."""
    kind = recall_of(track)
    return kind.recall_criteria if kind is not None else ()


def kind_with_recall(track: TrackRow) -> TrackWithRecall:
    """Return the kind of a track on which documents are read in full. Raises LookupError for any
    other: nothing but such a track ever gets as far as asking.
    """
    kind = recall_of(track)
    if kind is None:
        raise LookupError(f"On {track.name} no documents are read in full.")
    return kind
