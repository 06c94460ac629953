"""Bounds on the regret of rankings, from the distance of predictions to the expected targets."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses import Loss, PositionalLoss, get_loss
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._numbers import read_numbers, read_whole

Floats = NDArray[np.float64]


def regret_bound(
    loss: str | Loss,
    surrogate_regret: ArrayLike,
    n_documents: ArrayLike,
    gap: ArrayLike = 0.0,
    *,
    surrogate: str | Surrogate | None = None,
    largest: ArrayLike | None = None,
    total: ArrayLike | None = None,
    best_value: ArrayLike | None = None,
) -> Any:
    """Bound the regret of a ranking by the surrogate regret of predictions or of scores.

    Without `surrogate`, the ranking is decoded from predictions u, and the bound is
    c ||u - u*|| + gap, where u* are the expected targets, and c is the constant of the loss
    (`Loss.regret_constant`). With `surrogate`, the ranking sorts scores, and the bound is
    c C_phi(2) sqrt(surrogate regret), where c is the constant of the surrogate
    (`Surrogate.constant`), and C_phi is the `discount_constant` of the loss.

    Parameters
    ----------
    loss : str or Loss
        A loss that has an exact decoder; these are the losses that are calibrated for every
        distribution. With `surrogate`, it must be positional, such as ``"ndcg@10"``.
    surrogate_regret : float or array-like of shape (n_queries,)
        Without `surrogate`, the squared distance ||u - u*||^2 of a query. It is a sum over
        documents for losses on scores, over pairs i < j for ``"pd"`` (differences), and over
        i <= j for ``"map"``. With `surrogate`, the expected value of the surrogate for the scores
        of a query minus its infimum, as the function `surrogate_regret` computes it.
    n_documents : int or array-like of shape (n_queries,)
        The number of documents of the query.
    gap : float or array-like of shape (n_queries,), default=0
        A bound on how far the decoder's objective is above its minimum, such as
        `DecodeResult.gap`. It is 0 for an exact decoder and for a sort.
    surrogate : str or Surrogate, default=None
        The surrogate by which the scores are judged, as a name or an object. It must be order
        preserving and have a constant.
    largest : float or array-like of shape (n_queries,), default=None
        A bound on the expected utilities E[v_i] of the documents, which the constants of some
        surrogates depend on. If a surrogate has a parameter `eta` that is None, this must be the
        largest utility of the data that set it; pass a surrogate with its `eta` instead.
    total : float or array-like of shape (n_queries,), default=None
        A bound on the sum of the expected utilities of the query. None means `n_documents` times
        `largest`.
    best_value : float or array-like of shape (n_queries,), default=None
        The largest expected value of the measure over all rankings, which can replace `largest`
        and `total` (Calauzènes et al., 2013, corollary A.2). For queries of one size it may be the
        mean over queries, and the bound is then one on the mean regret.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        A bound on `ranking_regret`. The mean of the bounds of several queries bounds their mean
        regret. If the queries have the same size, the bound of their mean surrogate regret does so
        too, because the square root is concave. If scores tie, the bound holds for every order of
        the tied documents.

    Raises
    ------
    ValueError
        If the loss or the surrogate has no bound, if an argument is missing, negative, NaN or
        infinite, or if a size is below 1.

    See Also
    --------
    bregman_regret_bound : A bound for Bregman divergences that are strongly convex in any norm.
    surrogate_regret : The surrogate regret of scores under a distribution.
    suboptimality : The least surrogate regret of all scores with a given regret, for a distribution
        that is known.

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

    The bounds with a surrogate are those of table 2 of Calauzènes et al. (2013), with the constants
    of `sklearn_rankcal.surrogates`, some of which differ from the printed ones; the page on
    surrogates of the documentation lists them. Corollary A.2 follows if the measure is
    sum_i E[v_i] phi(sigma(i)) with phi >= 0 and E[v_i] >= 0. Its largest value R is at least
    phi(1) max_i E[v_i], so that `largest` can be R / phi(1). It is also at least the mean of
    phi times sum_i E[v_i] (Chebyshev's sum inequality), so that `total` can be R divided by that
    mean. The squared constants are concave functions of `largest` and `total`, and the inequality
    of Cauchy and Schwarz leads from queries to their mean.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import regret_bound
    >>> [round(regret_bound("map", 1.0, r), 4) for r in (2, 3, 4, 5)]
    [0.7071, 0.9718, 1.1487, 1.2804]
    >>> regret_bound("pd", [0.01, 0.04], [3, 9], gap=[0, 0.5]).round(3).tolist()
    [0.173, 1.7]

    Let the expected pairwise logistic surrogate be 0.001 above its infimum for some scores. Bounds
    on what they lose of NDCG follow if no expected utility is above 0.5, and if the best expected
    NDCG is 0.9:

    >>> round(regret_bound("ndcg", 0.001, 5, surrogate="pairwise_logistic", largest=0.5), 4)
    0.0288
    >>> round(regret_bound("ndcg", 0.001, 5, surrogate="pairwise_logistic", best_value=0.9), 4)
    0.0387
    """
    loss = get_loss(loss)
    given, sizes = _read(
        n_documents,
        surrogate_regret=surrogate_regret,
        gap=gap,
        largest=largest,
        total=total,
        best_value=best_value,
    )
    if surrogate is not None:
        if given["gap"].any():
            raise ValueError(
                "gap belongs to predictions that a decoder decodes. With a surrogate, the ranking "
                "sorts scores exactly; leave gap at 0."
            )
        constant = _surrogate_constants(loss, get_surrogate(surrogate), sizes, given)
        return _number_or_array(constant * np.sqrt(given["surrogate_regret"]))
    for name in ("largest", "total", "best_value"):
        if name in given:
            raise ValueError(f"{name} is only used together with a surrogate.")
    unique, inverse = np.unique(sizes, return_inverse=True)
    constants = [loss.regret_constant(int(r)) for r in unique]
    if None in constants:
        raise ValueError(
            f"{type(loss).__name__} has no regret bound, because it is not calibrated for every "
            f"distribution, but over {loss.calibrated_over}."
        )
    constant = np.array(constants, dtype=np.float64)[inverse].reshape(sizes.shape)
    return _number_or_array(constant * np.sqrt(given["surrogate_regret"]) + given["gap"])


def bregman_regret_bound(
    loss: str | Loss,
    surrogate_regret: ArrayLike,
    n_documents: ArrayLike,
    strong_convexity: ArrayLike,
    *,
    dual_norm: float = 2.0,
) -> Any:
    """Bound the regret of scores by a Bregman divergence that is strongly convex in some norm.

    The surrogate is B_psi(v || g(s)), where g preserves the order of scores, and psi satisfies
    B_psi(v || x) >= (mu / 2) ||v - x||^2. The bound is D sqrt(2 / mu) sqrt(surrogate regret), where
    D is the dual norm of the difference between the discounts and the reversed discounts.

    Parameters
    ----------
    loss : str or Loss
        A positional loss, such as ``"ndcg@10"``.
    surrogate_regret : float or array-like of shape (n_queries,)
        The expected value of the surrogate for the scores of a query minus its infimum.
    n_documents : int or array-like of shape (n_queries,)
        The number of documents of the query.
    strong_convexity : float or array-like of shape (n_queries,)
        The positive number mu.
    dual_norm : float or callable, default=2
        The dual of the norm. A number p >= 1, which can be ``np.inf``, is the p-norm, the dual of
        the q-norm with 1/p + 1/q = 1. A callable receives an array of shape (r,) and returns its
        norm, which must not depend on the order or the signs of its entries.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        A bound on `ranking_regret`.

    Raises
    ------
    ValueError
        If the loss is not positional, or if an argument is out of range.

    Notes
    -----
    This is theorem 10 of Ravikumar et al. (2011), whose C_phi is mu / 2, with a constant that is
    never larger. They bound two sums of the proof separately, which gives 2 ||phi||_* in the place
    of D, where phi are the discounts. The two sums together are an inner product with the
    difference between the discounts of two rankings. The dual norm of this difference is largest
    for a ranking and its reverse, because the absolute differences of sorted and reversely sorted
    numbers weakly majorise those of any other order.

    Examples
    --------
    Softmax cross-entropy is total times a Kullback-Leibler divergence, where total is the sum of
    the expected utilities. By Pinsker's inequality it is strongly convex in the 1-norm with
    mu = 1 / total. The bound is smaller than the one of table 2, by phi(1) - phi(r) in the place of
    C_phi(2):

    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import bregman_regret_bound, regret_bound
    >>> round(bregman_regret_bound("ndcg", 0.01, 10, 1 / 1.5, dual_norm=np.inf), 4)
    0.1231
    >>> round(regret_bound("ndcg", 0.01, 10, surrogate="softmax", total=1.5), 4)
    0.1406
    """
    loss = _positional(get_loss(loss))
    given, sizes = _read(
        n_documents, surrogate_regret=surrogate_regret, strong_convexity=strong_convexity
    )
    mu = given["strong_convexity"]
    if not (mu > 0).all():
        raise ValueError(f"strong_convexity must be positive; got {strong_convexity!r}.")
    if isinstance(dual_norm, bool) or not isinstance(dual_norm, Real) or not float(dual_norm) >= 1:
        raise ValueError(f"dual_norm must be a number >= 1, or infinite; got {dual_norm!r}.")
    p = float(dual_norm)
    constants = [2 ** (1 / p) * loss.discount_constant(int(r), p) for r in sizes.ravel()]
    constant = np.array(constants).reshape(sizes.shape)
    return _number_or_array(constant * np.sqrt(2 * given["surrogate_regret"] / mu))


#: Numbers that may be None.
_OPTIONAL = ("largest", "total", "best_value")


def _read(n_documents: ArrayLike, **numbers: Any) -> tuple[dict[str, Floats], NDArray[np.int64]]:
    """Read sizes, and numbers that are finite and >= 0. Numbers that are None are left out."""
    sizes = read_whole(n_documents, "n_documents")
    if sizes.size == 0 or sizes.min() < 1:
        raise ValueError(f"n_documents must be whole numbers >= 1; got {n_documents!r}.")
    given = {}
    for name, values in numbers.items():
        if values is None and name in _OPTIONAL:
            continue
        given[name] = read_numbers(values, name)
        if not ((given[name] >= 0) & np.isfinite(given[name])).all():
            raise ValueError(f"{name} must be finite and >= 0; got {values!r}.")
    shapes = {"n_documents": sizes.shape} | {name: array.shape for name, array in given.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        names = list(shapes)
        raise ValueError(
            f"{', '.join(names[:-1])} and {names[-1]} must have shapes that broadcast; got "
            f"{', '.join(map(str, shapes.values()))}."
        ) from None
    return given, sizes


def _number_or_array(values: Floats) -> Any:
    return float(values) if values.ndim == 0 else values


def _positional(loss: Loss) -> PositionalLoss:
    if not isinstance(loss, PositionalLoss):
        raise ValueError(
            f"Surrogate regret bounds hold for positional losses, such as 'ndcg' and 'dcg'; got "
            f"{loss!r}."
        )
    return loss


def _surrogate_constants(
    loss: Loss, surrogate: Surrogate, sizes: NDArray[np.int64], given: dict[str, Floats]
) -> Floats:
    """Return c C_phi(2) of each query."""
    loss = _positional(loss)
    name = type(surrogate).__name__
    if not surrogate.order_preserving:
        raise ValueError(f"{surrogate!r} has no regret bound: it is {surrogate.theorem}.")
    surrogate._check_parameters()
    if "best_value" in given:
        if "largest" in given or "total" in given:
            raise ValueError("best_value replaces largest and total; pass one or the other.")
        if getattr(surrogate, "eta", 1.0) is None:
            raise ValueError(f"best_value does not determine eta; pass {name}(eta=...).")
    # The distinct rows of size, largest, total and best value, where -1 stands for a missing one.
    columns = [given.get(key, np.array(-1.0)) for key in ("largest", "total", "best_value")]
    full = np.broadcast_arrays(sizes.astype(np.float64), *columns)
    rows = np.column_stack([column.ravel() for column in full])
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    discounts = {r: loss.measure.discounts(r) for r in set(sizes.ravel().tolist())}
    of_discounts = {r: loss.discount_constant(r) for r in discounts}
    constants = np.empty(len(unique))
    for k, (size, largest, total, best) in enumerate(unique.tolist()):
        r = int(size)
        if best >= 0:
            phi = discounts[r]
            if phi[0] <= 0 or phi.min() < 0:
                raise ValueError(
                    "best_value needs a measure with discounts >= 0 and no constant term; those of "
                    f"{type(loss).__name__} are negative. Pass largest or total."
                )
            largest, total = best / float(phi[0]), best / float(phi.mean())
        # The constant is NaN if it depends on a utility that is missing.
        constant = surrogate.constant(
            r, largest if largest >= 0 else np.nan, total if total >= 0 else None
        )
        if constant is None:
            raise ValueError(f"{surrogate!r} has no regret bound of the form of table 2.")
        if np.isnan(constant):
            raise ValueError(
                f"The constant of {name} depends on the expected utilities; pass largest, total or "
                "best_value."
            )
        constants[k] = constant * of_discounts[r]
    return constants[np.ravel(inverse)].reshape(full[0].shape)
