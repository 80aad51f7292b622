"""Automatic metrics of single outputs, by libraries:
what is free, known for every output, and biased.

A metric is a function of one output, its references and its source. Its version names the library,
its settings and our own treatment: a score that is stored is one of a version. NaN where a metric
is not defined: without a reference, without a source, for a text without any word, or in a script
whose words are not known (`formats.words`).

The similarity of vectors is there where `requirements-similarity.txt` is installed. METEOR needs
data that no pinned package brings: it is left to uploads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formats.words import HAN, KANA, words, words_are_known
from kbpo.tracks import base
from kbpo.tracks.texts.rouge import rouge, stemmed_words

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from wordllama import WordLlama

LONGEST = 20_000
"""Characters of a text that a metric looks at; time grows with the square of some."""
TREATMENT = f"first {LONGEST:,} characters"
TOKENIZERS = "tokens by script: 13a, zh, char for kana"


@dataclass(frozen=True, slots=True)
class Scored:
    """The input of a metric: the output as people see it, references, source and passages
    as one.
    """

    text: str
    references: tuple[str, ...] = ()
    source: str = ""

    @classmethod
    def of(cls, text: str, references: Sequence[str] = (), source: str = "") -> Scored:
        """Return the output, cut to the length that metrics read, without empty references."""
        usable = tuple(part[:LONGEST] for part in references if part.strip())
        return cls(text[:LONGEST], usable, source[:LONGEST])


@dataclass(frozen=True)
class Metric(base.Metric):
    """A metric: its inputs, its range, and its computation."""

    needs: str
    """"references", "source" or "text": with nothing but the text"""
    high: float
    """Values lie in [0, high]; infinite where there is no bound."""
    compute: Callable[[Scored], float]

    def __call__(self, scored: Scored) -> float:
        """Return the value, NaN where the metric is not defined."""
        if self.needs == "references" and not scored.references:
            return math.nan
        if self.needs == "source" and not scored.source.strip():
            return math.nan
        return self.compute(scored)


@cache  # what follows takes seconds to import, and few processes compute metrics
def _bleu(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True, tokenize=tokenizer)


@cache
def _chrf() -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def _known_references(scored: Scored) -> list[str]:
    """Return the references that have known words."""
    return [text for text in scored.references if words_are_known(text)]


def _sentence_bleu(scored: Scored) -> float:
    references = _known_references(scored)
    if not references:
        return math.nan
    written = "".join(references)
    # sacrebleu's own tokenizer for Japanese needs MeCab and a dictionary of 50 MB.
    tokenizer = "char" if KANA.search(written) else "zh" if HAN.search(written) else "13a"
    return float(_bleu(tokenizer).sentence_score(scored.text, references).score) / 100


def _sentence_chrf(scored: Scored) -> float:
    return float(_chrf().sentence_score(scored.text, list(scored.references)).score) / 100


def _rouge_of(kind: str, part: str) -> Callable[[Scored], float]:
    """Return the highest ROUGE over the references; NaN where no reference has known words."""

    def compute(scored: Scored) -> float:
        """Yield the values of the metrics for each output, one output at a time, so that the caller
        can report progress.
        """
        references = [text for text in _known_references(scored) if stemmed_words(text)]
        scores = (rouge(scored.text, reference, kind) for reference in references)
        return max((float(getattr(score, part)) for score in scores), default=math.nan)

    return compute


@cache
def _vectors() -> WordLlama:
    import wordllama

    # Its wheel has all it needs; it would look for half of it elsewhere, and then ask the network.
    directory = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=directory, disable_download=True)


def _similarity(scored: Scored) -> float:
    """Return the cosine to the most similar reference, not below 0; NaN where either side has no
    word.
    """
    texts = [scored.text, *scored.references]
    vectors = np.asarray(_vectors().embed(texts), dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1)
    has_word = np.isfinite(length) & (length > 0)
    if not has_word[0] or not has_word[1:].any():
        return math.nan
    unit = vectors[has_word] / length[has_word, None]
    return float(np.clip((unit[1:] @ unit[0]).max(), 0.0, 1.0))


def _n_words(scored: Scored) -> float:
    return float(len(words(scored.text))) if words_are_known(scored.text) else math.nan


def _copied(scored: Scored) -> float:
    """Return the share of the output's bigrams that also occur in the source; for a single word
    whether it does.
    """
    if not (words_are_known(scored.text) and words_are_known(scored.source)):
        return math.nan
    output, source = (words(text.lower()) for text in (scored.text, scored.source))
    if len(output) < 2:
        return float(output[0] in source) if output else math.nan
    pairs_of_source = set(pairwise(source))
    pairs = list(pairwise(output))
    return sum(pair in pairs_of_source for pair in pairs) / len(pairs)


def _version(library: str, settings: str) -> str:
    return f"{library} {version(library)}, {settings}, {TREATMENT}"


def _rouge_metric(name: str, label: str, kind: str, part: str) -> Metric:
    settings = f"ROUGE 1, {kind} {part}, words of all scripts, Porter stemmer, best reference"
    compute = _rouge_of(kind, part)
    return Metric(name, label, f"{settings}, {TREATMENT}", "references", 1.0, compute)


def _optional() -> Iterator[Metric]:
    """Yield the metrics whose libraries need not be installed."""
    if find_spec("wordllama"):
        model = _version("wordllama", "l2_supercat 256, cosine, best reference")
        label = "Similarity of vectors"
        yield Metric("similarity", label, model, "references", 1.0, _similarity)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_optional(),
        Metric(
            "bleu",
            "BLEU of the output",
            _version(
                "sacrebleu", f"sentence BLEU, effective order, exponential smoothing, {TOKENIZERS}"
            ),
            "references",
            1.0,
            _sentence_bleu,
        ),
        Metric(
            "chrf",
            "chrF",
            _version("sacrebleu", "chrF2, 6-grams"),
            "references",
            1.0,
            _sentence_chrf,
        ),
        _rouge_metric("rouge_1_f", "ROUGE-1", "rouge1", "fmeasure"),
        _rouge_metric("rouge_1_r", "ROUGE-1, recall", "rouge1", "recall"),
        _rouge_metric("rouge_2_f", "ROUGE-2", "rouge2", "fmeasure"),
        _rouge_metric("rouge_l_f", "ROUGE-L", "rougeL", "fmeasure"),
        Metric("length", "Words", f"words 2, {TREATMENT}", "text", math.inf, _n_words),
        Metric(
            "copy_rate",
            "Copied from the source",
            f"pairs of words 3, {TREATMENT}",
            "source",
            1.0,
            _copied,
        ),
    )
}


def compute(
    outputs: Iterable[Scored], names: Sequence[str] = tuple(METRICS)
) -> Iterator[dict[str, float]]:
    """Yield the values of the metrics for each output, one output at a time, so that progress can
    be told.

    Raises ValueError for a name that is none.
    """
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"names must be of {', '.join(METRICS)}; got {unknown[0]!r}")
    chosen = [METRICS[name] for name in names]
    for scored in outputs:
        yield {metric.name: metric(scored) for metric in chosen}


def references_without(references: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the references that are not the text itself: what a reference is held against.

    Only one of several equal references is left out: somebody else may have written the same.
    """
    left = list(references)
    if text in left:
        left.remove(text)
    return tuple(left)
