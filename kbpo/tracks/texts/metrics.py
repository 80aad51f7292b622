"""Automatic metrics of single outputs, computed by libraries: free, known for every output, and
biased.

A metric is a function of one output, its references and its source. Its version names the library,
its settings and our preprocessing; each stored score belongs to a version. The value is NaN if a
metric is undefined: without a reference, without a source, for a text without any word, or in a
script whose words are not known (`formats.words`).

The similarity of vectors is available if `requirements-similarity.txt` is installed. METEOR needs
data that no pinned package includes, so its scores can only be uploaded.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rapidfuzz.distance import LCSseq

from formats.words import HAN, KANA, can_split_words, split_words
from kbpo.tracks import base

KINDS = ("rouge1", "rouge2", "rougeL")
SHORTEST_STEMMED = 4
_ASCII_WORD = re.compile("[a-z0-9]+")


class Rouge(NamedTuple):
    """Shares of n-grams (or of the longest common subsequence) that a text and a reference have in
    common.

    Examples
    --------
    >>> rouge_score("A cat sat.", "The cats sat there.", "rouge1")
    Rouge(precision=0.6666666666666666, recall=0.5, fmeasure=0.5714285714285715)
    """

    precision: float
    recall: float
    fmeasure: float


def rouge_score(text: str, reference: str, kind: str) -> Rouge:
    """Return one ROUGE score of a text; zeros where either side has no n-gram.

    Raises ValueError if `kind` is not in `KINDS`.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    ours, theirs = stemmed_words(text), stemmed_words(reference)
    if kind == "rougeL":
        n_ours, n_theirs = len(ours), len(theirs)
        shared = LCSseq.similarity(ours, theirs)
    else:
        n = int(kind[-1])
        left, right = _ngrams(ours, n), _ngrams(theirs, n)
        n_ours, n_theirs = left.total(), right.total()
        shared = (left & right).total()
    if not shared:
        return Rouge(0.0, 0.0, 0.0)
    precision, recall = shared / n_ours, shared / n_theirs
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall))


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[k : k + n]) for k in range(len(tokens) - n + 1))


@lru_cache(maxsize=64)  # a reference is compared with many texts, by several kinds
def stemmed_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; words of four or more ASCII letters and digits are
    stemmed.

    Examples
    --------
    >>> stemmed_words("Cats_were sitting, dogs RAN.")
    ('cat', 'were', 'sit', 'dog', 'ran')
    """
    found = split_words(text.lower().replace("_", " "))
    return tuple(
        porter_stem(word) if len(word) >= SHORTEST_STEMMED and _ASCII_WORD.fullmatch(word) else word
        for word in found
    )


# The rules would cut too much from these and other short words.
_IRREGULAR = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing",
    "cannings": "canning", "canning": "canning", "howe": "howe", "proceed": "proceed",
    "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("fulli", "ful"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def porter_stem(word: str) -> str:
    """Return the stem of a lowercase word by Porter's algorithm.

    Examples
    --------
    >>> [porter_stem(word) for word in ("caresses", "relational", "happily", "hopping", "news")]
    ['caress', 'relat', 'happili', 'hop', 'news']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _without_endings(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _consonant_vowel_pattern(word)[-2] == "c":
        word = word[:-1] + "i"
    word = _replace_double_suffix(word)
    word = _replace_suffix(word, _STEP_3)
    for suffix in _STEP_4:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            if _porter_measure(left) > 1 and (suffix != "ion" or left[-1] in "st"):
                word = left
            break
    if word.endswith("e"):
        left = word[:-1]
        if _porter_measure(left) > 1 or (_porter_measure(left) == 1 and not _is_short_stem(left)):
            word = left
    return word[:-1] if word.endswith("ll") and _porter_measure(word[:-1]) > 1 else word


def _consonant_vowel_pattern(word: str) -> str:
    """Return the pattern of a word: c for each consonant, v for each vowel; y is a vowel after a
    consonant.
    """
    pattern = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and pattern[-1:] == "c")
        pattern += "v" if vowel else "c"
    return pattern


def _porter_measure(word: str) -> int:
    """Return how often a consonant follows a vowel."""
    return _consonant_vowel_pattern(word).count("vc")


def _is_short_stem(word: str) -> bool:
    """Return whether a word ends in consonant, vowel, consonant (not w, x, y), or is a vowel and a
    consonant.
    """
    pattern = _consonant_vowel_pattern(word)
    return (pattern[-3:] == "cvc" and word[-1] not in "wxy") or pattern == "vc"


def _without_plural(word: str) -> str:
    """Return the word without a plural ending (step 1a)."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word if word.endswith("ss") else word.removesuffix("s")


def _without_endings(word: str) -> str:
    """Return the word without -eed, -ed and -ing (step 1b)."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _porter_measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        left = word.removesuffix(suffix)
        if left != word and "v" in _consonant_vowel_pattern(left):
            break
    else:
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if len(left) > 1 and left[-1] == left[-2] and _consonant_vowel_pattern(left)[-1] == "c":
        return left if left[-1] in "lsz" else left[:-1]
    return left + "e" if _porter_measure(left) == 1 and _is_short_stem(left) else left


def _replace_double_suffix(word: str) -> str:
    if word.endswith("alli") and _porter_measure(word[:-4]) > 0:
        return _replace_double_suffix(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _porter_measure(word[:-3]) > 0 else word
    return _replace_suffix(word, _STEP_2)


def _replace_suffix(word: str, rules: Sequence[tuple[str, str]]) -> str:
    """Return the word with its first matching suffix replaced, if the rest is long enough."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            return left + replacement if _porter_measure(left) > 0 else word
    return word


if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from wordllama import WordLlama

LONGEST = 20_000
"""Number of characters of a text that a metric reads, since the time of some grows with its
square.
"""
TREATMENT = f"first {LONGEST:,} characters"
TOKENIZERS = "tokens by script: 13a, zh, char for kana"


@dataclass(frozen=True, slots=True)
class Scored:
    """The input of a metric: the output as shown to people, references, source, and the joined
    passages.
    """

    text: str
    references: tuple[str, ...] = ()
    source: str = ""

    @classmethod
    def from_output(cls, text: str, references: Sequence[str] = (), source: str = "") -> Scored:
        """Return the output, cut to the length that metrics read, without empty references."""
        usable = tuple(part[:LONGEST] for part in references if part.strip())
        return cls(text[:LONGEST], usable, source[:LONGEST])


@dataclass(frozen=True)
class Metric(base.Metric):
    """A metric: its inputs, its range, and its computation."""

    needs: str
    """"references", "source" or "text" (the output alone)"""
    high: float
    """Values lie in [0, high]; infinite if there is no bound"""
    compute: Callable[[Scored], float]

    def __call__(self, scored: Scored) -> float:
        """Return the value; NaN if the metric is undefined."""
        if self.needs == "references" and not scored.references:
            return math.nan
        if self.needs == "source" and not scored.source.strip():
            return math.nan
        return self.compute(scored)


@cache  # what follows takes seconds to import, and few processes compute metrics
def _bleu_metric(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True, tokenize=tokenizer)


@cache
def _chrf_metric() -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def _known_references(scored: Scored) -> list[str]:
    """Return the references that have known words."""
    return [text for text in scored.references if can_split_words(text)]


def _sentence_bleu(scored: Scored) -> float:
    references = _known_references(scored)
    if not references:
        return math.nan
    written = "".join(references)
    # sacrebleu's own tokenizer for Japanese needs MeCab and a dictionary of 50 MB.
    tokenizer = "char" if KANA.search(written) else "zh" if HAN.search(written) else "13a"
    return float(_bleu_metric(tokenizer).sentence_score(scored.text, references).score) / 100


def _sentence_chrf(scored: Scored) -> float:
    return float(_chrf_metric().sentence_score(scored.text, list(scored.references)).score) / 100


def _best_rouge(kind: str, part: str) -> Callable[[Scored], float]:
    """Return a function that computes the highest ROUGE over the references; NaN if no reference
    has known words.
    """

    def compute(scored: Scored) -> float:
        """Return the highest ROUGE of an output; NaN if no reference has known words."""
        references = [text for text in _known_references(scored) if stemmed_words(text)]
        scores = (rouge_score(scored.text, reference, kind) for reference in references)
        return max((float(getattr(score, part)) for score in scores), default=math.nan)

    return compute


@cache
def _word_vectors() -> WordLlama:
    import wordllama

    # Its wheel is complete; otherwise it would search elsewhere and on the network.
    directory = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=directory, disable_download=True)


def _embedding_similarity(scored: Scored) -> float:
    """Return the cosine with the most similar reference, at least 0; NaN if either side has no
    word.
    """
    texts = [scored.text, *scored.references]
    vectors = np.asarray(_word_vectors().embed(texts), dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1)
    has_word = np.isfinite(length) & (length > 0)
    if not has_word[0] or not has_word[1:].any():
        return math.nan
    unit = vectors[has_word] / length[has_word, None]
    return float(np.clip((unit[1:] @ unit[0]).max(), 0.0, 1.0))


def _count_words(scored: Scored) -> float:
    return float(len(split_words(scored.text))) if can_split_words(scored.text) else math.nan


def _copied_bigram_share(scored: Scored) -> float:
    """Return the share of the output's bigrams that also occur in the source; for a single word,
    whether the word occurs.
    """
    if not (can_split_words(scored.text) and can_split_words(scored.source)):
        return math.nan
    output, source = (split_words(text.lower()) for text in (scored.text, scored.source))
    if len(output) < 2:
        return float(output[0] in source) if output else math.nan
    pairs_of_source = set(pairwise(source))
    pairs = list(pairwise(output))
    return sum(pair in pairs_of_source for pair in pairs) / len(pairs)


def _metric_version(library: str, settings: str) -> str:
    return f"{library} {version(library)}, {settings}, {TREATMENT}"


def _rouge_metric(name: str, label: str, kind: str, part: str) -> Metric:
    settings = f"ROUGE 1, {kind} {part}, words of all scripts, Porter stemmer, best reference"
    compute = _best_rouge(kind, part)
    return Metric(name, label, f"{settings}, {TREATMENT}", "references", 1.0, compute)


def _optional_metrics() -> Iterator[Metric]:
    """Yield the metrics whose optional libraries are installed."""
    if find_spec("wordllama"):
        model = _metric_version("wordllama", "l2_supercat 256, cosine, best reference")
        label = "Similarity of vectors"
        yield Metric("similarity", label, model, "references", 1.0, _embedding_similarity)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_optional_metrics(),
        Metric(
            "bleu",
            "BLEU of the output",
            _metric_version(
                "sacrebleu", f"sentence BLEU, effective order, exponential smoothing, {TOKENIZERS}"
            ),
            "references",
            1.0,
            _sentence_bleu,
        ),
        Metric(
            "chrf",
            "chrF",
            _metric_version("sacrebleu", "chrF2, 6-grams"),
            "references",
            1.0,
            _sentence_chrf,
        ),
        _rouge_metric("rouge_1_f", "ROUGE-1", "rouge1", "fmeasure"),
        _rouge_metric("rouge_1_r", "ROUGE-1, recall", "rouge1", "recall"),
        _rouge_metric("rouge_2_f", "ROUGE-2", "rouge2", "fmeasure"),
        _rouge_metric("rouge_l_f", "ROUGE-L", "rougeL", "fmeasure"),
        Metric("length", "Words", f"words 2, {TREATMENT}", "text", math.inf, _count_words),
        Metric(
            "copy_rate",
            "Copied from the source",
            f"pairs of words 3, {TREATMENT}",
            "source",
            1.0,
            _copied_bigram_share,
        ),
    )
}


def compute_metrics(
    outputs: Iterable[Scored], names: Sequence[str] = tuple(METRICS)
) -> Iterator[dict[str, float]]:
    """Yield the values of the metrics for each output, one output at a time, so that progress can
    be reported.

    Raises ValueError for an unknown metric.
    """
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"names must be of {', '.join(METRICS)}; got {unknown[0]!r}")
    chosen = [METRICS[name] for name in names]
    for scored in outputs:
        yield {metric.name: metric(scored) for metric in chosen}


def other_references(references: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the references without the text itself, which are used to score a reference.

    Only one of several equal references is left out, since another person may have written the same
    text.
    """
    left = list(references)
    if text in left:
        left.remove(text)
    return tuple(left)
