"""Regret bounds: how far predictions are from expected targets in, what that can cost out."""

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
    """What the ranking decoded from predictions u can lose: regret <= c ||u - u*|| + gap.

    Parameters
    ----------
    loss : str or Loss
        One that has an exact decoder: all that are calibrated for every distribution.
    surrogate_regret : float or array-like of shape (n_queries,)
        ||u - u*||^2 of a query, u* its expected targets: over documents where the loss is on
        scores, over pairs i < j for ``"pd"`` (differences), over i <= j for ``"map"``.
    n_documents : int or array-like of shape (n_queries,)
        Size of the query.
    gap : float or array-like of shape (n_queries,), default=0
        How far the decoder's objective is above its minimum, or can be: `DecodeResult.gap`. 0 for
        an exact decoder, and for a sort.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        On `ranking_regret`. A mean of bounds bounds the mean regret; and so does, for queries of
        the same size, the bound of a mean surrogate regret, since the square root is concave.

    Raises
    ------
    ValueError
        A loss without a bound; negative, NaN or infinite arguments; sizes below 1.

    Notes
    -----
    P1's theorem 3 writes the loss of a ranking t as <u*, beta_t> + c, and t minimises <u, beta_t>
    up to the gap. With t* the best ranking, the regret <u*, beta_t - beta_t*> is therefore at most
    <u* - u, beta_t - beta_t*> + gap <= diam(beta) ||u - u*|| + gap. The diameter
    (`Loss.regret_constant`) is exact, the distance between a ranking and its reverse, for

    * positional losses: sqrt(2) C_phi(2) (P2, table 2, has the same constant);
    * pairwise disagreement: sqrt(r (r - 1) / 2), as all pairs turn;
    * average precision: sqrt(2 (H_r - sum_i (H_r - H_{r - i}) / i)), H harmonic numbers.

    The bound is attained, in the limit, by predictions that point in exactly the wrong direction
    from expected targets that almost tie all documents.

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
            f"n_documents, surrogate_regret and gap have shapes {shapes}, which do not go together."
        ) from None
    unique, inverse = np.unique(sizes, return_inverse=True)
    constants = [loss.regret_constant(int(r)) for r in unique]
    if None in constants:
        raise ValueError(
            f"{type(loss).__name__} has no regret bound: it is calibrated over "
            f"{loss.calibrated_over}."
        )
    constant = np.array(constants, dtype=np.float64)[inverse].reshape(sizes.shape)
    bound = constant * np.sqrt(given["surrogate_regret"]) + given["gap"]
    return float(bound) if bound.ndim == 0 else bound
