"""Bounds on the regret of rankings, from the distance of predictions to the expected targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.utils._numbers import read_numbers, read_whole


def regret_bound(
    loss: str | Loss,
    surrogate_regret: ArrayLike,
    n_documents: ArrayLike,
    gap: ArrayLike = 0.0,
) -> Any:
    """Bound the regret of the ranking that is decoded from predictions u.

    The bound is c ||u - u*|| + gap, where u* are the expected targets, and c is the constant of the
    loss (`Loss.regret_constant`).

    Parameters
    ----------
    loss : str or Loss
        A loss that has an exact decoder; these are the losses that are calibrated for every
        distribution.
    surrogate_regret : float or array-like of shape (n_queries,)
        The squared distance ||u - u*||^2 of a query. It is a sum over documents for losses on
        scores, over pairs i < j for ``"pd"`` (differences), and over i <= j for ``"map"``.
    n_documents : int or array-like of shape (n_queries,)
        The number of documents of the query.
    gap : float or array-like of shape (n_queries,), default=0
        A bound on how far the decoder's objective is above its minimum, such as
        `DecodeResult.gap`. It is 0 for an exact decoder and for a sort.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        A bound on `ranking_regret`. The mean of the bounds of several queries bounds their mean
        regret. If the queries have the same size, the bound of their mean surrogate regret does so
        too, because the square root is concave.

    Raises
    ------
    ValueError
        If the loss has no bound, if an argument is negative, NaN or infinite, or if a size is
        below 1.

    Notes
    -----
    Theorem 3 of Ramaswamy et al. (2013) writes the expected loss of a ranking t as
    <u*, beta_t> + c, and the decoded t minimises <u, beta_t> up to the gap. With t* the best
    ranking, the regret <u*, beta_t - beta_t*> is therefore at most
    <u* - u, beta_t - beta_t*> + gap <= diam(beta) ||u - u*|| + gap. The diameter
    (`Loss.regret_constant`) is exact. It is the distance between a ranking and its reverse, for

    * positional losses: sqrt(2) C_phi(2) (table 2 of Calauzènes et al., 2013, has the same
      constant);
    * pairwise disagreement: sqrt(r (r - 1) / 2), because every pair is reversed;
    * average precision: sqrt(2 (H_r - sum_i (H_r - H_{r - i}) / i)), with harmonic numbers H.

    The bound is attained in the limit. In the example that attains it, the expected targets almost
    tie all documents, and the predictions differ from them in exactly the wrong direction.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import regret_bound
    >>> [round(regret_bound("map", 1.0, r), 4) for r in (2, 3, 4, 5)]
    [0.7071, 0.9718, 1.1487, 1.2804]
    >>> regret_bound("pd", [0.01, 0.04], [3, 9], gap=[0, 0.5]).round(3).tolist()
    [0.173, 1.7]
    """
    loss = get_loss(loss)
    sizes = read_whole(n_documents, "n_documents")
    if sizes.size == 0 or sizes.min() < 1:
        raise ValueError(f"n_documents must be whole numbers >= 1; got {n_documents!r}.")
    given = {}
    for name, values in (("surrogate_regret", surrogate_regret), ("gap", gap)):
        given[name] = read_numbers(values, name)
        if not ((given[name] >= 0) & np.isfinite(given[name])).all():
            raise ValueError(f"{name} must be finite and >= 0; got {values!r}.")
    shapes = [sizes.shape, *(values.shape for values in given.values())]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            "n_documents, surrogate_regret and gap must have shapes that broadcast; got "
            f"{', '.join(map(str, shapes))}."
        ) from None
    unique, inverse = np.unique(sizes, return_inverse=True)
    constants = [loss.regret_constant(int(r)) for r in unique]
    if None in constants:
        raise ValueError(
            f"{type(loss).__name__} has no regret bound, because it is not calibrated for every "
            f"distribution, but over {loss.calibrated_over}."
        )
    constant = np.array(constants, dtype=np.float64)[inverse].reshape(sizes.shape)
    bound = constant * np.sqrt(given["surrogate_regret"]) + given["gap"]
    return float(bound) if bound.ndim == 0 else bound
