"""Generated text: systems write an output for each input; people rate the language of each."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.conf import settings
from django.db.models import Count
from numpy.typing import NDArray
from scipy import sparse

from formats.limits import MB, Limits
from formats.messages import Report
from formats.opening import open_text
from formats.outputs import read_outputs
from formats.presentation import SAID, Casing, Presentation, present
from formats.words import words
from kbpo.corpus.export import in_pages
from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Corpus, Part
from kbpo.instances.models import Target
from kbpo.tracks.base import (
    Asking,
    Criterion,
    Distribution,
    Group,
    Judged,
    PoolColumns,
    Trait,
    Unusable,
    Words,
)
from kbpo.tracks.content.store import Claim, contents, store
from kbpo.tracks.content.track import ContentTrack
from kbpo.tracks.generation import baseline
from kbpo.tracks.generation.metrics import METRICS, Scored, compute, references_without
from kbpo.tracks.generation.models import Input
from kbpo.tracks.generation.priors import PRIORS

LONGEST = 20_000


def word_weights(texts: Sequence[str]) -> sparse.csr_array:
    """Weights (n, v) of the words of each text: (1 + log times) · log(1 + n/texts with the word).

    For `estimators.rating_model.fit_ratings(text=)`; a row of zeros for a text without words.
    """
    counts = [Counter(words(text[:LONGEST].lower())) for text in texts]
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


FACETS = (
    ("fluency", "Fluency", "How well does the text read?",
     ("hardly understandable", "a few errors, but understandable",
      "reads as fluently as a newspaper")),
    ("redundancy", "Redundancy", "Does it repeat itself?",
     ("much is said over and over", "something is said twice", "nothing is said twice")),
    ("overall", "Overall", "How good is the text, all in all?",
     ("of little use", "some of it should be mended", "good as it is")),
)  # fmt: skip
"""Name, label, question, and the cues of the three answers, from the worst"""
ANSWERS = (("Bad", 0.0), ("So-so", 0.5), ("Good", 1.0))
FIELDS = {
    "input_id": "The id of the input, as it stands in the file of inputs. Each has one output",
    "output": "What your system wrote for it. Marks that nobody sees are removed",
}
"""Of a line of a file, as people read them"""
MOST, NAME = 30, 100
"""Prompts or splits that scores are cut by, where there are no more;
characters of a slice's name
"""
LINE = 40.0
"""Bytes of a line at least, for telling how far a file is read"""


def _criterion(facet: str) -> Criterion:
    """The criterion that is the ratings of one facet."""
    label = next(label for name, label, _, _ in FACETS if name == facet)
    return Criterion(facet, label, low=1.0, high=3.0, unit="", single="mean")


class GenerationTrack(ContentTrack):
    """Generated text (Chaganty, Mussmann and Liang 2018)."""

    kind: ClassVar[str] = "generation"
    target_kind: ClassVar[str] = "output"
    criteria: ClassVar = (
        *(_criterion(name) for name in ("overall", "fluency")),
        Criterion(
            "edit", "Edit (characters)", higher_is_better=False, single="mean", liked_from=0.3
        ),
        _criterion("redundancy"),
        # Words edited over words of the post-edit, cut at 1: what the source publishes.
        Criterion(
            "hter", "Edit (words, HTER)", higher_is_better=False, single="mean", liked_from=0.3
        ),
    )
    distributions: ClassVar = {"instance": Distribution("Every output", "1.0::float8")}
    asking: ClassVar = (
        Asking("language_quality", Decimal("0.15"), 60, people=1, extra=Decimal("0.25")),
    )
    is_taste: ClassVar[bool] = True
    presents: ClassVar[bool] = True
    metrics: ClassVar = tuple(METRICS.values())
    priors: ClassVar = PRIORS
    """Here, since declared forms, by which texts are compared, stand in no registry"""
    pool: ClassVar = PoolColumns(input="hashtext(t.content->>'input')::bigint")
    second_share: ClassVar = None
    groups: ClassVar = {"prompt": Group("Prompt", "prompt"), "split": Group("Split", "split")}
    words: ClassVar = Words(
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
        " and the leaderboard says how sure each score is.",
        format="JSON Lines: one output a line, with the id of its input.",
        fields=FIELDS,
        described="which systems wrote a text, and how long it is",
        share="mean rating",
        share_of="of the scale",
    )

    def new_report(self) -> Report:
        return Report()

    def read(self, path: str, report: Report, progress: Callable[[float], None]) -> Iterator[Claim]:
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

        for output in read_outputs(
            lines(), n_passages, limits, report, presentation=self._setting, casing=self._casing
        ):
            content: dict[str, Any] = {"input": output.input_id, "text": output.shown}
            if output.passage is not None:
                content["passage"] = output.passage
            yield Claim(f"{output.input_id}\n{output.shown}", output.line, content)

    @cached_property
    def dev_inputs(self) -> list[str]:
        """The keys of the inputs of the development part."""
        dev = Input.objects.filter(corpus=self.corpus, part=Part.DEV)
        return list(dev.values_list("key", flat=True))

    def has_development_part(self) -> bool:
        return bool(self.dev_inputs)

    def store(self, submission_id: int, claims: Iterable[Claim], report: Report) -> dict[str, Any]:
        stored = store(submission_id, self.corpus, self.target_kind, claims, self.dev_inputs)
        if report.fatal or not stored:
            errors = [message for message in report if message.severity == "error"]
            errors.sort(key=lambda message: message.line > 0)  # what is said of all lines first
            texts = [message.text for message in errors[:1]]
            raise Unusable(" ".join(["The file has no usable output.", *texts]))
        return {
            self.words.items: stored,
            f"{self.words.item}_lines": report.relation_lines,
            "set_aside": report.relation_lines - stored,
            "lines": report.lines,
        }

    def guide(self) -> Mapping[str, Any]:
        return {
            "guide": [
                "Each word counts as it stands; you need not know what it is about.",
                "Whether it is true does not count here.",
            ]
        }

    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        return {
            target.pk: {
                "title": "A text",
                "text": (target.content or {})["text"],
                "fields": [_field(*facet) for facet in FACETS],
                **self.guide(),
            }
            for target in targets
        }

    def words_in(self, instances: NDArray[np.int64]) -> sparse.csr_array:
        texts = {pk: output["text"] for pk, output in contents(instances.tolist()).items()}
        return word_weights([texts[pk] for pk in instances.tolist()])

    def features(self, instances: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 1) the logarithm of the output's length."""
        length_of = dict(
            fetch(
                "SELECT i.id, length(t.content->>'text') FROM instances_instance i JOIN"
                " instances_target t ON t.id = i.target_id WHERE i.id = ANY(%s)",
                [instances.tolist()],
            )
        )
        lengths = np.array(
            [length_of[instance] for instance in instances.tolist()], dtype=np.float64
        )
        return np.log1p(lengths)[:, None]

    def measure(self, instances: Sequence[int]) -> Iterator[tuple[int, Mapping[str, float]]]:
        outputs = contents(instances)
        inputs = self._inputs(outputs)
        shown = (self._scored(output, inputs[output["input"]]) for output in outputs.values())
        yield from zip(outputs, compute(shown), strict=True)

    def _scored(self, output: Mapping[str, Any], made_for: Input) -> Scored:
        """What metrics are shown of an output."""
        source = made_for.source or "\n".join(made_for.passages)
        return Scored.of(output["text"], self.beside(made_for, output["text"]), source)

    def to_judge(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        outputs = contents(instances)
        inputs = self._inputs(outputs)
        return {
            pk: {
                "input_id": output["input"],
                "output": output["text"],
                "prompt": inputs[output["input"]].prompt,
                "split": inputs[output["input"]].split,
                "question": inputs[output["input"]].question,
                "source": inputs[output["input"]].source,
                "passages": inputs[output["input"]].passages,
                "references": list(self.beside(inputs[output["input"]], output["text"])),
            }
            for pk, output in outputs.items()
        }

    def beside(self, made_for: Input, text: str) -> Sequence[str]:
        """The references that metrics and judges are shown of an output: not itself, or they would
        know that people wrote it.
        """
        return references_without(
            [self.as_shown(reference) for reference in made_for.references], text
        )

    def as_shown(self, text: str) -> str:
        """A text as people and metrics see it on this track."""
        return present(text, self._setting, self._casing)

    def wrong_presentation(self) -> str:
        try:
            Presentation.of(self.track.presentation)
        except (AttributeError, ValueError) as problem:
            return f"How outputs are shown cannot be read: {problem}."
        return super().wrong_presentation()

    def presented(self) -> Sequence[str]:
        return [words for name, words in SAID.items() if getattr(self._setting, name)]

    def shown_as(self) -> str:
        return self._setting.name

    @property
    def _setting(self) -> Presentation:
        return Presentation.of(self.track.presentation)

    @property
    def _casing(self) -> Casing | None:
        if not self._setting.true_case:
            return None
        return _casing_of(self.corpus.pk, self.corpus.loaded_at)

    def explain(self, judged: Judged, *, public: bool) -> list[tuple[str, str]]:
        """What an output was written for, as (heading, text): the question, the source, passages,
        and what people wrote for it; nothing where the texts are not for everybody.
        """
        if not self.corpus.may_be_downloaded:
            return []
        target = Target.objects.get(instances=judged.prediction.instance_id)
        key = (target.content or {}).get("input")
        asked = Input.objects.filter(corpus=self.corpus, key=key).first()
        if asked is None:
            return []
        parts = [("Question", asked.question), ("Source", asked.source)]
        parts += [(f"Passage {number}", text) for number, text in enumerate(asked.passages, 1)]
        references = self.beside(asked, str((target.content or {}).get("text", "")))
        parts += [("Reference", text) for text in references]
        return [(heading, text) for heading, text in parts if text]

    def _inputs(self, outputs: Mapping[int, dict[str, Any]]) -> dict[str, Input]:
        """The inputs that outputs are for, by their ids."""
        keys = {output["input"] for output in outputs.values()}
        return {row.key: row for row in Input.objects.filter(corpus=self.corpus, key__in=keys)}

    def by_input(self, submission_id: int) -> Mapping[str, int]:
        instance_of_input = fetch(
            "SELECT t.content->>'input', i.id FROM submissions_prediction p"
            " JOIN instances_instance i ON i.id = p.instance_id"
            " JOIN instances_target t ON t.id = i.target_id WHERE p.submission_id = %s"
            " ORDER BY p.line, p.id",
            [submission_id],
        )
        return dict(instance_of_input)

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
                made_for = made_for or _inputs_of(instances)
            values = [
                " ".join(of_input.get(made_for.get(pk, ""), "").split())[:NAME]
                for pk in instances.tolist()
            ]
            names, code = np.unique(np.array(values, dtype=np.str_), return_inverse=True)
            traits[name] = Trait(names, code)
        return traits

    def asked(self) -> Sequence[Mapping[str, Any]]:
        return [_field(*facet) for facet in FACETS]

    def baseline(self) -> Path | None:
        sample = Input.objects.filter(corpus=self.corpus).order_by("pk").first()
        has_text = sample is not None and (sample.source or sample.passages)
        return Path(baseline.__file__) if has_text else None

    def baseline_output(self, most: int | None = None) -> Iterator[str]:
        for line in self.input_lines(most):
            yield json.dumps(baseline.predict(json.loads(line))) + "\n"

    def example(self) -> Iterator[str]:
        for key in Input.objects.filter(corpus=self.corpus).order_by("pk").values_list("key")[:12]:
            text = "What your system writes for this input."
            yield json.dumps({"input_id": key[0], "output": text}, ensure_ascii=False)

    def input_lines(self, most: int | None = None) -> Iterator[str]:
        names = ("source", "question", "passages", "prompt", "split")
        for row in in_pages(Input.objects.filter(corpus=self.corpus), most):
            fields = {name: getattr(row, name) for name in names if getattr(row, name)}
            yield json.dumps({"input_id": row.key} | fields, ensure_ascii=False) + "\n"

    def n_test_inputs(self) -> int:
        return Input.objects.filter(corpus=self.corpus).exclude(part=Part.DEV).count()

    @classmethod
    def n_inputs_of(cls, corpora: Sequence[Corpus]) -> Mapping[int, int]:
        inputs = Input.objects.filter(corpus__in=corpora).values_list("corpus")
        counted = dict(inputs.annotate(Count("pk")).order_by())
        return {corpus.pk: counted.get(corpus.pk, 0) for corpus in corpora}


@lru_cache(maxsize=4)
def _casing_of(corpus: int, loaded_at: datetime) -> Casing:
    """How words are written in the inputs of a corpus, which stay as they were loaded."""
    texts = Input.objects.filter(corpus=corpus).values_list("source", "question", "passages")
    return Casing.of(
        text
        for source, question, passages in texts.iterator(chunk_size=200)
        for text in (source, question, *passages)
    )


def _inputs_of(instances: NDArray[np.int64]) -> dict[int, str]:
    """The id of the input that each instance was written for."""
    return dict(
        fetch(
            "SELECT i.id, t.content->>'input' FROM instances_instance i JOIN instances_target t ON"
            " t.id = i.target_id WHERE i.id = ANY(%s)",
            [instances.tolist()],
        )
    )


def _field(name: str, label: str, ask: str, cues: tuple[str, ...]) -> dict[str, Any]:
    """The question about one facet."""
    options = [
        {"label": answer, "value": value, "cue": cue}
        for (answer, value), cue in zip(ANSWERS, cues, strict=True)
    ]
    return {"name": name, "label": label, "ask": ask, "options": options}
