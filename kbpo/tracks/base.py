"""The contract of a track: everything that a kind of evaluation must say, so that nothing outside
asks which kind it is.

A kind says how its files are read and stored, what is judged (criteria), what is printed
(quantities, in columns), which distributions weigh what a system says, what people are asked and
at what price, how their answers become verdicts, what the model may learn from, by what scores
are cut, what the explorer shows, and which words people read. Copy `kbp/` or `texts/` to add
one; then add one line to `registry.py`. A kind whose documents are read in full, so that it has
recall, is a `kbpo.tracks.recall.TrackWithRecall`; one whose targets are texts is a
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
from kbpo.instances.merge import Statement, Value, merge_by_replacing
from kbpo.tracks.measures import Measures
from scoring.data import LIKE, THESE, Noise

Answers: TypeAlias = "Mapping[int, Mapping[int, Mapping[str, Any]]]"
"""target -> what somebody said when asked about it: target (itself, its mentions) -> value"""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kbpo.corpus.models import Corpus
    from kbpo.instances.models import Target
    from kbpo.tracks.models import Track as TrackRow


ENTITY = "entity"
"""What an address says the name of an entity by, where predictions are about entities"""


class Unusable(Exception):
    """A file of which nothing can be used; the text is a sentence for its owner."""


class Waits(Exception):
    """A file that can be used once there is another one; the text is a sentence for its owner. What
    was stored of it stays.
    """


@dataclass(frozen=True)
class Words:
    """The words that pages use for this kind of track."""

    item: str
    """One thing that a system says: “relation”"""
    items: str
    system: str
    """What is uploaded, at the beginning of a sentence's object: “a knowledge base”"""
    file: str
    """The field of the upload: “Knowledge base file”"""
    offer: str
    """The headline over the board: what one gets for an upload"""
    promise: str
    """The sentence under it"""
    description: str
    """What search engines are told of the board"""
    format: str = ""
    """What a file looks like, in a sentence"""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The fields of a line of a file, where lines have any, each with what it says"""
    packed: str = "It may be packed with gzip; its first bytes tell, whatever its ending."
    doors: Mapping[str, str] = field(default_factory=dict)
    """How a file can be read (`door` of `Track.ingest`), in words"""
    input: str = "document"
    inputs: str = "documents"
    """What systems are run on"""
    downloaded: str = "texts with tokens and sentences"
    """What one finds in their file, after their number"""
    schema: str = ""
    """What the schema says that comes with them, for those who take part; empty: there is none"""
    published: str = "As published"
    """The head of the column of figures for comparison"""
    published_long: str = "As published"
    """The same where the column is folded away on a phone"""
    stratum: str = "group"
    """What systems are compared by besides the whole, where slices are strata"""
    strata: str = "groups"
    share: str = "share that is right"
    """What the mean of verdicts about some items is, and what stands after that figure"""
    share_of: str = "right"
    kind: str = ""
    """What tracks of this kind are about: “relations in documents”"""
    once: str = ""
    """What is asked about, and counted, once, as a sentence, where it is not a single item"""
    together: str = ""
    """What people are asked about at once, where that judges several items: “mentions”"""
    entity: str = ""
    """What a field asks for by which predictions about an entity are found; empty where predictions
    are about none, and are not found by words or keys either (`Track.find`)"""
    unanswered: str = (
        "Those that were answered stand for them: their chances are multiplied by the share that"
        " was answered."
    )
    """What is done about things that nobody could answer"""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Each part of a prediction that can be wrong, and what pages call it"""
    unchecked: str = ""
    """Why experts cannot answer again what people were asked (`Track.questions`, `Track.judge`), as
    a sentence; empty where they can"""
    described: str = "which systems say a thing, and how sure they are"
    """What the model guesses from, after “what is free:”"""

    @property
    def populations(self) -> dict[str, str]:
        """Return the populations that numbers can be about, each with the start of a page's head
        and its title.
        """
        return {LIKE: f"{self.inputs} like these", THESE: f"these {self.inputs} alone"}


@dataclass(frozen=True)
class Asking:
    """How a question about targets is shown and paid by default."""

    interface: str
    reward: Decimal
    """Dollars for one answer, whole cents; what its interface is offered at where no track asks,
    in the tutorial and for a try, stands in its `terms`: the same"""
    seconds: int
    """Expected seconds for one answer"""
    people: int = 3
    """Answers to one question"""
    extra: Decimal = Decimal("0.00")
    """What an answer is paid besides where it took more work, as its interface says"""

    def __post_init__(self) -> None:
        if any(sum_ != round(sum_, 2) for sum_ in (self.reward, self.extra)):
            raise ValueError(f"{self.interface} is paid in whole cents, not {self.reward}.")


@dataclass(frozen=True)
class Pages:
    """Names of a kind's own templates; empty for the shared ones."""

    board_notes: str = "tracks/board_notes.html"
    """Under the board: what its figures mean"""
    board_end: str = ""
    """Below that, beside each other"""
    formats: str = "tracks/formats.html"
    """What a file looks like, on the upload page"""
    facts: str = "tracks/upload_facts.html"
    """What the track consists of, on the upload page"""
    more: str = ""
    """The same in full, beneath"""
    about: str = "tracks/about.html"
    """What is judged, on the track's public page"""
    claim: str = "tracks/claim.html"
    """A prediction in a line: the context has `one`, a Judged"""
    judged: str = "tracks/judged.html"
    """The same with what was shown and said"""
    parts: str = "tracks/parts.html"
    """In a line: which parts of it are right, or how it is rated"""


@dataclass(frozen=True)
class QuestionDraft:
    """A question about one target before it is stored: its interface, the payload of its page, the
    set that is shown.
    """

    target_id: int
    interface: str
    payload: dict[str, Any]
    shown: list[str] = field(default_factory=list)
    people: int | None = None
    """How many are asked; None: as many as the track says"""


@dataclass(frozen=True)
class PoolColumns:
    """SQL for the features of an instance, over a prediction `p`, its instance `i` and target `t`.
    A column that a kind lacks is constant.
    """

    document: str = "0::bigint"
    """What instances lie in that can be read whole"""
    stratum: str = "0::bigint"
    """Those that are alike in how hard they are to answer: who answers stands for who does not"""
    types: str = "''"
    subject: str = "0::bigint"
    """Number of the first thing that an instance is about, within its document"""
    object: str = "0::bigint"
    input: str = "t.id"
    """Number of what an instance was made for: ratings of one say something of the others"""


@dataclass(frozen=True)
class Group:
    """Slices that scores are always cut by: one for each value of a trait."""

    label: str
    trait: str
    values: tuple[str, ...] = ()
    """These alone, in this order; else all that occur, in the order of the alphabet"""
    words: Mapping[str, str] = field(default_factory=dict)
    """What a page calls a value, where it does not call it by its name"""
    strata: bool = False
    """Whether each value is a stratum (`PoolColumns.stratum`): its slice may have recall too"""


@dataclass(frozen=True, eq=False)
class Trait:
    """A trait of n instances that scores are broken down by: the names of its values, and which of
    them each instance has.
    """

    names: NDArray[np.str_]
    code: NDArray[np.int64]
    """(n,) places in `names`"""

    def where(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which instances have one of the names that are chosen."""
        inside: NDArray[np.bool_] = chosen[self.code]
        return inside


@dataclass(frozen=True)
class Facet:
    """Something that the explorer filters predictions by, judged or not."""

    name: str
    """In addresses and in the API"""
    label: str
    column: str
    """Of a prediction, that holds its value"""
    called: Callable[[Corpus], Mapping[Any, tuple[str, str]]] = lambda corpus: {}
    """What each value is called in addresses and on pages, where that is not the value itself"""


@dataclass(frozen=True)
class Metric:
    """A metric that is computed for each output: its name, its title on pages, its version (of the
    library, its settings and our treatment). Another version is another metric.
    """

    name: str
    label: str
    version: str
    circular: bool = field(default=False, kw_only=True)
    """Whether it holds what people wrote against itself, and so says nothing of a reference"""


@dataclass(frozen=True, eq=False)
class Duels:
    """Judgments of two systems against each other: n of them, systems by their column."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    outcome: NDArray[np.float64]
    """(n,) 1: left is better; 0: right is; ½: neither"""
    cluster: NDArray[np.int64]
    """(n,) the input: what is said of one goes together"""


@dataclass(frozen=True)
class Verdicts:
    """The public judgments of a submission's predictions, one entry per judged prediction."""

    prediction: list[int]
    value: NDArray[np.float64]
    """(n,) the verdict, in [0, 1]; NaN where a part of it is missing"""
    split: NDArray[np.bool_]
    """(n,) whether those who judged it were not of one mind"""
    parts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """The same of each part that a prediction consists of, by its name;
    NaN where it is not known
    """

    def of(self, mask: NDArray[np.bool_]) -> Verdicts:
        """Return the verdicts of the predictions that the mask selects."""
        return Verdicts(
            [one for one, is_in in zip(self.prediction, mask, strict=True) if is_in],
            self.value[mask],
            self.split[mask],
            {name: values[mask] for name, values in self.parts.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One prediction with its judgments, for `Pages.claim` and `Pages.judged`; a kind adds the
    fields of its own templates.
    """

    prediction: Any
    """The row"""
    document: Any = None
    """What it is read in; None where a kind has no documents"""
    right: bool | None = None
    """True or False where the verdict is 1 or 0, None where it is neither or not known"""
    votes: str = ""
    """How people were divided, in words"""
    source: str = ""
    """Of the label that counts: crowd, expert, import, document"""
    dispute: Any = None
    """What its team said against the judgment, and what became of it"""
    disputable: bool = False
    undisputed: str = ""
    """Why its team cannot dispute it, as a sentence"""

    @property
    def claim_text(self) -> str:
        """Return the claim without marks for roles: the title of its page."""
        return ""

    @property
    def begins(self) -> int:
        """Return where the claim begins in its document; a document's page lists claims in this
        order.
        """
        return 0

    @property
    def places(self) -> list[tuple[int, int]]:
        """Return the places in the document of the names in the claim."""
        return []

    @property
    def is_judged(self) -> bool:
        """Return whether people judged the claim, as right, wrong or neither."""
        return self.right is not None

    def explained(self) -> Any:
        """Return the further values of `Pages.judged`, its variable `more`."""
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
    """One kind of evaluation. Stateless: everything comes from the row `track` and the database."""

    kind: ClassVar[str]
    target_kind: ClassVar[str]
    """What its table calls the targets that people are asked about; at most 16 characters"""
    measures: ClassVar[Measures]
    """What is judged, and what is printed of a system"""
    asking: ClassVar[tuple[Asking, ...]]
    """How targets are asked about; the first is how a plan is priced"""
    words: ClassVar[Words]
    pages: ClassVar[Pages] = Pages()
    pool: ClassVar[PoolColumns] = PoolColumns()
    groups: ClassVar[dict[str, Group]] = {}
    """What scores are always cut by"""
    facets: ClassVar[tuple[Facet, ...]] = ()
    """What the explorer filters predictions by"""
    metrics: ClassVar[Sequence[Metric]] = ()
    """What is computed of each thing that systems say (`measure`)"""
    rates: ClassVar[bool] = False
    """Whether people say how good a text is: then what they said is read and written row by row,
    and text by text (`kbpo.tracks.texts.ratings`)
    """
    opposes: ClassVar[bool] = False
    """Whether a target is predicted by two systems, and what is good for one is bad for the other:
    then nothing is guessed of it, and a system that joins brings others more predictions
    (`joined`)"""

    def __init__(self, track: TrackRow) -> None:
        self.track = track

    @property
    def corpus(self) -> Corpus:
        return self.track.corpus

    def count_second_opinions(self, new: int, before: int = 0) -> int:
        """Return the number of `new` questions, drawn at random, for which one more person is
        asked, given that `before` earlier questions of the track were treated so.
        """
        return 0

    @abstractmethod
    def ingest(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        """Store the predictions of an uploaded file as Targets, Instances and Predictions (by COPY)
        and return a dictionary with its counts (`items` that are evaluated, `item_lines`,
        `set_aside`, `lines`), its format (`door`, a key of `Words.doors`) and its `run_id`. Adds
        problems of the file to `report`, and calls `progress` with the share of the file that was
        read. Runs in the caller’s transaction, which the caller rolls back if Unusable is raised.
        """

    def find_affected_submissions(self, submission_id: int) -> list[int]:
        """Return the submissions that predict more now, since this one is about to be sampled;
        itself may be among them.
        """
        return []

    def duels(self, submissions: Sequence[int]) -> Mapping[str, Duels]:
        """Return a mapping: criterion -> the judgments of these systems against each other; nothing
        where each is judged by itself.
        """
        return {}

    @abstractmethod
    def questions(
        self, target_ids: Sequence[int], submissions: Sequence[int] | None, *, made: bool = True
    ) -> Iterable[QuestionDraft]:
        """Yield the questions that have to be answered so that these submissions' predictions can
        be judged; none for a target with sufficient labels. For experts (`submissions` is None)
        yield one question about each target with all parts that were asked, as if it had no answer
        yet; with `made=False` nothing is stored for it, and it can only be viewed. The payload does
        not reveal which system predicted what.
        """

    @abstractmethod
    def find_unanswered(self, of: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
        """Return, for each submission and some of its targets, those with a prediction that no
        label judges yet and whose questions were not abandoned: a sample of them would have to ask
        and pay for them.
        """

    @staticmethod
    def merge(said: Sequence[Statement]) -> Value:
        """Return the merged label of a target from its labels, the weakest first: the rule of
        `kbpo.instances.merge`, which joins single ratings to it. By default the strongest label
        replaces the others.
        """
        return merge_by_replacing(said)

    @abstractmethod
    def judge(
        self,
        instances: NDArray[np.int64],
        submissions: Sequence[int],
        *,
        answers: Answers | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Return verdicts in [0, 1], NaN where missing, per criterion, shape (n, m): each instance
        as each submission predicts it. Where a submission does not predict an instance, only
        whether it is NaN matters. With `answers` of experts, a target that has one is judged by
        that answer alone instead of its labels and those of its mentions.
        """

    def noise(
        self, instances: NDArray[np.int64], submissions: Sequence[int] = ()
    ) -> Mapping[str, Noise]:
        """Return the number of ratings of each instance and the disagreement between annotators,
        for each criterion whose verdict is the mean of single ratings. Criteria on which the
        majority decides are not in the result. Where two texts are compared, the result also says
        for which of `submissions` a rating v counts as 1 − v (`lowers`).
        """
        return {}

    def release_columns(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        """Return columns that describe instances in a release; none where the target describes them
        completely.
        """
        return {}

    def agrees(self, target: Target, says: Value, now: Value, *, marked: bool = False) -> bool:
        """Return whether an expert's answer about a target, including the other targets that the
        question settles, agrees with the labels that count now, apart from ratings. An answer about
        something that was not asked, as in documents that were read in full (`marked`), cannot
        disagree.
        """
        return True

    def compare_references(
        self, target: Target, now: Value, says: Value
    ) -> tuple[str, str, bool] | None:
        """Return the referent of a mention by its current value (`now`) and by an expert's answer
        (`says`), as texts for pages, and whether both are the same. Return None if one of them is
        missing, or if this kind of track has no references.
        """
        return None

    def features(self, instances: NDArray[np.int64]) -> tuple[NDArray[np.float64], Any]:
        """Return (n, k) numeric features of each instance for the model g that cost nothing, the
        same for all systems that predict it; and (n, v) sparse weights of the words of each text,
        if the model compares texts, else None.
        """
        return np.zeros((instances.size, 0)), None

    def measure(self, instances: Sequence[int]) -> Iterator[tuple[int, Mapping[str, float]]]:
        """Yield each instance with its value under each of `metrics`; NaN where one is not
        defined.
        """
        return iter(())

    def to_judge(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
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

    def example(self) -> Iterable[str]:
        """Yield the lines of an example file that the track accepts."""
        return ()

    def find_obstacles(self) -> dict[str, str]:
        """Return a mapping: field of the track's row -> why tracks of this kind cannot have its
        value, as a sentence.
        """
        return {}

    def guide(self) -> Mapping[str, Any]:
        """Return the instructions for this track alone, as payloads contain them; they are the same
        for all targets. For the public page also: `asked`, questions (`ask`) with `options`
        (`label`, and perhaps `cue`), and `catalogue`, the kinds of things that systems predict.
        """
        return {}

    @classmethod
    def n_inputs_of(cls, corpora: Sequence[Corpus], *, test: bool = False) -> Mapping[int, int]:
        """Return a mapping: corpus -> how many inputs systems are run on (of the test part), of
        many at once.
        """
        return {corpus.pk: corpus.n_test if test else corpus.n_documents for corpus in corpora}

    def input_lines(self) -> Iterator[str]:
        """Yield the inputs of systems, a line of JSON each."""
        return corpus_lines(self.corpus)

    def baseline(self) -> Path | None:
        """Return the path of a short script whose output this track takes; None if this kind has
        none.
        """
        return None

    def find(
        self, submission_id: int, most: int, *, words: str = "", key: str = "", entity: str = ""
    ) -> tuple[list[int], bool]:
        """Return the predictions of a submission whose text has these words, about the input with
        this key, or about an entity of this name; from at most `most` inputs, and whether these are
        all.
        """
        return [], True

    @abstractmethod
    def verdicts(self, submission_id: int, *, public: bool) -> Verdicts:
        """Return the (public) judgments of a submission's predictions, in the order of the
        explorer.
        """

    @abstractmethod
    def describe(
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
