"""The contract of a track: everything that depends on the kind of evaluation, so that no other code
asks for the kind.

A kind defines how its files are read and stored, what is judged (criteria), what is printed
(quantities, in columns), which distributions weight the predictions, the questions and their
prices, how answers become verdicts, the features of the model, the slices of scores, the contents
of the explorer, and the words on pages. Copy `kbp/` or `texts/` to add one; then add one line to
`registry.py`. A kind whose documents are read in full, so that it has recall, is a
`kbpo.tracks.recall.TrackWithRecall`; one whose targets are texts is a
`kbpo.tracks.texts.track.TextTrack`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from formats.messages import Report
from kbpo.corpus.export import corpus_lines
from kbpo.instances.merge import Statement, Value, merge_latest_parts
from kbpo.tracks.measures import Measures
from scoring.data import LIKE, THESE, Noise

Answers: TypeAlias = "Mapping[int, Mapping[int, Mapping[str, Any]]]"
"""target asked about -> (the target itself or one of its mentions -> value)"""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbpo.corpus.models import Corpus
    from kbpo.instances.models import Target
    from kbpo.tracks.models import Track as TrackRow


ENTITY = "entity"
"""URL parameter for the name of an entity, if predictions are about entities"""


class Unusable(Exception):
    """Raised for a file without any usable content; the text is a sentence for its owner."""


class Waits(Exception):
    """Raised for a file that cannot be used before another one arrives; the text is a sentence for
    its owner. Its stored contents are kept.
    """


@dataclass(frozen=True)
class Words:
    """The words that pages use for this kind of track."""

    item: str
    """One prediction of a system: “relation”"""
    items: str
    system: str
    """The uploaded object, with article: “a knowledge base”"""
    file: str
    """Label of the upload field: “Knowledge base file”"""
    offer: str
    """Headline above the board: the benefit of an upload"""
    promise: str
    """The sentence below the headline"""
    description: str
    """Description of the board for search engines"""
    format: str = ""
    """The format of a file, in a sentence"""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of a line of a file -> their meaning, if lines have fields"""
    packed: str = "It may be packed with gzip; its first bytes tell, whatever its ending."
    doors: Mapping[str, str] = field(default_factory=dict)
    """Formats of files (`door` of `Track.ingest_file`) -> their names"""
    input: str = "document"
    inputs: str = "documents"
    """The inputs of systems"""
    downloaded: str = "texts with tokens and sentences"
    """Contents of the file of inputs, shown after their number"""
    schema: str = ""
    """Description of the schema for participants; empty if there is none"""
    published: str = "As published"
    """Heading of the column of figures for comparison"""
    published_long: str = "As published"
    """The same heading where the column is folded on a phone"""
    stratum: str = "group"
    """Name of the slices by which systems are compared, if slices are strata"""
    strata: str = "groups"
    share: str = "share that is right"
    """Name of the mean of verdicts about some items, shown after the figure"""
    share_of: str = "right"
    kind: str = ""
    """Subject of tracks of this kind: “relations in documents”"""
    once: str = ""
    """Sentence on what is asked about and counted once, if that is not a single item"""
    together: str = ""
    """What people are asked about together, if that judges several items: “mentions”"""
    entity: str = ""
    """Label of the search field for predictions about an entity; empty if predictions are not about
    entities, and cannot be searched by words or keys either (`Track.find_predictions`)"""
    unanswered: str = (
        "Those that were answered stand for them: their chances are multiplied by the share that"
        " was answered."
    )
    """Treatment of targets that nobody could answer about"""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Part of a prediction that can be wrong -> its name on pages"""
    unchecked: str = ""
    """Sentence on why experts cannot repeat a question (`Track.draft_questions`, `Track.judge`);
    empty if they can"""
    described: str = "which systems say a thing, and how sure they are"
    """Features of the model, after “what is free:”"""

    @property
    def populations(self) -> dict[str, str]:
        """Return the populations that numbers can be about -> the start of a page's heading and its
        title.
        """
        return {LIKE: f"{self.inputs} like these", THESE: f"these {self.inputs} alone"}


@dataclass(frozen=True)
class Asking:
    """How people are asked about targets by default: the interface, the pay, the expected time and
    the number of people.
    """

    interface: str
    reward: Decimal
    """Dollars for one answer, in whole cents. The `terms` of the interface have the same amount,
    for the tutorial, the try page and interfaces that no track asks through"""
    seconds: int
    """Expected seconds for one answer"""
    people: int = 3
    """Number of answers to one question"""
    extra: Decimal = Decimal("0.00")
    """Extra pay for an answer that took more work, as its interface decides"""

    def __post_init__(self) -> None:
        if any(sum_ != round(sum_, 2) for sum_ in (self.reward, self.extra)):
            raise ValueError(f"{self.interface} is paid in whole cents, not {self.reward}.")


@dataclass(frozen=True)
class Pages:
    """Names of a kind's own templates; empty for the shared ones."""

    board_notes: str = "tracks/board_notes.html"
    """Below the board: the meaning of its figures"""
    board_end: str = ""
    """At the end of the page, in columns"""
    formats: str = "tracks/formats.html"
    """The format of a file, on the upload page"""
    facts: str = "tracks/upload_facts.html"
    """The contents of the track, on the upload page"""
    more: str = ""
    """The full contents of the track, on the upload page; empty if there are none"""
    about: str = "tracks/about.html"
    """What is judged, on the track's public page"""
    claim: str = "tracks/claim.html"
    """A prediction in a line; the context has `one`, a Judged"""
    judged: str = "tracks/judged.html"
    """A prediction with its question and judgments"""
    parts: str = "tracks/parts.html"
    """In a line: which parts of a prediction are right, or its ratings"""


@dataclass(frozen=True)
class QuestionDraft:
    """An unsaved question about one target: its interface, the payload of its page, and the parts
    (directed relations) that the page shows.
    """

    target_id: int
    interface: str
    payload: dict[str, Any]
    shown: list[str] = field(default_factory=list)
    people: int | None = None
    """Number of people who are asked; None: the track's number"""


@dataclass(frozen=True)
class PoolColumns:
    """SQL for the features of an instance, over a prediction `p`, its instance `i` and target `t`.
    A column that a kind does not have is constant.
    """

    document: str = "0::bigint"
    """The document of an instance that can be read in full"""
    stratum: str = "0::bigint"
    """Stratum of equally hard instances: within it, answered ones represent unanswered ones"""
    types: str = "''"
    subject: str = "0::bigint"
    """Number of the instance's subject within its document"""
    object: str = "0::bigint"
    input: str = "t.id"
    """Number of the instance's input; ratings for one input are correlated"""


@dataclass(frozen=True)
class Group:
    """A group of slices by which scores are always broken down: one for each value of a trait."""

    label: str
    trait: str
    values: tuple[str, ...] = ()
    """The values in display order; empty: all values that occur, in alphabetical order"""
    words: Mapping[str, str] = field(default_factory=dict)
    """Value -> its label on pages, if that differs from its name"""
    strata: bool = False
    """Whether each value is a stratum (`PoolColumns.stratum`), whose slice may have recall too"""


@dataclass(frozen=True, eq=False)
class Trait:
    """A trait by which scores of n instances are broken down: the names of its values, and the
    value of each instance.
    """

    names: NDArray[np.str_]
    code: NDArray[np.int64]
    """(n,) index in `names`"""

    def is_any_of(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which instances have one of the chosen values of the trait."""
        inside: NDArray[np.bool_] = chosen[self.code]
        return inside


@dataclass(frozen=True)
class Facet:
    """A filter of the explorer for predictions, judged or not."""

    name: str
    """Name in addresses and in the API"""
    label: str
    column: str
    """Column of a prediction with the value"""
    called: Callable[[Corpus], Mapping[Any, tuple[str, str]]] = lambda corpus: {}
    """Value -> its names in addresses and on pages, if they differ from the value"""


@dataclass(frozen=True)
class Metric:
    """A metric that is computed for each output: its name, its title on pages, its version (of the
    library, its settings and our preprocessing). Another version is another metric.
    """

    name: str
    label: str
    version: str
    circular: bool = field(default=False, kw_only=True)
    """Whether it compares a reference with itself, and so is meaningless for references"""


@dataclass(frozen=True, eq=False)
class Duels:
    """The n judgments that compare two systems: the columns of both systems, and which of them is
    better.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    outcome: NDArray[np.float64]
    """(n,) 1: left is better; 0: right is better; ½: tie"""
    cluster: NDArray[np.int64]
    """(n,) the input; judgments of one input are correlated"""


@dataclass(frozen=True)
class Verdicts:
    """The public judgments of a submission's predictions, one entry per judged prediction."""

    prediction: list[int]
    value: NDArray[np.float64]
    """(n,) the verdict, in [0, 1]; NaN if a part of it is missing"""
    split: NDArray[np.bool_]
    """(n,) whether the annotators disagreed"""
    parts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Part of a prediction -> the same for this part; NaN if unknown"""

    def select_predictions(self, mask: NDArray[np.bool_]) -> Verdicts:
        """Return these verdicts for the selected predictions only."""
        return Verdicts(
            [one for one, is_in in zip(self.prediction, mask, strict=True) if is_in],
            self.value[mask],
            self.split[mask],
            {name: values[mask] for name, values in self.parts.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One prediction with its judgments, for `Pages.claim` and `Pages.judged`; kinds add fields for
    their own templates.
    """

    prediction: Any
    """The stored prediction"""
    document: Any = None
    """Its document; None if the kind has no documents"""
    right: bool | None = None
    """True or False if the verdict is 1 or 0; None if it is neither, or unknown"""
    votes: str = ""
    """The votes of annotators, in words"""
    source: str = ""
    """Source of the current label: crowd, expert, import, document"""
    dispute: Any = None
    """The team's dispute of the judgment, with its result"""
    disputable: bool = False
    undisputed: str = ""
    """Sentence on why its team cannot dispute it"""

    @property
    def claim_text(self) -> str:
        """Return the claim as plain text, for the title of its page."""
        return ""

    @property
    def claim_begin(self) -> int:
        """Return the position of the claim in its document; a document's page lists claims in this
        order.
        """
        return 0

    @property
    def places(self) -> list[tuple[int, int]]:
        """Return the spans of the names in the claim."""
        return []

    @property
    def is_judged(self) -> bool:
        """Return whether people judged the claim, as right, wrong or neither."""
        return self.right is not None

    def extra_page_values(self) -> Any:
        """Return the additional values of `Pages.judged`, its variable `more`."""
        return None

    def as_json(self) -> dict[str, Any]:
        """Return the judged prediction as JSON; a kind adds the names that its files use."""
        return {
            "prediction": self.prediction.pk,
            "line": self.prediction.line,
            "confidence": self.prediction.confidence,
            "right": self.right,
            "votes": self.votes,
            "source": self.source,
        }


class Track(ABC):
    """One kind of evaluation. Stateless: all data come from the row `track` and the database."""

    kind: ClassVar[str]
    target_kind: ClassVar[str]
    """Kind of its targets in their table; at most 16 characters"""
    measures: ClassVar[Measures]
    """The criteria that are judged, and the quantities that are printed"""
    asking: ClassVar[tuple[Asking, ...]]
    """How people are asked about targets; the first one determines the price of a plan"""
    words: ClassVar[Words]
    pages: ClassVar[Pages] = Pages()
    pool: ClassVar[PoolColumns] = PoolColumns()
    groups: ClassVar[dict[str, Group]] = {}
    """Groups of slices by which scores are always broken down"""
    facets: ClassVar[tuple[Facet, ...]] = ()
    """Filters of the explorer for predictions"""
    metrics: ClassVar[Sequence[Metric]] = ()
    """Metrics that are computed for each prediction (`compute_metrics`)"""
    rates: ClassVar[bool] = False
    """Whether people rate texts; ratings are then read and written row by row, and text by text
    (`kbpo.tracks.texts.ratings`)
    """
    opposes: ClassVar[bool] = False
    """Whether two systems predict each target, and one wins if the other loses. Then nothing is
    guessed about it, and a joining system adds predictions to others (`find_affected_submissions`)
    """

    def __init__(self, track: TrackRow) -> None:
        self.track = track

    @property
    def corpus(self) -> Corpus:
        return self.track.corpus

    def count_second_opinions(self, new: int, before: int = 0) -> int:
        """Return the number of `new` questions, drawn at random, for which one more person is
        asked, given that this was done for `before` earlier questions of the track.
        """
        return 0

    @abstractmethod
    def ingest_file(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        """Store the predictions of an uploaded file as Targets, Instances and Predictions (by
        COPY). Returns a dictionary with counts (`items` that are evaluated, `item_lines`,
        `set_aside`, `lines`), the detected file format (`door`, a key of `Words.doors`) and the
        `run_id`. Adds problems of the file to `report`, and calls `progress` with the share of the
        file that has been read. Runs in the caller’s transaction, which the caller rolls back if
        Unusable is raised.
        """

    def find_affected_submissions(self, submission_id: int) -> list[int]:
        """Return the submissions that gain predictions when this one is sampled; it may be among
        them.
        """
        return []

    def pairwise_judgments(self, submissions: Sequence[int]) -> Mapping[str, Duels]:
        """Return criterion -> the judgments that compare two of these systems; empty if systems are
        judged one by one.
        """
        return {}

    @abstractmethod
    def draft_questions(
        self,
        target_ids: Sequence[int],
        submissions: Sequence[int] | None,
        *,
        is_stored: bool = True,
    ) -> Iterable[QuestionDraft]:
        """Yield the questions that have to be answered so that these submissions' predictions can
        be judged; none for a target with sufficient labels. For experts (`submissions` is None)
        yield one question about each target with all parts that were asked, as if it had no answer
        yet; with `made=False` nothing is stored, and the question can only be viewed. The payload
        does not reveal which system predicted what.
        """

    @abstractmethod
    def find_unanswered(
        self, targets_by_submission: Mapping[int, Collection[int]]
    ) -> dict[int, set[int]]:
        """Return, for each submission and some of its targets, those with a prediction that no
        label judges yet and whose questions have not ended unanswered: a sample with them would
        have to ask and pay.
        """

    @staticmethod
    def merge_statements(statements: Sequence[Statement]) -> Value:
        """Return the merged value of a target from its labels, the weakest first, by the rule of
        the kind; `kbpo.instances.merge` adds single ratings. By default the strongest label
        replaces the others.
        """
        return merge_latest_parts(statements)

    @abstractmethod
    def judge(
        self,
        instances: NDArray[np.int64],
        submissions: Sequence[int],
        *,
        answers: Answers | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Return verdicts in [0, 1], NaN where missing, per criterion, shape (n, m): each instance
        as each submission predicts it. If a submission does not predict an instance, only whether
        the verdict is NaN matters. With `answers` of experts, a target with an answer is judged by
        that answer alone, instead of its labels and those of its mentions.
        """

    def rating_noise(
        self, instances: NDArray[np.int64], submissions: Sequence[int] = ()
    ) -> Mapping[str, Noise]:
        """Return the number of ratings of each instance and the disagreement between annotators,
        for each criterion whose verdict is the mean of single ratings. Criteria on which the
        majority decides are not in the result. If two texts are compared, the result also states
        for which of `submissions` a rating v counts as 1 − v (`lowers`).
        """
        return {}

    def release_columns(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        """Return columns that describe instances in a release; none if the target describes them
        completely.
        """
        return {}

    def agrees_with_expert(
        self, target: Target, expert_answer: Value, current_value: Value, *, marked: bool = False
    ) -> bool:
        """Return whether an expert's answer about a target, including other targets that the
        question settles, agrees with the current labels, apart from ratings. An answer about a part
        that was not asked, as in documents that were read in full (`marked`), cannot disagree.
        """
        return True

    def compare_references(
        self, target: Target, current_value: Value, expert_answer: Value
    ) -> tuple[str, str, bool] | None:
        """Return the referent of a mention by its current value (`current_value`) and by an
        expert's answer (`expert_answer`), as texts for pages, and whether both are the same. None
        if one of them is missing, or if this kind of track has no references.
        """
        return None

    def features(self, instances: NDArray[np.int64]) -> tuple[NDArray[np.float64], Any]:
        """Return (n, k) numeric features of each instance for the model g that need no judgments,
        the same for all systems that predict it. Also return (n, v) sparse weights of the words of
        each text if the model compares texts, else None.
        """
        return np.zeros((instances.size, 0)), None

    def compute_metrics(
        self, instances: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[str, float]]]:
        """Yield each instance with its value under each of `metrics`; NaN if a metric is
        undefined.
        """
        return iter(())

    def judge_inputs(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        """Return the input of an automatic judge for each instance: the text and the claim, with
        the same keys for all. It does not name the system. Empty if the kind has no automatic
        judges.
        """
        return {}

    def traits(
        self, instances: NDArray[np.int64], submissions: Sequence[int]
    ) -> Mapping[str, Trait]:
        """Return the traits by which scores are divided into slices, by name. The instances are
        ascending, and are all that these submissions predict. If several submissions predict an
        instance, the first one defines its traits, so that a slice has equal members for every
        system.
        """
        return {}

    def example_lines(self) -> Iterable[str]:
        """Yield the lines of an example file that the track accepts."""
        return ()

    def find_obstacles(self) -> dict[str, str]:
        """Return field of the track's row -> sentence on why tracks of this kind cannot have its
        value.
        """
        return {}

    def instruction_payload(self) -> Mapping[str, Any]:
        """Return the instructions for this track, which payloads contain for all targets. For the
        public page the result also has `asked`, questions (`ask`) with `options` (`label`, and
        perhaps `cue`), and `catalogue`, the kinds of predictions.
        """
        return {}

    @classmethod
    def n_inputs_of(cls, corpora: Sequence[Corpus], *, test: bool = False) -> Mapping[int, int]:
        """Return corpus -> the number of inputs of systems (in the test part), for many corpora at
        once.
        """
        return {corpus.pk: corpus.n_test if test else corpus.n_documents for corpus in corpora}

    def input_lines(self) -> Iterator[str]:
        """Yield the inputs of systems, one line of JSON each."""
        return corpus_lines(self.corpus)

    def baseline_script(self) -> Path | None:
        """Return the path of a short script whose output this track accepts; None if this kind has
        none.
        """
        return None

    def find_predictions(
        self, submission_id: int, limit: int, *, words: str = "", key: str = "", entity: str = ""
    ) -> tuple[list[int], bool]:
        """Return the predictions of a submission whose text has these words, about the input with
        this key, or about an entity of this name. At most `limit` inputs are searched; also return
        whether these are all.
        """
        return [], True

    @abstractmethod
    def verdicts(self, submission_id: int, *, public: bool) -> Verdicts:
        """Return the (public) judgments of a submission's predictions, in the order of the
        explorer.
        """

    @abstractmethod
    def describe_predictions(
        self,
        submission_id: int,
        predictions: Sequence[int],
        *,
        public: bool,
        unjudged: Collection[int] = (),
    ) -> list[Judged]:
        """Return predictions of a submission, in this order, for the explorer. Judgments of
        predictions in `unjudged` are left out.
        """
