"""The test of a mean difference over queries by flipping the signs of the differences.

If two rankings are equally good, the difference of a query is as likely to be negative as positive.
The p-value is the share of all ways to give the differences signs that move their sum from 0 at
least as far as the sum observed. Its level holds for any number of queries and heavy tails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats

_MOST_EXACT = 16  # up to this number of differences that are not 0, all signs are tried
_BITS = 8  # queries that take their signs from one random byte
_CELLS = 1 << 24  # random bytes in memory at a time


def sign_flip_p_value(
    first: Floats, second: Floats, weights: Floats, n_draws: int, random: Any
) -> float:
    """Return the two-sided p-value of the hypothesis that the weighted mean difference is 0.

    With more than 16 differences that are not 0, `n_draws` signs of each are drawn. The observed
    signs count as one more draw, which keeps the level for any number of draws (Phipson and Smyth,
    2010). The arrays have the shape (n_queries,).
    """
    # Step 1: leave out the differences that are 0 up to rounding, which have no sign.
    sizes = np.abs(first) + np.abs(second)
    differs = exceeds(np.abs(first - second), 0.0, sizes)
    flipped, sizes = ((first - second) * weights)[differs], (sizes * weights)[differs]
    # Step 2: sort by size. The order of the queries, and which ranking is first, must not matter.
    observed, size = abs(flipped.sum()), sizes.sum()
    flipped = np.sort(np.abs(flipped))
    # Step 3: count the sums that are as far from 0. Equal sums come out with different rounding.
    if len(flipped) <= _MOST_EXACT:
        # all signs of the first difference are those of the others, reversed
        sums = flipped[:1].sum() + _signed_sums(flipped[1:])
        return float(np.mean(~exceeds(observed, np.abs(sums), size)))
    count = np.count_nonzero(
        ~exceeds(observed, np.abs(_drawn_sums(flipped, n_draws, random)), size)
    )
    return float((1 + count) / (1 + n_draws))


def _signed_sums(values: Floats) -> Floats:
    """Return the sums of values with all signs, of shape (..., 2 ** n_values)."""
    sums = np.zeros((*values.shape[:-1], 1))
    for column in range(values.shape[-1]):
        value = values[..., column, np.newaxis]
        sums = np.concatenate([sums + value, sums - value], axis=-1)
    return sums


def _drawn_sums(values: Floats, n_draws: int, random: Any) -> Floats:
    """Return sums of values with random signs, of shape (n_draws,).

    A random byte looks up the sum of eight values, which takes an eighth of the additions.
    """
    padded = np.pad(values, (0, -len(values) % _BITS)).reshape(-1, _BITS)
    sums = np.zeros(n_draws)
    step = max(1, _CELLS // n_draws)
    for start in range(0, len(padded), step):
        tables = _signed_sums(padded[start : start + step])
        drawn = random.randint(0, 1 << _BITS, size=(len(tables), n_draws), dtype=np.uint8)
        for table, row in zip(tables, drawn, strict=True):
            sums += table[row]
    return sums
