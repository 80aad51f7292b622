"""What people judged on a track, for experts to be asked about: texts; or pairs, relations marked
in documents, names of documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min, Q

from annotation.interfaces.registry import interface_of, reading
from annotation.interfaces.shared.majority import holding
from annotation.models import Question, Response
from kbpo.instances.merge import standing, values_of
from kbpo.instances.models import Label, Target
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME, RELATION, recall_of
from kbpo.tracks.registry import kind_of

PAIRS, MARKED, NAMES, TEXTS = "pairs", "marked", "names", "texts"
ASKED_ALONE = (PAIRS, TEXTS)
"""What of it people were asked about one by one"""
WORDS = {
    PAIRS: "pairs that were asked alone",
    MARKED: "relations marked in documents read whole",
    NAMES: "documents whose names were marked",
}
"""What experts are asked about where documents are read -> in words"""


@dataclass(frozen=True)
class Judged:
    """A target that people judged: their question about it, and how divided they were.

    `question` is None of a pair in a document that was read whole: nobody was asked about it alone.
    `counts`: what they said counts; where too few marked anything, nothing is said of the pair.
    """

    target: int
    question: int | None
    disagreement: float
    counts: bool = True


def words_of(track: Track) -> dict[str, str]:
    """Return what experts can be asked about on a track -> in words, the first what is asked alone;
    nothing where they cannot be asked.
    """
    kind = kind_of(track)
    if kind.unchecked:
        return {}
    return WORDS if recall_of(track) else {TEXTS: f"{kind.words.items} that people judged"}


def judged(track: Track, what: str) -> list[Judged]:
    """Return all of one kind that people judged on a track, in the order of the targets."""
    found = {PAIRS: _alone, TEXTS: _alone, MARKED: _marked, NAMES: _names}[what](track)
    return sorted(found, key=lambda one: one.target)


def asked_alone() -> Q:
    """Return the questions that asked about a target by itself, and no whole document."""
    return ~Q(interface__in=reading())


def settled_of(track: Track, reads: str = "") -> Q:
    """Return the questions of a track that people settled which asked for every name, or every
    relation, of a document; or else about a target alone. Gold has no part in it.
    """
    asked = Q(interface__in=reading(reads)) if reads else asked_alone()
    return asked & Q(track=track, status="settled", gold=None)


def since(track: Track, targets: Sequence[int], what: str) -> dict[int, datetime]:
    """target -> since when people's judgment of it could be drawn."""
    if what == MARKED:
        document_of = dict(Target.objects.filter(pk__in=targets).values_list("pk", "document"))
        questions = Question.objects.filter(
            settled_of(track, RELATION), target__document__in=set(document_of.values())
        )
        read = dict(
            questions.values_list("target__document").annotate(Min("status_since")).order_by()
        )
        return {
            target: read[document] for target, document in document_of.items() if document in read
        }
    questions = Question.objects.filter(
        settled_of(track, "" if what in ASKED_ALONE else NAME), target__in=targets
    )
    settled = dict(questions.values_list("target").annotate(Min("status_since")).order_by())
    return settled | _first_settled(settled)


def _first_settled(targets: Collection[int]) -> dict[int, datetime]:
    """target -> when it was judged first, of those that people were asked about once more since."""
    again = Label.objects.filter(target__in=targets, again__isnull=False).values("target")
    labels = Label.objects.filter(target__in=again, source="crowd").exclude(method="nonresponse")
    return dict(labels.values_list("target").annotate(Min("created_at")).order_by())


def votes_in(track: Track, targets: Sequence[int]) -> dict[int, list[set[str]]]:
    """target -> what each reader of its document marked of it, by answers that count."""
    document_of = dict(Target.objects.filter(pk__in=targets).values_list("pk", "document"))
    responses = Response.objects.filter(
        question__in=Question.objects.filter(settled_of(track, RELATION)),
        criterion__in=[interface_of(name).criterion for name in reading(RELATION)],
        counts=True,
        target__document__in=set(document_of.values()),
    ).order_by("pk")
    said: dict[int, list[Mapping[str, Sequence[str]]]] = defaultdict(list)
    columns = ("question__interface", "target", "target__document", "value")
    for interface, target, document, value in responses.values_list(*columns):
        said[document].append(interface_of(interface).held(target, value))
    return {
        target: [set(holds.get(str(target), ())) for holds in said[document]]
        for target, document in document_of.items()
        if document in said
    }


def _alone(track: Track) -> Iterator[Judged]:
    """Return what was asked alone: the latest settled question about each. How divided people were
    about a text is how far apart they lie under the criterion where that is most.
    """
    questions = Question.objects.filter(settled_of(track))
    latest = dict(questions.values_list("target").annotate(Max("pk")).order_by())
    disagreement: dict[int, float] = {}
    for label in standing(Label.objects.filter(target__in=latest, source="crowd")):
        if label.value:
            disagreement[label.target_id] = max(
                disagreement.get(label.target_id, 0.0), label.disagreement
            )
    yield from (Judged(target, latest[target], share) for target, share in disagreement.items())


def _marked(track: Track) -> Iterator[Judged]:
    """Targets in documents that were read whole of which somebody marked something, unless people
    were asked about them alone too.
    """
    alone = set(Question.objects.filter(settled_of(track)).values_list("target", flat=True))
    parts: dict[int, Sequence[str]] = {}
    needed = ("interface", "payload", "target", "track")
    for question in Question.objects.filter(settled_of(track, RELATION)).only(*needed):
        for asked in interface_of(question.interface).asked(question):
            if asked.target not in alone:
                parts[asked.target] = asked.shown
    votes = {target: said for target, said in votes_in(track, list(parts)).items() if any(said)}
    kind = kind_of(track)
    now = set()
    for target, value, _ in values_of(votes, kind.merge):
        if any(kind.yes_or_no(value).values()):
            now.add(target)
    for target, said in votes.items():
        _, _, share = holding(said, parts[target])
        yield Judged(target, None, share, target in now)


def _names(track: Track) -> Iterator[Judged]:
    """Documents whose names were marked and settled: how divided people were is the mean over the
    mentions.
    """
    questions = {
        question.pk: question
        for question in Question.objects.filter(settled_of(track, NAME))
        .select_related("target")
        .defer("payload")
    }
    labels = Label.objects.filter(
        target__document__in={question.target.document_id for question in questions.values()},
        target__kind__in=["document", *kind_of(track).settles_besides],
        source="document",
    )
    read: set[int] = set()
    shares: dict[int, list[float]] = defaultdict(list)
    for label in standing(labels.select_related("target")):
        if label.value and label.question in questions:
            if label.target.kind == "document":
                read.add(label.question)
            else:
                shares[label.question].append(label.disagreement)
    for number in read:
        disagreement = sum(shares[number]) / max(1, len(shares[number]))
        yield Judged(questions[number].target_id, number, disagreement)
