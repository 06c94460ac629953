"""Distributions of the labels of one query: labels and probabilities in, expected targets out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss, PDByScores, get_loss
from sklearn_rankcal.losses._pairs import SCORE_SIZES
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import flat_targets
from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """What the labels of a query of r documents can be, and how probable each is.

    Functions of this module take a tuple ``(labels, probabilities)`` as well.

    Parameters
    ----------
    labels : array-like of shape (m, r) or (m, r, r)
        The relevance of r documents, m times; or preference weights, where ``labels[k, i, j]`` is
        the weight with which document i is preferred to document j.
    probabilities : array-like of shape (m,)
        That of each label; they sum to 1.

    Raises
    ------
    ValueError
        Other shapes, NaN or infinity, negative weights or probabilities, a document preferred to
        itself, probabilities that do not sum to 1 (to 1e-8).

    Examples
    --------
    >>> from sklearn_rankcal.consistency import LabelDistribution
    >>> LabelDistribution([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7])
    LabelDistribution of 4 documents:
      0.3  [0, 0, 1, 0]
      0.7  [1, 1, 0, 1]
    """

    labels: Any
    probabilities: Any

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        probabilities = check_numbers(self.probabilities, "probabilities")
        if probabilities.shape != (len(labels),):
            raise ValueError(
                f"probabilities must have shape ({len(labels)},), one for each label; it has "
                f"shape {probabilities.shape}."
            )
        if probabilities.min() < 0:
            raise ValueError(
                f"probabilities must be >= 0; that of label {probabilities.argmin()} is "
                f"{probabilities.min():g}."
            )
        if abs(probabilities.sum() - 1) > 1e-8:
            raise ValueError(f"probabilities must sum to 1; they sum to {probabilities.sum():g}.")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "probabilities", probabilities)

    @property
    def n_documents(self) -> int:
        """Documents of the query."""
        return int(self.labels.shape[1])

    def __repr__(self) -> str:
        lines = [f"LabelDistribution of {self.n_documents} documents:"]
        for label, chance in zip(self.labels[:20], self.probabilities[:20], strict=True):
            if label.ndim == 1:
                shown = "[" + ", ".join(f"{value:g}" for value in label) + "]"
            else:
                edges = zip(*np.nonzero(label), strict=True)
                shown = ", ".join(f"{i} > {j}: {label[i, j]:g}" for i, j in edges)
            lines.append(f"  {chance:.6g}  {shown or 'no preference'}")
        more = len(self.labels) - 20
        return "\n".join([*lines, f"  and {more} more labels"] if more > 0 else lines)


def check_numbers(values: ArrayLike, name: str) -> Floats:
    """A finite float64 array."""
    array = np.array(read_numbers(values, name))  # a copy, which nobody else changes
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name} contains NaN or infinity (first at {where}).")
    return array


def check_labels(labels: ArrayLike) -> Floats:
    """Relevance (m, r) or preference weights (m, r, r), checked."""
    array = check_numbers(labels, "labels")
    square = array.ndim == 3 and array.shape[1] == array.shape[2]
    if not (array.ndim == 2 or square) or array.size == 0:
        raise ValueError(
            "labels must have shape (n_labels, n_documents), relevance, or (n_labels, "
            f"n_documents, n_documents), preference weights; it has shape {array.shape}."
        )
    if array.ndim == 3:
        if array.min() < 0:
            raise ValueError(f"Preference weights must be >= 0; got {array.min():g}.")
        itself = np.einsum("mii->mi", array)
        if itself.any():
            k, i = np.argwhere(itself)[0]
            raise ValueError(f"Label {k} prefers document {i} to itself.")
    return array


def as_distribution(distribution: LabelDistribution | tuple[Any, Any]) -> LabelDistribution:
    """A distribution, also from a tuple."""
    if isinstance(distribution, LabelDistribution):
        return distribution
    if isinstance(distribution, tuple) and len(distribution) == 2:
        return LabelDistribution(*distribution)
    raise TypeError(
        "A LabelDistribution or a tuple (labels, probabilities) is needed; got "
        f"{type(distribution).__name__}."
    )


def as_queries(labels: Floats) -> tuple[Any, Queries]:
    """Labels (m, r) or (m, r, r) as those of m queries: relevance, or `Preferences`."""
    m, r = labels.shape[:2]
    queries = Queries.uniform(m, r)
    if labels.ndim == 2:
        return labels.ravel(), queries
    q, i, j = np.nonzero(labels)
    return Preferences.from_pairs(q * r + i, q * r + j, labels[q, i, j], queries), queries


def all_targets(loss: Loss, labels: Floats) -> Floats:
    """Targets of each label as vectors (m, d), in the order in which decoders take them."""
    flat = flat_targets(loss.encode(*as_queries(labels)))
    return flat.reshape(len(labels), flat.size // len(labels))


def resolve(
    distribution: LabelDistribution | tuple[Any, Any], loss: str | Loss
) -> tuple[Loss, LabelDistribution]:
    """The loss set for these labels, and their distribution given that it is defined."""
    distribution = as_distribution(distribution)
    possible = distribution.probabilities > 0
    if not possible.all():
        distribution = LabelDistribution(
            distribution.labels[possible], distribution.probabilities[possible]
        )
    labels, queries = as_queries(distribution.labels)
    loss = get_loss(loss).resolve(labels)
    undefined = np.isnan(
        loss.calibrated_measure(Ranking(queries, np.arange(queries.n_rows)), labels)
    )
    if not undefined.any():
        return loss, distribution
    chance = distribution.probabilities[~undefined]
    if not chance.sum() > 0:
        raise ValueError(f"{loss!r} is undefined for every label of the distribution.")
    return loss, LabelDistribution(distribution.labels[~undefined], chance / chance.sum())


def expected_targets(distribution: LabelDistribution | tuple[Any, Any], loss: str | Loss) -> Floats:
    """E[alpha(Y)]: what least squares on the targets of a loss tends to.

    Parameters
    ----------
    distribution : LabelDistribution or tuple (labels, probabilities)
    loss : str or Loss
        A name, or an object with parameters.

    Returns
    -------
    u : ndarray of shape (r,) or (r, r)
        The latter for losses on pairs: antisymmetric differences E[Y_ij] - E[Y_ji] for ``"pd"``,
        symmetric products E[Y_i Y_j / sum(Y)] for ``"map"``.

    Raises
    ------
    ValueError
        Not a distribution; labels that the loss does not take; a loss that is undefined for all
        of them.

    Notes
    -----
    Labels for which the loss is undefined (average precision without a relevant document) are
    left out, and the probabilities of the others divided by their sum, as `fit` leaves out such
    queries. All functions of this module do so. Where terms cancel up to rounding, as those of a
    pair that is tied in expectation, the result is exactly 0.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import expected_targets
    >>> distribution = ([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7])
    >>> expected_targets(distribution, "map_by_scores").round(3).tolist()
    [0.233, 0.233, 0.3, 0.233]
    """
    loss, distribution = resolve(distribution, loss)
    flat = distribution.probabilities @ all_targets(loss, distribution.labels)
    size = _sizes(loss, distribution)
    terms = distribution.labels.size / distribution.n_documents  # that are added up, at most
    flat[np.abs(flat) <= (4 + terms) * np.finfo(np.float64).eps * size] = 0.0
    return _as_entries(flat, loss, distribution)


def expected_sizes(distribution: LabelDistribution | tuple[Any, Any], loss: str | Loss) -> Floats:
    """Expected absolute values of what `expected_targets` adds up, of the same shape.

    E[Y_ij] + E[Y_ji] for ``"pd"``, also on the diagonal, where it is 0; E|alpha| for others, or
    more where alpha itself is a sum of terms that cancel. Rounding errors are relative to these.
    """
    loss, distribution = resolve(distribution, loss)
    matrices = _as_entries(_sizes(loss, distribution), loss, distribution)
    return np.abs(matrices)


def _as_entries(flat: Floats, loss: Loss, distribution: LabelDistribution) -> Floats:
    if not loss.space.is_pairwise:
        return flat
    return loss.space.matrices(flat[None], distribution.n_documents)[0]


def _sizes(loss: Loss, distribution: LabelDistribution) -> Floats:
    """`expected_sizes`, as a vector in the order in which decoders take it."""
    labels, p = distribution.labels, distribution.probabilities
    m, r = labels.shape[:2]
    if loss.space == "pairs":  # of both weights, not of their difference
        weights = loss.encode(*as_queries(labels)).weights(np.arange(m * r).reshape(m, r))
        mean = np.tensordot(p, weights, 1)
        return (mean + mean.T)[np.triu_indices(r, 1)]
    if isinstance(loss, PDByScores) and not callable(loss.score_function):
        sizes = SCORE_SIZES[loss.score_function](loss.smoothing)
        loss = PDByScores(loss.pair_weight, score_function=sizes, equal_queries=loss.equal_queries)
    sizes = p @ np.abs(all_targets(loss, labels))
    if isinstance(loss, PDByScores):  # what a function of yours adds up to a score is not known
        return np.full(r, sizes.max())
    return sizes
