"""The misordered pairs of a ranking, which account for its regret under a positional measure.

A ranking and expected utilities come in, and separate pairs of documents come out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.utils._numbers import read_numbers, read_whole


def misordered_pairs(ranks: ArrayLike, expected: ArrayLike) -> list[tuple[int, int]]:
    """Find separate pairs of documents in the wrong order that account for the regret of a ranking.

    Parameters
    ----------
    ranks : array-like of shape (r,)
        The position of each document, 1 = top.
    expected : array-like of shape (r,)
        The expected utility E[v_i] of each document.

    Returns
    -------
    pairs : list of tuples (i, j)
        Documents, numbered from 0, with E[v_i] > E[v_j], where i is ranked below j. No document is
        in two pairs. For every positional measure, the regret of the ranking is at most the sum
        over the pairs of (E[v_i] - E[v_j]) (phi(nu_i) - phi(nu_j)), where phi are the discounts and
        nu are the positions if documents are sorted by expected utility (ties by their number).

    Raises
    ------
    ValueError
        If `ranks` is not a permutation of 1 .. r, or if the shapes differ.

    Notes
    -----
    This is lemma 4.1 of Calauzènes et al. (2013). Its proof takes the best document i and, among
    the documents ranked above it, the worst one j. It exchanges j with the document at the top, and
    i with the document at the place nu_j. After this, other documents can be in a wrong order that
    are in the right order in the ranking itself: for the documents 2, 3, 4, 1, numbered from the
    best to the worst, the proof leads to the pairs (1, 4) and (2, 3). The lemma is true
    nevertheless. It is enough to move j to the top and i to the place nu_j, so that the documents
    in between keep their order, which does not raise the value of the ranking either. The pairs
    that are left then come from the ranking without i and j.

    The time is O(r^2).

    Examples
    --------
    >>> from sklearn_rankcal.consistency import misordered_pairs
    >>> misordered_pairs([4, 1, 2, 3], [0.9, 0.5, 0.4, 0.1])
    [(0, 3)]
    """
    u = read_numbers(expected, "expected")
    positions = read_whole(ranks, "ranks")
    if u.ndim != 1 or positions.shape != u.shape or not np.isfinite(u).all():
        raise ValueError(
            "ranks and expected must hold one number for each document, and expected must be "
            f"finite; they have shapes {positions.shape} and {u.shape}."
        )
    if sorted(positions.tolist()) != list(range(1, len(u) + 1)):
        raise ValueError(f"ranks must be a permutation of 1 .. {len(u)}; got {ranks!r}.")
    best_first = np.argsort(-u, kind="stable").tolist()
    place = {document: k for k, document in enumerate(best_first)}
    ranking = np.argsort(positions).tolist()
    pairs = []
    while best_first:
        i = best_first[0]
        above = ranking[: ranking.index(i) + 1]
        j = max(above, key=place.__getitem__)
        if u[i] > u[j]:
            pairs.append((i, j))
        for document in {i, j}:
            ranking.remove(document)
            best_first.remove(document)
    return pairs
