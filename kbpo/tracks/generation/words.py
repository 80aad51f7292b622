"""The words of outputs as numbers, by which the model of ratings sees which texts say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from formats.words import words

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
