"""Bounds on the regret of rankings, from the distance between predictions and expected targets."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.losses import Loss, PositionalLoss, get_loss
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._numbers import read_numbers, read_whole
from sklearn_rankcal.utils._typing import Floats, Ints


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
    """Bound the regret of a ranking by the surrogate regret of predictions or scores.

    There are two cases; see :doc:`/surrogate_theory`:

    - Without `surrogate`, the ranking is decoded from predictions u. The bound is
      c ||u - u*|| + gap, where u* are the expected targets and c is `Loss.regret_constant`
      (theorem 3 of Ramaswamy et al., 2013).
    - With `surrogate`, the ranking sorts scores. The bound is c C_phi(2) sqrt(surrogate regret),
      where c is `Surrogate.constant` and C_phi is `PositionalLoss.discount_constant` (table 2 of
      Calauzènes et al., 2013).

    Parameters
    ----------
    loss : str or Loss
        A loss that is calibrated for every distribution; with `surrogate`, a positional loss.
    surrogate_regret : float or array-like of shape (n_queries,)
        Without `surrogate`, the squared distance ||u - u*||^2 of a query: a sum over documents, or
        over pairs i < j for ``"pd"``, or over i <= j for ``"map"``. With `surrogate`, the output
        of the function `surrogate_regret`.
    n_documents : int or array-like of shape (n_queries,)
        Number of documents of the query.
    gap : float or array-like of shape (n_queries,), default=0
        Upper bound on the decoder's objective minus its minimum, such as `DecodeResult.gap`.
    surrogate : str or Surrogate, default=None
        An order-preserving surrogate that has a constant.
    largest, total : float or array-like of shape (n_queries,), default=None
        Upper bounds on the expected utility of a document, and on the sum over documents. Some
        constants depend on them. If total is None, it is `n_documents` times `largest`.
    best_value : float or array-like of shape (n_queries,), default=None
        Largest expected value of the measure over all rankings. It can replace `largest` and
        `total` (Calauzènes et al., corollary A.2).

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        Upper bound on `ranking_regret`, for every order of tied documents.

    Raises
    ------
    ValueError
        If there is no bound for the loss or surrogate, or if an argument is invalid.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import regret_bound
    >>> regret_bound("pd", [0.01, 0.04], [3, 9], gap=[0, 0.5]).round(3).tolist()
    [0.173, 1.7]

    A bound on the loss of NDCG by scores, if the best expected NDCG is 0.9:

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
                "gap is only for predictions that a decoder decodes. With a surrogate, the ranking "
                "sorts scores exactly; leave gap at 0."
            )
        constant = _surrogate_constants(loss, get_surrogate(surrogate), sizes, given)
        return _number_or_array(constant * np.sqrt(given["surrogate_regret"]))
    for name in ("largest", "total", "best_value"):
        if name in given:
            raise ValueError(f"{name} is only used together with a surrogate.")
    constant = _of_sizes(loss.regret_constant, sizes)
    if np.isnan(constant).any():
        raise ValueError(
            f"{type(loss).__name__} has no regret bound, because it is not calibrated for every "
            f"distribution, but over {loss.calibrated_over}."
        )
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
    D is the dual norm of the difference between the discounts and the reversed discounts. This is
    theorem 10 of Ravikumar et al. (2011) with a constant that is never larger; see
    :doc:`/surrogate_theory`.

    Parameters
    ----------
    loss : str or Loss
        A positional loss, such as ``"ndcg@10"``.
    surrogate_regret, n_documents : float or array-like of shape (n_queries,)
        As in `regret_bound` with a surrogate.
    strong_convexity : float or array-like of shape (n_queries,)
        The positive number mu.
    dual_norm : float, default=2
        A number p >= 1, or ``np.inf``. The p-norm is the dual of the q-norm with 1/p + 1/q = 1.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        Upper bound on `ranking_regret`.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    Softmax cross-entropy is strongly convex in the 1-norm with mu = 1 / total,
    where total is the sum of the expected utilities:

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
    constant = _of_sizes(lambda r: 2 ** (1 / p) * loss.discount_constant(r, p), sizes)
    return _number_or_array(constant * np.sqrt(2 * given["surrogate_regret"] / mu))


#: Numbers that may be None.
_OPTIONAL = ("largest", "total", "best_value")


def _read(n_documents: ArrayLike, **numbers: Any) -> tuple[dict[str, Floats], Ints]:
    """Read sizes, and numbers that must be finite and >= 0. Leave out numbers that are None."""
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
    try:
        np.broadcast_shapes(sizes.shape, *(array.shape for array in given.values()))
    except ValueError as error:
        raise ValueError(f"The arguments must have shapes that broadcast: {error}") from None
    return given, sizes


def _of_sizes(function: Callable[[int], float | None], sizes: Ints) -> Floats:
    """Apply a function of the number of documents to each query, with NaN for None."""
    of_size = {r: function(r) for r in set(sizes.ravel().tolist())}
    values = [of_size[r] for r in sizes.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(sizes.shape)


def _number_or_array(values: Floats) -> Any:
    return float(values) if values.ndim == 0 else values


def _positional(loss: Loss) -> PositionalLoss:
    if not isinstance(loss, PositionalLoss):
        raise ValueError(f"Surrogate bounds need a positional loss, such as 'ndcg'; got {loss!r}.")
    return loss


def _surrogate_constants(
    loss: Loss, surrogate: Surrogate, sizes: Ints, given: dict[str, Floats]
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
    # Compute the constants once for distinct sizes and utilities; -1 stands for None.

    @functools.cache
    def constant_of(r: int, largest: float, total: float, best: float) -> float:
        if best >= 0:
            phi = loss.discounts(r)
            if phi[0] <= 0 or phi.min() < 0:
                raise ValueError(
                    "best_value needs a measure with discounts >= 0 and no constant term; those of "
                    f"{type(loss).__name__} are negative. Pass largest or total."
                )
            largest, total = best / float(phi[0]), best / float(phi.mean())
        # The constant is NaN if it depends on a missing utility.
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
        return constant * loss.discount_constant(r)

    columns = [given.get(key, np.array(-1.0)) for key in ("largest", "total", "best_value")]
    full = np.broadcast_arrays(sizes, *columns)
    rows = zip(*(column.ravel().tolist() for column in full), strict=True)
    return np.array([constant_of(*row) for row in rows]).reshape(full[0].shape)
