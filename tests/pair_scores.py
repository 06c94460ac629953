"""Score functions of preferences, each with a slow second implementation."""

import numpy as np

from . import oracles
from .named import named


@named
def saaty(weights):
    """Map weights (n, r, r) to scores (n, r), as a user would write it."""
    ratio = (weights + 0.5) / (weights.transpose(0, 2, 1) + 0.5)
    values, vectors = np.linalg.eig(ratio)
    first = np.argmax(values.real, axis=1)
    x = np.abs(np.take_along_axis(vectors, first[:, None, None], axis=2)[:, :, 0])
    return x / x.sum(axis=1, keepdims=True)


SCORES_OF_PAIRS = {
    "borda": oracles.net_borda,
    "copeland": oracles.copeland,
    "row_sums": oracles.row_sums,
    "log_odds": oracles.log_odds,
    "least_squares": oracles.least_squares,
    saaty: oracles.principal_eigenvector,
}
