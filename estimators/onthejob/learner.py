"""A log-linear model of labels that learns from answers as they come.

Scores are ``u_i(y) = w_y · φ(x, i)`` and ``A[y', y]``, with start and end scores at the ends of the
chain. One position is multinomial logistic regression; more are a linear-chain conditional random
field.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from estimators.checks import FloatArray
from estimators.onthejob.chains import forward_backward, viterbi

NEWEST = 32  # inputs of the epoch after each input
CALIBRATED_ON = 200  # newest inputs that the temperature is fitted to
TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)


def pad_rows(rows: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return matrices of different heights as one batch with zeros at the end, and their heights.

    Parameters
    ----------
    rows : sequence of (n_b, K) arrays
        One matrix for each chain.

    Returns
    -------
    batch : (B, max n_b, K) array
    lengths : (B,) array

    Examples
    --------
    >>> import numpy as np
    >>> batch, lengths = pad_rows([np.ones((1, 2)), np.ones((2, 2))])
    >>> batch[0].tolist(), lengths.tolist()
    ([[1.0, 1.0], [0.0, 0.0]], [1, 2])
    """
    lengths = np.array([len(one) for one in rows])
    batch = np.zeros((len(rows), int(lengths.max()), rows[0].shape[1]))
    for b, one in enumerate(rows):
        batch[b, : len(one)] = one
    return batch, lengths


class Learner:
    """A linear-chain model trained on the marginal likelihood of answers by AdaGrad.

    The objective of an input is ``log Σ_y p_θ(y | x) Π_j p(r_j | y_{q_j})``, whose gradient is
    ``E[φ | x, r] − E[φ | x]``. Gold labels are answers that cannot be wrong. After every ``every``
    inputs with answers one epoch goes over the newest 32 of them; after 25, 50, 100, … of them 8
    epochs go over all.

    Parameters
    ----------
    n_features, n_labels : int
        Columns of features, and K.
    rate, l2 : float
        AdaGrad's η, and the weight of ½‖w‖² for each input, on the features that it has.
    every : int
        Inputs with answers from one epoch to the next.
    objective : {"marginal", "map"}
        "map" trains on the most probable labels given the answers as if they were gold.
    calibrated : bool
        Whether scores are divided by a temperature, fitted to what the model predicted of the
        newest 200 inputs before it learned from them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> learner = Learner(2, 2, calibrated=False)
    >>> features = sparse.csr_array(np.array([[1.0, 0.0]]))
    >>> for _ in range(5):
    ...     learner.learn(features, np.log([[0.9, 0.1]]))
    >>> unary, transition = learner.scores(features)
    >>> bool(unary[0, 0] > unary[0, 1])
    True
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        *,
        rate: float = 0.5,
        l2: float = 1e-3,
        every: int = 1,
        objective: str = "marginal",
        calibrated: bool = True,
    ) -> None:
        if objective not in ("marginal", "map"):
            raise ValueError(f"objective must be 'marginal' or 'map'; got {objective!r}")
        self.rate, self.l2, self.every = rate, l2, every
        self.objective, self.calibrated = objective, calibrated
        self.temperature = 1.0
        self.weights = np.zeros((n_features, n_labels))
        # Rows 0 … K − 1 are transitions, row K start scores, row K + 1 end scores.
        self.steps = np.zeros((n_labels + 2, n_labels))
        self._weight_squares = np.zeros_like(self.weights)
        self._step_squares = np.zeros_like(self.steps)
        self._inputs: list[tuple[sparse.csr_array, FloatArray]] = []
        self._predicted: list[FloatArray] = []

    def scores(self, features: sparse.csr_array) -> tuple[FloatArray, FloatArray]:
        """Return unary (n, K) and transition (K, K) scores, divided by the temperature."""
        unary = self._unary_scores(features) / self.temperature
        return unary, self.steps[: len(self.steps) - 2] / self.temperature

    def _unary_scores(self, features: sparse.csr_array) -> FloatArray:
        unary: FloatArray = features @ self.weights
        unary[0] += self.steps[-2]
        unary[-1] += self.steps[-1]
        return unary

    def learn(self, features: sparse.csr_array, log_likelihood: FloatArray) -> None:
        """Add an input with the log-likelihood (n, K) of its answers, and train."""
        if not log_likelihood.any():
            return  # without an answer the gradient is 0
        self._inputs.append((features, log_likelihood))
        self._predicted.append(self._unary_scores(features))
        n = len(self._inputs)
        refit = n in {25 * 2**k for k in range(20)}
        for _ in range(8 if refit else int(n % self.every == 0)):
            first = 0 if refit else max(n - NEWEST, 0)
            for begin in range(first, n, 8):
                self._gradient_step(self._inputs[begin : begin + 8])
        if self.calibrated and n >= 20 and n % 10 == 0:
            self._fit_temperature()

    def gradient(
        self, inputs: Sequence[tuple[sparse.csr_array, FloatArray]]
    ) -> tuple[float, sparse.csr_array, FloatArray, FloatArray]:
        """Return the objective of inputs, their features stacked, and its gradient without L2.

        The gradient is one array (rows of features, K) with respect to the unary scores, and one
        (K + 2, K) with respect to transition, start and end scores.
        """
        batch, lengths = pad_rows([self._unary_scores(features) for features, _ in inputs])
        evidence, _ = pad_rows([log_likelihood for _, log_likelihood in inputs])
        transition = self.steps[:-2]
        if self.objective == "map":
            for b, n in enumerate(lengths):
                best = viterbi(batch[b, :n] + evidence[b, :n], transition)
                evidence[b, :n] = -30.0
                evidence[b, np.arange(n), best] = 0.0
        log_z, nodes, pairs = forward_backward(batch, transition, lengths)
        log_z_given, nodes_given, pairs_given = forward_backward(
            batch + evidence, transition, lengths
        )
        difference = nodes_given - nodes
        inside = np.arange(batch.shape[1]) < lengths[:, None]
        ends = np.arange(len(lengths)), lengths - 1
        of_steps = np.vstack(
            [
                (pairs_given - pairs).sum(axis=0),
                difference[:, 0].sum(axis=0),
                difference[ends].sum(axis=0),
            ]
        )
        stacked = sparse.vstack([features for features, _ in inputs], format="csr")
        return float((log_z_given - log_z).sum()), stacked, difference[inside], of_steps

    def _gradient_step(self, inputs: Sequence[tuple[sparse.csr_array, FloatArray]]) -> None:
        """Take one gradient step on some inputs, on the columns that occur in them."""
        _, stacked, of_unary, of_steps = self.gradient(inputs)
        columns, local = np.unique(stacked.indices, return_inverse=True)
        own = sparse.csr_array(
            (stacked.data, local, stacked.indptr), shape=(stacked.shape[0], len(columns))
        )
        decay = self.l2 * len(inputs)
        of_weights = own.T @ of_unary - decay * self.weights[columns]
        squares = self._weight_squares[columns] + of_weights**2
        self._weight_squares[columns] = squares
        self.weights[columns] += self.rate * of_weights / (1e-6 + np.sqrt(squares))
        of_steps = of_steps - decay * self.steps
        self._step_squares += of_steps**2
        self.steps += self.rate * of_steps / (1e-6 + np.sqrt(self._step_squares))

    def _fit_temperature(self) -> None:
        newest = self._inputs[-CALIBRATED_ON:]
        batch, lengths = pad_rows(self._predicted[-CALIBRATED_ON:])
        evidence, _ = pad_rows([log_likelihood for _, log_likelihood in newest])
        transition = self.steps[:-2]

        def loss_at_temperature(temperature: float) -> float:
            scores, steps = batch / temperature, transition / temperature
            given = forward_backward(scores + evidence, steps, lengths)[0]
            return float((given - forward_backward(scores, steps, lengths)[0]).sum())

        self.temperature = max(TEMPERATURES, key=loss_at_temperature)
