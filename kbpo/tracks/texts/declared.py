"""Forms that admins declared: each is a kind of track, without code."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from django.db.models import Exists, OuterRef
from numpy.typing import NDArray

from formats.forms import Form, error_sentences, read_form
from formats.messages import Report
from kbpo import clock
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.models import Target
from kbpo.queue import wake_step
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import NOT_TAKEN
from kbpo.tracks.base import Answers, Asking, Duels, Judged, Verdicts, Waits
from kbpo.tracks.measures import UNWEIGHED, Column, Distribution, Quantity
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.forms import BETWEEN, criterion_of_question, form_tutorial, parse_form
from kbpo.tracks.texts.models import DeclaredForm, Input, Written
from kbpo.tracks.texts.ratings import NOBODY, NOTHING, read_ratings
from kbpo.tracks.texts.ratings import Judged as JudgedText
from kbpo.tracks.texts.store import Claim, store_text_claims, target_contents
from kbpo.tracks.texts.track import WORDS, TextTrack, rating_measures, unusable_reason
from scoring.data import Noise


class CannotDeclare(Exception):
    """Raised for a form that was refused; each text is a sentence with line, code and field."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


def store_form(text: str) -> DeclaredForm:
    """Store a form and return it. Raises CannotDeclare with all errors."""
    report = Report(100)
    form = read_form(text, report)
    if form is None:
        raise CannotDeclare(*error_sentences(report))
    if DeclaredForm.objects.filter(name=form.name).exists():
        raise CannotDeclare(
            f"There is a form {form.name} already, and what was answered rests on its words:"
            " choose another name."
        )
    return DeclaredForm.objects.create(name=form.name, title=form.title, text=text)


def declared_track_classes() -> dict[str, type[TextTrack]]:
    """Return the kinds of track of declared forms, the oldest first."""
    forms = DeclaredForm.objects.order_by("pk").values_list("name", "text")
    return {FORM + name: _track_class_of_form(text) for name, text in forms}


def declared_tutorials() -> dict[str, dict[str, Any] | None]:
    """Return interface -> its tutorial in the format of `tutorial.json`, for all declared forms,
    the oldest first; None if a form has none.
    """
    return tutorials_of_forms(DeclaredForm.objects.order_by("pk").values_list("name", "text"))


def tutorials_of_forms(forms: Iterable[Sequence[str]]) -> dict[str, dict[str, Any] | None]:
    """Return form -> its tutorial, for forms that were read already, given as name and text."""
    return {FORM + name: form_tutorial(parse_form(text)) for name, text in forms}


def declared_form(name: str) -> Form:
    """Return the form of that name. Raises KeyError for an unknown name."""
    return parse_form(_read_form_text(name))


def track_class_of_form(name: str) -> type[TextTrack]:
    """Return the kind of track of a form. Raises KeyError for an unknown name."""
    return _track_class_of_form(_read_form_text(name))


def _read_form_text(name: str) -> str:
    """Return the stored text of a declared form. Raises KeyError for an unknown name."""
    text = DeclaredForm.objects.filter(name=name).values_list("text", flat=True).first()
    if text is None:
        raise KeyError(FORM + name)
    return text


@lru_cache(maxsize=256)
def _track_class_of_form(text: str) -> type[TextTrack]:
    form = parse_form(text)
    base = PreferenceTrack if form.is_comparison else TextTrack
    asking = Asking(FORM + form.name, form.price, form.seconds, people=form.people)
    digest = sha256(form.name.encode()).hexdigest()[:8]
    return type(
        base.__name__,
        (base,),
        {
            "kind": FORM + form.name,
            "target_kind": f"{base.target_kind}-{digest}",  # judgments of two forms never mix
            "form": form,
            "measures": replace(
                base.measures,
                criteria=tuple(
                    criterion_of_question(question) for question in form.scored_questions
                ),
            ),
            "asking": (asking,),
            "words": replace(base.words, kind=f"texts that people judge by the form “{form.name}”"),
            "second_share": form.second_share,
            "__module__": __name__,
        },
    )


WAITS = (
    "It waits for another system: there is nothing yet to compare it with. No other system of this"
    " track has an output for these inputs, and the inputs have no references."
)


class PreferenceTrack(TextTrack):
    """Compares outputs of two systems for one input, side by side.

    A target is a pair of texts for an input, ordered by their hashes, so that the order does not
    reveal their systems. Both systems predict it: each predicts that its own text is better. An
    upload is paired with all participating runs, and with the first reference. When its sample is
    drawn, the others gain their pairs with it as predictions, so that each pair can be drawn. Texts
    of a private run appear only in its own pairs. Equal texts are a tie without a question.
    """

    target_kind: ClassVar[str] = "pair"
    measures: ClassVar = replace(
        rating_measures(),
        distributions={UNWEIGHED: Distribution("Every pair", "1.0::float8")},
        quantities=(Quantity("mean", "Win rate", "W", "preferred more often"),),
        columns=(Column("mean", "mean", place="first"),),
    )
    metrics: ClassVar = ()
    opposes: ClassVar[bool] = True
    words: ClassVar = replace(
        WORDS,
        item="pair",
        items="pairs",
        offer="Upload what your system wrote. People see it beside what another system wrote, and"
        " say which is better. You get a win rate that says how sure it is.",
        promise="People see two texts for one input, in an order drawn at random: not which systems"
        " wrote them.",
        description="On-demand evaluation of generated text by pairwise preference: win"
        " rates with intervals.",
        unchecked="Here people say which of two texts they prefer. That is a choice of theirs: no"
        " expert can say that it is wrong.",
        described="nothing: of preferences no guess is made",
        share="share that is preferred",
        share_of="preferred",
    )

    def ingest_file(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        writtens = [
            Written(
                submission_id=submission_id,
                key=claim.content["input"],
                text=claim.content["text"],
                line=claim.line,
            )
            for claim in self.read_outputs(path, report, progress)
        ]
        if report.fatal or not writtens:
            raise unusable_reason(report)
        Written.objects.filter(
            submission=submission_id
        ).delete()  # a file that waited is read again
        Written.objects.bulk_create(writtens, batch_size=2000)
        submissions = Submission.objects.filter(track=self.track).exclude(pk=submission_id)
        stored = store_text_claims(
            submission_id,
            self.corpus,
            self.target_kind,
            self._text_pairs_with_opponents(
                submission_id, self._opponents_of_upload(submission_id), with_references=True
            ),
            self.dev_inputs,
        )
        outputs = Written.objects.filter(submission=OuterRef("pk"))
        waiting = submissions.filter(Exists(outputs), status="received")
        if waiting.update(next_try_at=clock.now()):
            wake_step("ingest")
        if not stored:
            raise Waits(WAITS)
        return {
            "outputs": len(writtens),
            "pairs": stored,
            "output_lines": report.relation_lines,
            "set_aside": report.relation_lines - len(writtens),
            "lines": report.lines,
        }

    def _opponents_of_upload(self, submission_id: int) -> list[int]:
        """Return the systems that an upload is paired with: the evaluated ones that are not
        private. If there is none yet, and no human reference either, return the drafts of other
        teams, since the first two systems of a track would wait for each other.
        """
        submissions = Submission.objects.filter(track=self.track, is_private=False).exclude(
            pk=submission_id
        )
        taking_part = list(submissions.confirmed().order_by("pk").values_list("pk", flat=True))
        if taking_part or any(self._references_by_input(submission_id).values()):
            return taking_part
        team = Submission.objects.values_list("team", flat=True).get(pk=submission_id)
        drafts = submissions.exclude(status__in=NOT_TAKEN).exclude(team=team)
        return list(drafts.order_by("pk").values_list("pk", flat=True))

    def _references_by_input(self, submission_id: int) -> dict[str, list[str]]:
        """Return input -> its reference text, for the inputs for which a system has an output."""
        keys = Written.objects.filter(submission=submission_id).values("key")
        inputs = Input.objects.filter(corpus=self.corpus, key__in=keys)
        return {asked.key: asked.references[:1] for asked in inputs}

    def _text_pairs_with_opponents(
        self, submission_id: int, opponents: Sequence[int], *, with_references: bool = False
    ) -> Iterator[Claim]:
        """Yield the pairs of a submission's texts with those of its opponents, and with the
        reference texts of the inputs.
        """
        own = list(Written.objects.filter(submission=submission_id).order_by("line"))
        keys = [written.key for written in own]
        texts: dict[str, list[str]] = {key: [] for key in keys}
        if with_references:
            for key, references in self._references_by_input(submission_id).items():
                texts[key] += references
        writtens = Written.objects.filter(submission__in=opponents, key__in=keys)
        for row in writtens.order_by("submission_id"):
            texts[row.key].append(row.text)
        for written in own:
            for text in texts[written.key]:
                yield _pair_claim(written.key, written.text, text, written.line)

    def find_affected_submissions(self, submission_id: int) -> list[int]:
        submissions = (
            Submission.objects.filter(track=self.track).confirmed().exclude(pk=submission_id)
        )
        public = list(
            submissions.filter(is_private=False).order_by("pk").values_list("pk", flat=True)
        )
        sides = [(submission_id, public)]
        if not Submission.objects.filter(pk=submission_id, is_private=True).exists():
            meeting = list(submissions.order_by("pk").values_list("pk", flat=True))
            sides += [(other, [submission_id]) for other in meeting]
        return [
            system
            for system, met in sides
            if store_text_claims(
                system,
                self.corpus,
                self.target_kind,
                self._text_pairs_with_opponents(system, met),
                self.dev_inputs,
            )
        ]

    def find_unanswered(
        self, targets_by_submission: Mapping[int, Collection[int]]
    ) -> dict[int, set[int]]:
        waiting = super().find_unanswered(targets_by_submission)
        pairs = Target.objects.filter(pk__in=set().union(*waiting.values()))
        tied = {
            pk for pk, content in pairs.values_list("pk", "content") if _are_texts_equal(content)
        }
        return {submission: targets - tied for submission, targets in waiting.items()}

    def judge(
        self,
        instances: NDArray[np.int64],
        submissions: Sequence[int],
        *,
        answers: Answers | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        verdicts = super().judge(instances, submissions, answers=answers)
        is_first = self._did_system_write(0, instances, submissions)
        tied = self._find_ties(instances)
        for name, values in verdicts.items():
            oriented = np.where(is_first, values, 1 - values)
            oriented[tied] = 0.5
            verdicts[name] = oriented
        return verdicts

    def rating_noise(
        self, instances: NDArray[np.int64], submissions: Sequence[int] = ()
    ) -> dict[str, Noise]:
        lowers = self._did_system_write(1, instances, submissions)
        # A preference raises one system and lowers the other, so judges have no level.
        return {
            criterion: replace(one, single=NOBODY, lowers=lowers)
            for criterion, one in super().rating_noise(instances).items()
        }

    def _did_system_write(
        self, which: int, instances: NDArray[np.int64], submissions: Sequence[int]
    ) -> NDArray[np.bool_]:
        """Return (n, m) whether a system wrote the first (0) or the second (1) text of a pair."""
        unique, place = np.unique(instances, return_inverse=True)
        writers = fetch_rows(
            "SELECT i.id, w.submission_id FROM instances_instance i"
            " JOIN instances_target t ON t.id = i.target_id JOIN texts_written w"
            " ON w.key = t.content->>'input' AND w.text = t.content->'texts'->>%s"
            " WHERE i.id = ANY(%s) AND w.submission_id = ANY(%s)",
            [which, unique.tolist(), list(submissions)],
        )
        wrote = np.zeros((unique.size, len(submissions)), dtype=np.bool_)
        column = {submission: column_number for column_number, submission in enumerate(submissions)}
        for instance, submission in writers:
            wrote[np.searchsorted(unique, instance), column[submission]] = True
        return wrote[place]

    def _find_ties(self, instances: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (n,) whether the two texts of a pair are the same."""
        unique, place = np.unique(instances, return_inverse=True)
        texts = target_contents(unique.tolist())
        tied = np.array([_are_texts_equal(texts.get(pk)) for pk in unique.tolist()], dtype=np.bool_)
        return tied[place]

    def pairwise_judgments(self, submissions: Sequence[int]) -> dict[str, Duels]:
        """Return criterion -> every judgment that compares two systems' outputs. A judgment of
        texts that several systems wrote counts once for each pair of systems.
        """
        pairs = fetch_rows(
            "SELECT t.id, a.submission_id, b.submission_id, t.content->>'input'"
            " FROM instances_target t"
            " JOIN texts_written a ON a.key = t.content->>'input'"
            "  AND a.text = t.content->'texts'->>0 AND a.submission_id = ANY(%(systems)s)"
            " JOIN texts_written b ON b.key = t.content->>'input'"
            "  AND b.text = t.content->'texts'->>1 AND b.submission_id = ANY(%(systems)s)"
            "  AND b.submission_id <> a.submission_id"
            " WHERE t.corpus_id = %(corpus)s AND t.kind = %(kind)s AND NOT t.is_dev"
            "  AND (t.content->'texts'->>0 <> t.content->'texts'->>1"
            "   OR a.submission_id < b.submission_id)"
            " ORDER BY t.id, a.submission_id, b.submission_id",
            {"systems": list(submissions), "corpus": self.corpus.pk, "kind": self.target_kind},
        )
        column = {submission: column_number for column_number, submission in enumerate(submissions)}
        inputs = {key: number for number, key in enumerate(sorted({row[3] for row in pairs}))}
        rated_of = read_ratings({row[0] for row in pairs})
        duels_of = {}
        for criterion in self.measures.criteria:
            judged = []
            for target, left_system, right_system, key in pairs:
                for value in rated_of.get(target, NOTHING).ratings.get(criterion.name, ()):
                    wins = value if criterion.higher_is_better else 1 - value
                    judged.append((column[left_system], column[right_system], wins, inputs[key]))
            table = np.array(judged, dtype=np.float64).reshape(-1, 4)
            left, right, cluster = (table[:, field].astype(np.int64) for field in (0, 1, 3))
            duels_of[criterion.name] = Duels(left, right, table[:, 2], cluster)
        return duels_of

    def verdicts(self, submission_id: int, *, public: bool) -> Verdicts:
        verdicts = super().verdicts(submission_id, public=public)
        return replace(
            verdicts, value=self._own_verdicts(submission_id, verdicts.prediction, verdicts.value)
        )

    def _own_verdicts(
        self, submission: int, predictions: Sequence[int], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return (n,) the verdicts on the first text of each pair, reversed where needed so that
        they are about the system's own text.
        """
        instance_of = dict(
            fetch_rows(
                "SELECT p.id, p.instance_id FROM submissions_prediction p WHERE p.id = ANY(%s)",
                [list(predictions)],
            )
        )
        instances = np.array([instance_of[pk] for pk in predictions], dtype=np.int64)
        is_first = self._did_system_write(0, instances, [submission])[:, 0]
        return np.where(is_first, values, 1 - values)

    def describe_predictions(
        self,
        submission_id: int,
        predictions: Sequence[int],
        *,
        public: bool,
        unjudged: Collection[int] = (),
    ) -> list[Judged]:
        described = super().describe_predictions(
            submission_id, predictions, public=public, unjudged=unjudged
        )
        is_first = self._own_verdicts(submission_id, predictions, np.ones(len(predictions)))
        return [
            _pair_from_system_side(judged, bool(own_is_first))
            for judged, own_is_first in zip(described, is_first.tolist(), strict=True)
        ]

    def judge_inputs(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        return {}


def _pair_claim(key: str, own_text: str, other_text: str, line: int) -> Claim:
    earlier, later = sorted((own_text, other_text), key=lambda text: _pair_order_key(key, text))
    content = {"input": key, "text": BETWEEN.join((earlier, later)), "texts": [earlier, later]}
    return Claim(json.dumps([key, earlier, later]), line, content)


def _pair_order_key(key: str, text: str) -> bytes:
    """Return the sort key of a text within its pair: effectively random, and always the same."""
    return sha256(f"{key}\n{text}".encode()).digest()


def _are_texts_equal(content: Mapping[str, Any] | None) -> bool:
    texts = (content or {}).get("texts", ("", "-"))
    return bool(texts[0] == texts[1])


def _pair_from_system_side(prediction: Judged, own_is_first: bool) -> Judged:
    """Return a pair from its system's view: its own text first, with its result."""
    if not isinstance(prediction, JudgedText):
        return prediction
    texts, said = prediction.prediction.instance.target.content["texts"], prediction.said
    if not own_is_first:
        texts = texts[::-1]
        said = [
            replace(part, value=None if part.value is None else 1 - part.value) for part in said
        ]
    fared = _describe_votes(said[0].value)
    return replace(
        prediction,
        text=f"Its own: {texts[0]}{BETWEEN}The other: {texts[1]}",
        said=said,
        votes=f"{fared}: {prediction.votes}" if fared and prediction.votes else prediction.votes,
    )


def _describe_votes(value: float | None) -> str:
    """Return how often a text was chosen, in words; empty if nobody was asked."""
    if value is None:
        return ""
    words = {0.0: "the other chosen", 0.5: "neither ahead", 1.0: "its own chosen"}
    return words.get(value, f"its own ahead in {100 * value:.0f}\u00a0%, a tie counting half")
