"""ROUGE-1, ROUGE-2 and ROUGE-L of one text against one reference, with Porter's stemmer.

For texts in ASCII letters the scores are those of rouge-score 0.1.2 with its stemmer; a test holds
them to values recorded with it. Words in other letters are compared as they are.

References: Lin (2004), *ROUGE: a package for automatic evaluation of summaries*; Porter (1980), *An
algorithm for suffix stripping*, with the exceptions that NLTK's stemmer makes by default.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from formats.words import words

KINDS = ("rouge1", "rouge2", "rougeL")
SHORTEST_STEMMED = 4
_ASCII_WORD = re.compile("[a-z0-9]+")


class Rouge(NamedTuple):
    """Shares of the n-grams (or of the longest common subsequence) that text and reference share.

    Examples
    --------
    >>> rouge("A cat sat.", "The cats sat there.", "rouge1")
    Rouge(precision=0.6666666666666666, recall=0.5, fmeasure=0.5714285714285715)
    """

    precision: float
    recall: float
    fmeasure: float


def rouge(text: str, reference: str, kind: str) -> Rouge:
    """Return one ROUGE score of a text; zeros where either side has no n-gram.

    Raises ValueError if `kind` is none of `KINDS`.
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
    """Return the words of a text in small letters; those of four and more ASCII letters and digits
    are stemmed.

    Examples
    --------
    >>> stemmed_words("Cats_were sitting, dogs RAN.")
    ('cat', 'were', 'sit', 'dog', 'ran')
    """
    found = words(text.lower().replace("_", " "))
    return tuple(
        stem(word) if len(word) >= SHORTEST_STEMMED and _ASCII_WORD.fullmatch(word) else word
        for word in found
    )


# Of these and other short words the rules would take too much.
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
def stem(word: str) -> str:
    """Return the stem of a word in small letters by Porter's algorithm.

    Examples
    --------
    >>> [stem(word) for word in ("caresses", "relational", "happily", "hopping", "news")]
    ['caress', 'relat', 'happili', 'hop', 'news']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _without_endings(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _pattern(word)[-2] == "c":
        word = word[:-1] + "i"
    word = _step_2(word)
    word = _replace_suffix(word, _STEP_3)
    for suffix in _STEP_4:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            if _measure(left) > 1 and (suffix != "ion" or left[-1] in "st"):
                word = left
            break
    if word.endswith("e"):
        left = word[:-1]
        if _measure(left) > 1 or (_measure(left) == 1 and not _is_short(left)):
            word = left
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _pattern(word: str) -> str:
    """Return a c for each consonant, a v for each vowel; y is a vowel after a consonant."""
    pattern = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and pattern[-1:] == "c")
        pattern += "v" if vowel else "c"
    return pattern


def _measure(word: str) -> int:
    """Return how often a consonant follows a vowel."""
    return _pattern(word).count("vc")


def _is_short(word: str) -> bool:
    """Return whether a word ends in consonant, vowel, consonant (not w, x, y), or is a vowel and a
    consonant.
    """
    pattern = _pattern(word)
    return (pattern[-3:] == "cvc" and word[-1] not in "wxy") or pattern == "vc"


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word if word.endswith("ss") else word.removesuffix("s")


def _without_endings(word: str) -> str:
    """Step 1b: -eed, -ed and -ing."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        left = word.removesuffix(suffix)
        if left != word and "v" in _pattern(left):
            break
    else:
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if len(left) > 1 and left[-1] == left[-2] and _pattern(left)[-1] == "c":
        return left if left[-1] in "lsz" else left[:-1]
    return left + "e" if _measure(left) == 1 and _is_short(left) else left


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace_suffix(word, _STEP_2)


def _replace_suffix(word: str, rules: Sequence[tuple[str, str]]) -> str:
    """Return the word with the first suffix that fits replaced, if enough of it is left."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            left = word.removesuffix(suffix)
            return left + replacement if _measure(left) > 0 else word
    return word
