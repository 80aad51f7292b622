"""What the 28 real runs on Re-DocRED predict, the true facts that none of them predicts, and a
model of what is true.
"""

import sys
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks import redocred
from estimators import crossfit


@dataclass(frozen=True)
class Stated:
    """Every instance that any run predicts, one row each.

    ``target`` is the code of its mention pair, 0 … n_targets − 1; ``missed`` counts per document
    the true instances that no run predicts.
    """

    systems: list[str]
    membership: np.ndarray
    true: np.ndarray
    target: np.ndarray
    document: np.ndarray
    predicate: np.ndarray
    missed: np.ndarray

    @property
    def n_targets(self) -> int:
        """Mention pairs that some run says something about."""
        return int(self.target.max()) + 1

    @property
    def recall(self) -> np.ndarray:
        """The true recall of every run."""
        return self.true @ self.membership / (self.true.sum() + self.missed.sum())

    def model(self, rng: np.random.Generator, n_labels: int = 1500) -> np.ndarray:
        """Return a guess g for every row, learnt from a random few labels and cross-fitted by
        target.

        Simpler than the service's, which knows of confidences, types and entities too
        (`estimators.features.Claims`): what is studied with it does not hang on how good g is.
        """
        predicates = np.eye(self.predicate.max() + 1)[self.predicate]
        votes = self.membership.sum(axis=1, keepdims=True) / 5
        x = sparse.csr_array(np.column_stack([self.membership, predicates, votes]))
        fold = crossfit.folds(self.target.tolist(), 5, key=b"benchmark")
        some = rng.choice(self.true.size, n_labels, replace=False)
        return crossfit.predict(x[some], self.true[some], x, fold[some], fold, ridge=1.0)


def load() -> Stated:
    """Return what all runs predict; ends the program, with a message, if the data are not there."""
    if not redocred.available():
        sys.exit()
    pool = redocred.read(redocred.names())
    predicted = pool.member.any(axis=1)
    return Stated(
        systems=pool.names,
        membership=pool.member[predicted].astype(float),
        true=pool.true[predicted],
        target=np.unique(pool.target[predicted], return_inverse=True)[1],
        document=pool.document[predicted],
        predicate=pool.predicate[predicted],
        missed=np.bincount(pool.document[~predicted], minlength=pool.n_documents),
    )
