"""Distances between a text and its post-edit: by characters and by words."""

from __future__ import annotations

from rapidfuzz.distance import Levenshtein

from formats.cleaning import clean_text


def character_edit_share(text: str, post_edit: str, changed: int | None = None) -> float:
    """Return the number of characters inserted, deleted or replaced, divided by the length of the
    longer text, in [0, 1].

    `changed` is this number, if known, since long texts take seconds to compare.

    Examples
    --------
    >>> (character_edit_share("A dog run.", "A dog ran."),
    ...  character_edit_share("as it is", "as it is"))
    (0.1, 0.0)
    """
    longest = max(len(text), len(post_edit))
    changed = count_changed_characters(text, post_edit) if changed is None else changed
    return changed / longest if longest else 0.0


def differ_invisibly(text: str, post_edit: str) -> bool:
    """Return whether two texts differ in invisible characters only.

    Examples
    --------
    >>> (differ_invisibly("A dog run.", "A dog\\u200b run. "),
    ...  differ_invisibly("A dog run.", "A dog ran."))
    (True, False)
    """
    return clean_text(text).text == clean_text(post_edit).text


def count_changed_characters(text: str, post_edit: str) -> int:
    """Return how many characters were inserted, deleted or replaced, as the page shows while people
    edit.

    Examples
    --------
    >>> count_changed_characters("A dog run.", "The dog ran.")
    4
    """
    return int(Levenshtein.distance(text, post_edit))


def word_edit_rate(text: str, post_edit: str) -> float:
    """Return the number of words inserted, deleted or replaced, divided by the words of the
    post-edit: TER without its shifts.

    At least 0; above 1 if more words were removed than are left. A post-edit without words counts
    as one word.

    Examples
    --------
    >>> word_edit_rate("A dog run away .", "A dog ran away .")
    0.2
    """
    words, edited = text.split(), post_edit.split()
    return Levenshtein.distance(words, edited) / max(len(edited), 1)
