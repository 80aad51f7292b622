"""Texts that people judge: systems write an output for each input of a corpus.

A target is a text, identified by its content. People's ratings in [0, 1] accumulate (`ratings.py`),
and a verdict is their mean or the majority. The questions are a form.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.conf import settings
from django.db.models import Count
from numpy.typing import NDArray
from scipy import sparse

from formats.forms import Form
from formats.messages import Report
from formats.opening import MB, Limits, open_text
from formats.outputs import read_outputs
from formats.words import split_words
from kbpo.corpus.export import iterate_in_pages
from kbpo.corpus.models import Corpus, Part
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.models import Target
from kbpo.tracks.base import (
    Answers,
    Group,
    Judged,
    PoolColumns,
    QuestionDraft,
    Track,
    Trait,
    Unusable,
    Verdicts,
    Words,
)
from kbpo.tracks.measures import (
    UNWEIGHED,
    Column,
    Criterion,
    Distribution,
    Measures,
    Quantity,
)
from kbpo.tracks.texts import ratings
from kbpo.tracks.texts.forms import field_description, form_payload
from kbpo.tracks.texts.metrics import METRICS, Scored, compute_metrics, other_references
from kbpo.tracks.texts.models import Input
from kbpo.tracks.texts.ratings import (
    NOTHING,
    RatedTarget,
    rating_noise,
    read_ratings,
    select_second_opinions,
    targets_of_instances,
)
from kbpo.tracks.texts.store import Claim, store_text_claims, target_contents
from scoring.arrays import Ids
from scoring.data import LIKE, Noise

SECOND_SHARE, FEWEST_SECOND, MOST_SECOND = Decimal("0.05"), 20, 40
"""Share, least and greatest number of second opinions. They cost what metrics save (with a fifth,
the plain mean was as good as all metrics together), but below 20 pairs annotator noise cannot be
estimated."""


LONGEST = 20_000


def word_weights(texts: Sequence[str]) -> sparse.csr_array:
    """Return weights (n, v) of the words of each text: (1 + log times) · log(1 + n/texts with the
    word).

    For `estimators.rating_model.fit_ratings(text=)`; a row of zeros for a text without words.
    """
    counts = [Counter(split_words(text[:LONGEST].lower())) for text in texts]
    column: dict[str, int] = {}
    for count in counts:
        for word in count:
            column.setdefault(word, len(column))
    starts = np.cumsum([0] + [len(count) for count in counts])
    places = np.fromiter((column[word] for count in counts for word in count), np.int64)
    times = np.fromiter((number for count in counts for number in count.values()), np.float64)
    holding = np.bincount(places, minlength=max(len(column), 1))
    weights = (1 + np.log(times)) * np.log1p(len(counts) / holding[places])
    shape = (len(counts), max(len(column), 1))
    return sparse.csr_array((weights, places, starts), shape=shape)


FIELDS = {
    "input_id": "The id of the input, as it stands in the file of inputs. Each has one output",
    "output": "What your system wrote for it. Marks that nobody sees are removed",
}
"""Names of the fields of a line, for readers"""
MOST, NAME = 30, 100
"""Greatest number of prompts or splits by which scores are broken down, and of characters of a
slice's name
"""
LINE = 40.0
"""Minimal bytes of a line, to estimate the share of a file that has been read"""


def rating_measures(*criteria: Criterion) -> Measures:
    """Return the measures of tracks on which texts are rated under these criteria."""
    return Measures(
        criteria,
        quantities=(Quantity("mean", "Mean", "M", "better"),),
        columns=(
            Column("mean", "mean", place="first"),
            Column("mean_unaided", "mean", "unaided", "beneath", "people alone", "mean"),
            Column("mean_expert", "mean", "expert", "beneath", "corrected", "mean"),
            Column("mean_algorithm_1", "mean", "algorithm_1", "published", "Algorithm 1"),
        ),
        distributions={UNWEIGHED: Distribution("Every output", "1.0::float8")},
        n_beside=2,
        population=LIKE,
    )


WORDS = Words(
    item="output",
    items="outputs",
    kind="texts that people rate",
    system="a file of outputs",
    file="File of outputs",
    input="input",
    inputs="inputs",
    downloaded="inputs, without what people wrote for them",
    offer="Upload what your system wrote. People rate a sample of it. You get a score that"
    " says how sure it is.",
    promise="People see the text alone: not which system wrote it, and no reference. Equal"
    " outputs of several systems are rated once.",
    description="On-demand evaluation of generated text: people rate a sample of your outputs,"
    " and the leaderboard shows each score with its interval.",
    format="JSON Lines: one output a line, with the id of its input.",
    fields=FIELDS,
    described="which systems wrote a text, and how long it is",
    share="mean rating",
    share_of="of the scale",
)


class TextTrack(Track):
    """A kind of evaluation whose targets are texts."""

    target_kind: ClassVar[str] = "output"
    form: ClassVar[Form]
    """The questions about a text, unless a kind overrides `payloads`"""
    measures: ClassVar[Measures] = rating_measures()
    words: ClassVar = WORDS
    rates: ClassVar[bool] = True
    metrics: ClassVar = tuple(METRICS.values())
    pool: ClassVar = PoolColumns(
        input="hashtext(coalesce(t.content->>'input', t.id::text))::bigint"
    )
    groups: ClassVar = {"prompt": Group("Prompt", "prompt"), "split": Group("Split", "split")}
    second_share: ClassVar[Decimal | None] = None
    """Share of the targets, drawn at random, about which one more person is asked, to estimate
    annotator noise. None: 5 %, at least 20 and at most 40 on a track"""

    def read_outputs(
        self, path: str, report: Report, progress: Callable[[float], None]
    ) -> Iterator[Claim]:
        """Yield the outputs of a file, one for each input."""
        inputs = Input.objects.filter(corpus=self.corpus).values_list("key", "passages")
        n_passages = {key: len(passages) for key, passages in inputs}
        size = max(1.0, os.path.getsize(path))
        limits = Limits(
            upload_bytes=settings.UPLOAD_LIMIT_MB * MB,
            unpacked_bytes=settings.UNPACKED_LIMIT_MB * MB,
        )

        def lines() -> Iterator[tuple[int, str]]:
            for number, line in open_text(path, limits.for_outputs(), report):
                report.lines = number
                report.relation_lines += not line.isspace() and line != ""
                progress(min(0.95, number * LINE / size))
                yield number, line

        for output in read_outputs(lines(), n_passages, limits, report):
            content: dict[str, Any] = {"input": output.input_id, "text": output.output}
            if output.passage is not None:
                content["passage"] = output.passage
            yield Claim(f"{output.input_id}\n{output.output}", output.line, content)

    @cached_property
    def dev_inputs(self) -> list[str]:
        """Return the keys of the inputs of the development part."""
        dev = Input.objects.filter(corpus=self.corpus, part=Part.DEV)
        return list(dev.values_list("key", flat=True))

    def ingest_file(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        claims = self.read_outputs(path, report, progress)
        stored = store_text_claims(
            submission_id, self.corpus, self.target_kind, claims, self.dev_inputs
        )
        if report.fatal or not stored:
            raise unusable_reason(report)
        return {
            self.words.items: stored,
            f"{self.words.item}_lines": report.relation_lines,
            "set_aside": report.relation_lines - stored,
            "lines": report.lines,
        }

    def instruction_payload(self) -> Mapping[str, Any]:
        asked = [field_description(question) for question in self.form.questions]
        return {"guide": list(self.form.guide), "asked": asked}

    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        """Return target -> the payload of a question about it, without the name of its system."""
        contents_of = {target.pk: target.content or {} for target in targets}
        inputs = self._inputs_of_outputs(contents_of)
        payloads = {}
        for pk, content in contents_of.items():
            asked = inputs[content.get("input", "")]
            beside = {
                "question": asked.question,
                "source": asked.source,
                "reference": asked.references[0] if asked.references else "",
            }
            texts = content.get("texts", [content["text"]])
            payloads[pk] = form_payload(self.form, texts, beside)
        return payloads

    def count_second_opinions(self, new: int, before: int = 0) -> int:
        if self.second_share is not None:
            return math.ceil(self.second_share * new)
        wanted = max(FEWEST_SECOND - before, math.ceil(SECOND_SHARE * new))
        return max(0, min(new, MOST_SECOND - before, wanted))

    def draft_questions(
        self,
        target_ids: Sequence[int],
        submissions: Sequence[int] | None,
        *,
        is_stored: bool = True,
    ) -> Iterator[QuestionDraft]:
        if submissions is not None:
            waiting = set().union(
                *self.find_unanswered(dict.fromkeys(submissions, target_ids)).values()
            )
            target_ids = [target for target in target_ids if target in waiting]
        target_of = Target.objects.in_bulk(target_ids)
        targets = [target_of[pk] for pk in dict.fromkeys(target_ids) if pk in target_of]
        payloads = self.payloads(targets)
        for target in targets:
            yield QuestionDraft(
                target.pk,
                self.asking[0].interface,
                payloads[target.pk],
                list(self.measures.criterion_names()),
            )

    def find_unanswered(
        self, targets_by_submission: Mapping[int, Collection[int]]
    ) -> dict[int, set[int]]:
        wanted = sorted(set().union(*targets_by_submission.values()))
        predicted = fetch_rows(
            "SELECT p.submission_id, i.target_id FROM instances_instance i JOIN"
            " submissions_prediction p ON p.instance_id = i.id WHERE i.target_id = ANY(%s) AND"
            " p.submission_id = ANY(%s)",
            [wanted, list(targets_by_submission)],
        )
        rated_of = read_ratings(wanted)
        left: dict[int, set[int]] = {submission: set() for submission in targets_by_submission}
        for submission, target in predicted:
            rated_text = rated_of.get(target, NOTHING)
            if (
                target in targets_by_submission[submission]
                and not rated_text.unanswered
                and not rated_text.ratings.get(self.track.criterion)
            ):
                left[submission].add(target)
        return left

    def judge(
        self,
        instances: Ids,
        submissions: Sequence[int],
        *,
        answers: Answers | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        targets = targets_of_instances(instances)
        rated_of = read_ratings(np.unique(targets).tolist())
        for target, answer in (answers or {}).items():
            rated_of[target] = RatedTarget(answer.get(target, {}).get("ratings", {}))
        verdicts: dict[str, NDArray[np.float64]] = {}
        for criterion in self.measures.criteria:
            values = (rated_of.get(target, NOTHING).value(criterion) for target in targets.tolist())
            column = np.fromiter(values, dtype=np.float64, count=targets.size)
            verdicts[criterion.name] = np.repeat(column[:, None], len(submissions), axis=1)
        return verdicts

    def rating_noise(self, instances: Ids, submissions: Sequence[int] = ()) -> dict[str, Noise]:
        targets = targets_of_instances(instances)
        rated_of = read_ratings(np.unique(targets).tolist())
        random = select_second_opinions(rated_of)
        return {
            criterion.name: rating_noise(targets, rated_of, criterion.name, random)
            for criterion in self.measures.criteria
            if criterion.single == "mean"
        }

    def verdicts(self, submission_id: int, *, public: bool) -> Verdicts:
        criterion = self.measures.criterion(self.track.criterion)
        return ratings.submission_verdicts(criterion, submission_id, public=public)

    def describe_predictions(
        self,
        submission_id: int,
        predictions: Sequence[int],
        *,
        public: bool,
        unjudged: Collection[int] = (),
    ) -> list[Judged]:
        return ratings.describe_predictions(
            self.measures.criteria, self.sources, predictions, public=public, unjudged=unjudged
        )

    def features(
        self, instances: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], sparse.csr_array]:
        """Return (n, 1) the logarithm of 1 plus the number of characters of each output, and (n, v)
        the sparse weights of the words in its text.
        """
        outputs = target_contents(instances.tolist())
        texts = [outputs.get(pk, {}).get("text", "") for pk in instances.tolist()]
        lengths = np.array([len(text) for text in texts], dtype=np.float64)
        return np.log1p(lengths)[:, None], word_weights(texts)

    def compute_metrics(
        self, instances: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[str, float]]]:
        outputs = target_contents(instances)
        inputs = self._inputs_of_outputs(outputs)
        shown = (
            self._scored_output(output, inputs[output.get("input", "")])
            for output in outputs.values()
        )
        yield from zip(outputs, compute_metrics(shown), strict=True)

    def _scored_output(self, output: Mapping[str, Any], made_for: Input) -> Scored:
        """Return the inputs of metrics for an output."""
        source = made_for.source or "\n".join(made_for.passages)
        return Scored.from_output(
            output["text"], self.shown_references(made_for, output["text"]), source
        )

    def judge_inputs(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        outputs = target_contents(instances)
        inputs, shown = self._inputs_of_outputs(outputs), {}
        for pk, output in outputs.items():
            asked = inputs[output.get("input", "")]
            shown[pk] = {
                "input_id": asked.key,
                "output": output["text"],
                "prompt": asked.prompt,
                "split": asked.split,
                "question": asked.question,
                "source": asked.source,
                "passages": asked.passages,
                "references": list(self.shown_references(asked, output["text"])),
            }
        return shown

    def shown_references(self, made_for: Input, text: str) -> Sequence[str]:
        """Return the references that metrics and judges see for an output: without the output
        itself, which would reveal that people wrote it.
        """
        return other_references(made_for.references, text)

    def sources(self, content: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the input of an output as (heading, text): the question, the source, passages, and
        human references; empty if the texts are restricted.
        """
        if not self.corpus.may_be_downloaded:
            return []
        asked = Input.objects.filter(corpus=self.corpus, key=content.get("input")).first()
        if asked is None:
            return []
        parts = [("Question", asked.question), ("Source", asked.source)]
        parts += [(f"Passage {number}", text) for number, text in enumerate(asked.passages, 1)]
        references = self.shown_references(asked, str(content.get("text", "")))
        parts += [("Reference", text) for text in references]
        return [(heading, text) for heading, text in parts if text]

    def _inputs_of_outputs(self, outputs: Mapping[int, dict[str, Any]]) -> defaultdict[str, Input]:
        """Return id -> input, for the inputs of outputs; an empty input if there is none."""
        keys = {output.get("input", "") for output in outputs.values()}
        rows = Input.objects.filter(corpus=self.corpus, key__in=keys)
        return defaultdict(Input, {row.key: row for row in rows})

    def traits(
        self, instances: NDArray[np.int64], submissions: Sequence[int]
    ) -> Mapping[str, Trait]:
        inputs = Input.objects.filter(corpus=self.corpus)
        made_for: dict[int, str] = {}
        traits = {}
        for name in self.groups:
            of_input: dict[str, str] = {}
            if 1 < len(inputs.values(name).distinct()[: MOST + 1]) <= MOST:
                of_input = dict(inputs.values_list("key", name))
                made_for = made_for or _input_ids_of(instances)
            values = [
                " ".join(of_input.get(made_for.get(pk, ""), "").split())[:NAME]
                for pk in instances.tolist()
            ]
            names, code = np.unique(np.array(values, dtype=np.str_), return_inverse=True)
            traits[name] = Trait(names, code)
        return traits

    def baseline_script(self) -> Path | None:
        sample = Input.objects.filter(corpus=self.corpus).order_by("pk").first()
        if sample is None or not (sample.source or sample.passages):
            return None
        return Path(__file__).with_name("baseline.py")

    def example_lines(self) -> Iterator[str]:
        for key in Input.objects.filter(corpus=self.corpus).order_by("pk").values_list("key")[:12]:
            text = "What your system writes for this input."
            yield json.dumps({"input_id": key[0], "output": text}, ensure_ascii=False)

    def input_lines(self) -> Iterator[str]:
        names = ("source", "question", "passages", "prompt", "split")
        for row in iterate_in_pages(Input.objects.filter(corpus=self.corpus)):
            fields = {name: getattr(row, name) for name in names if getattr(row, name)}
            yield json.dumps({"input_id": row.key} | fields, ensure_ascii=False) + "\n"

    @classmethod
    def n_inputs_of(cls, corpora: Sequence[Corpus], *, test: bool = False) -> Mapping[int, int]:
        inputs = Input.objects.filter(corpus__in=corpora)
        if test:
            inputs = inputs.exclude(part=Part.DEV)
        counted = dict(inputs.values_list("corpus").annotate(Count("pk")).order_by())
        return {corpus.pk: counted.get(corpus.pk, 0) for corpus in corpora}


def unusable_reason(report: Report) -> Unusable:
    """Return the reason why no line of a file of outputs can be used; an error of all lines has
    priority.
    """
    errors = [message for message in report if message.severity == "error"]
    errors.sort(key=lambda message: message.line > 0)
    texts = [message.text for message in errors[:1]]
    return Unusable(" ".join(["The file has no usable output.", *texts]))


def _input_ids_of(instances: NDArray[np.int64]) -> dict[int, str]:
    """Return instance -> the id of the input that it was written for."""
    return dict(
        fetch_rows(
            "SELECT i.id, t.content->>'input' FROM instances_instance i JOIN instances_target t ON"
            " t.id = i.target_id WHERE i.id = ANY(%s)",
            [instances.tolist()],
        )
    )
