"""The additional contract of kinds whose documents are read in full, so that their tracks have
recall.

Only rooms that handle annotated documents use it (`kind_with_recall_or_none`): sampling of
documents, recall in evaluation, and the questions about whole documents.
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
"""What readers of a whole document mark: first every name (`mentions_question`), then every
relation between the names (`relations_question`)"""

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
    """The fact as a sentence, in pieces: (role, text)"""
    record: dict[str, Any]
    """The fact for programs, with the keys of files of runs"""
    facets: Mapping[str, str]
    """The kind's facets that apply -> the value, as in addresses"""

    @property
    def anchor(self) -> str:
        """Return the HTML id of the fact within its document."""
        places = [
            str(end) for value in self.record.values() if isinstance(value, list) for end in value
        ]
        return "-".join(["fact", *places, *self.facets.values()])

    def is_about(self, name: str) -> bool:
        """Return whether a mention of the fact contains the name."""
        called = name_matcher(name)
        return any(called(text) for role, text in self.claim if role)


@dataclass(frozen=True)
class Marks:
    """What annotation files state about whole documents: the values of mentions and of pairs."""

    values: Mapping[str, Iterator[tuple[Place, Value]]]
    """Description of the marks -> their values for labels, to be read in this order"""
    lacking: Mapping[Any, int]
    """Mentions in relations without a mark of their own -> the first line with them; complete once
    all values are read"""


def fold_name(name: str) -> str:
    """Return a name for comparison: lower case, with single spaces."""
    return " ".join(name.split()).casefold()


def name_matcher(name: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains the words of a name consecutively."""
    sought = re.compile(rf"(?<!\w){re.escape(fold_name(name))}(?!\w)")
    # Kept, for mentions are called alike.
    return cache(lambda text: sought.search(fold_name(text)) is not None)


class TrackWithRecall(Track):
    """A kind of evaluation whose documents can be read in full."""

    recall_criteria: ClassVar[tuple[str, ...]]
    found_also: ClassVar[Mapping[str, str]] = {}
    """A criterion with recall -> another criterion that a prediction must meet to have found a
    fact, since readers mark that a relation holds, not how it is linked"""
    found_facets: ClassVar[tuple[str, ...]] = ()
    """Facets by which facts of readers can be filtered, too"""
    found_columns: ClassVar[tuple[str, ...]]
    """Columns of a record of a reader's fact (`Found.record`), in order"""

    @abstractmethod
    def read_facts(
        self,
        instances: NDArray[np.int64],
        submissions: list[int],
        annotated: list[int],
        entered: list[int] | None = None,
    ) -> Facts:
        """Return the facts from which recall is computed. Only facts of the submissions in
        `entered` are counted (by default all).
        """

    @abstractmethod
    def targets_in_scope(self, target_ids: Sequence[int]) -> set[int]:
        """Return the targets whose mentions are close enough for recall (the scope of the
        track).
        """

    @abstractmethod
    def read_marks(self, gold: Path, mentions: Path, documents: Collection[int]) -> Marks:
        """Read the annotations of these documents from the two files, which may cover more
        documents, and return them. Raises CannotLoad (kbpo.corpus.load), sometimes only while
        values are read: then none may be stored.
        """

    @abstractmethod
    def facts_with_systems(
        self, documents: list[int], systems: list[int], *, public: bool
    ) -> list[tuple[Found, set[int]]]:
        """Return the true facts of documents that were read in full, in text order, each with the
        systems that predict it. With `public`, only public labels are used.
        """

    @abstractmethod
    def read_entities(self, documents: Sequence[int], moment: datetime) -> dict[str, int]:
        """Return name -> code of its entity, for all entities that people had found in these
        documents by then.
        """

    @abstractmethod
    def mentions_question(self, document: Document) -> QuestionDraft:
        """Return the first question about a document that is read in full."""

    @abstractmethod
    def relations_question(self, document: Document, question: int) -> QuestionDraft | None:
        """Return the second question, about relations between the mentions of the first question's
        labels; None if there are none.
        """

    def tiebreak_questions(self, document: Document, question: int) -> Iterable[QuestionDraft]:
        """Return a question for one more annotator about each entity on whose mentions the readers
        disagreed, once for several mentions; none by default.
        """
        return ()

    @abstractmethod
    def store_facts(self, question: int) -> int:
        """Store each fact in the labels of that question as an instance, and return their
        number.
        """


def kind_with_recall_or_none(track: TrackRow) -> TrackWithRecall | None:
    """Return the kind of a track if it has recall; None otherwise."""
    kind = kind_of(track)
    return kind if isinstance(kind, TrackWithRecall) else None


def recall_criteria(track: TrackRow) -> tuple[str, ...]:
    """Return the criteria for which a track has recall; empty if its kind has none."""
    kind = kind_with_recall_or_none(track)
    return kind.recall_criteria if kind is not None else ()


def kind_with_recall(track: TrackRow) -> TrackWithRecall:
    """Return the kind of a track on which documents are read in full. Raises LookupError for other
    tracks, which should never be asked for it.
    """
    kind = kind_with_recall_or_none(track)
    if kind is None:
        raise LookupError(f"On {track.name} no documents are read in full.")
    return kind
