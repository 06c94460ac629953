"""Distributions of the labels of one query: expected targets, expected losses, best rankings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.decoders._decode_average_precision import DP_LARGEST
from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss, PDByScores, get_loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.queries import Queries, Ranking, check_ranks
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS, flat_targets
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Floats, Ints, check_range, read_array, read_numbers

#: Up to this many documents, all rankings are enumerated.
LARGEST = 8
#: Two expected values of rankings are equal if they differ by at most `ROUNDING` times the expected
#: absolute values of their terms, or by `NOISE` times the maximum of these over all rankings. The
#: second allows for values with terms that cancel.
ROUNDING, NOISE = 1e-12, 1e-14


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """A finite distribution of the labels of one query of r documents.

    All functions also accept a tuple ``(labels, probabilities)`` instead.

    Parameters
    ----------
    labels : array-like of shape (m, r) or (m, r, r)
        The m labels that the query can have. A label is the relevance of r documents, or a matrix
        of preference weights: ``labels[k, i, j]`` is the weight of document i over document j in
        label k.
    probabilities : array-like of shape (m,)
        The probability of each label. They must sum to 1.

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
                f"probabilities must have shape ({len(labels)},), one number for each label; it "
                f"has shape {probabilities.shape}."
            )
        check_range(probabilities, "probabilities")
        if probabilities.min() < 0 or abs(probabilities.sum() - 1) > 1e-8:
            raise ValueError(f"probabilities must be >= 0 and sum to 1; got {probabilities}.")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "probabilities", probabilities)

    @property
    def n_documents(self) -> int:
        """Number of documents of the query."""
        return int(self.labels.shape[1])

    def __repr__(self) -> str:
        lines = [f"LabelDistribution of {counted(self.n_documents, 'document')}:"]
        for label, chance in zip(self.labels[:20], self.probabilities[:20], strict=True):
            if label.ndim == 1:
                shown = "[" + ", ".join(f"{value:g}" for value in label) + "]"
            else:
                edges = zip(*np.nonzero(label), strict=True)
                shown = ", ".join(f"{i} > {j}: {label[i, j]:g}" for i, j in edges)
            lines.append(f"  {chance:.6g}  {shown or 'no preference'}")
        more = len(self.labels) - 20
        return "\n".join([*lines, f"  and {more} more labels"] if more > 0 else lines)


#: A distribution of labels, or a tuple of its arguments.
Distribution = LabelDistribution | tuple[Any, Any]


def check_numbers(values: ArrayLike, name: str) -> Floats:
    """Check finite numbers and return them as a new float64 array."""
    array = np.array(read_numbers(values, name))  # a copy that the caller cannot change
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name} contains NaN or infinity (first at {where}).")
    return array


def check_labels(labels: ArrayLike) -> Floats:
    """Check labels: relevance (m, r) or preference weights (m, r, r)."""
    array = check_numbers(labels, "labels")
    check_range(array, "labels")
    square = array.ndim == 3 and array.shape[1] == array.shape[2]
    if not (array.ndim == 2 or square) or array.size == 0:
        raise ValueError(
            "labels must have shape (n_labels, n_documents) if they are relevance, or (n_labels, "
            f"n_documents, n_documents) if they are preference weights; got shape {array.shape}."
        )
    if array.ndim == 3:
        if array.min() < 0:
            raise ValueError(f"Preference weights must be >= 0; got {array.min():g}.")
        itself = np.einsum("mii->mi", array)
        if itself.any():
            k, i = np.argwhere(itself)[0]
            raise ValueError(f"Label {k} prefers document {i} to itself.")
    return array


def as_distribution(distribution: Distribution) -> LabelDistribution:
    """Convert a tuple to a `LabelDistribution`."""
    if isinstance(distribution, LabelDistribution):
        return distribution
    if isinstance(distribution, tuple) and len(distribution) == 2:
        return LabelDistribution(*distribution)
    raise TypeError(
        "distribution must be a LabelDistribution or a tuple (labels, probabilities); got "
        f"{type(distribution).__name__}."
    )


def as_queries(labels: Floats) -> tuple[Any, Queries]:
    """Convert m labels to the labels of m queries: relevance of shape (m r,), or `Preferences`."""
    m, r = labels.shape[:2]
    queries = Queries.uniform(m, r)
    if labels.ndim == 2:
        return labels.ravel(), queries
    q, i, j = np.nonzero(labels)
    return Preferences.from_pairs(q * r + i, q * r + j, labels[q, i, j], queries), queries


def all_targets(loss: Loss, labels: Floats) -> Floats:
    """Return the targets of each label as a vector (m, d), in the layout of decoders."""
    flat = flat_targets(loss.encode(*as_queries(labels)))
    return flat.reshape(len(labels), flat.size // len(labels))


def resolve(distribution: Distribution, loss: str | Loss) -> tuple[Loss, LabelDistribution]:
    """Set the data-dependent parameters of the loss, and drop labels that do not count.

    Dropped labels have probability 0 or an undefined loss. The remaining probabilities are
    normalised to sum to 1.
    """
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


def expected_targets(distribution: Distribution, loss: str | Loss) -> Floats:
    """Compute the expectation of a loss's targets under a distribution.

    Least squares on the targets converges to this expectation as the number of queries grows.
    Labels with an undefined loss, such as average precision without a relevant document, are
    dropped, and the remaining probabilities are normalised to sum to 1. All functions of this
    module do so. If the terms of an expectation cancel up to rounding, the result is exactly 0.

    Parameters
    ----------
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of r documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object.

    Returns
    -------
    u : ndarray of shape (r,) or (r, r)
        A vector for losses on scores, and a matrix for losses on pairs: antisymmetric differences
        E[Y_ij] - E[Y_ji] for ``"pd"``, and symmetric products E[Y_i Y_j / sum(Y)] for ``"map"``.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import expected_targets
    >>> distribution = ([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7])
    >>> expected_targets(distribution, "map_by_scores").round(3).tolist()
    [0.233, 0.233, 0.3, 0.233]
    """
    return targets_and_sizes(distribution, loss)[0]


def targets_and_sizes(distribution: Distribution, loss: str | Loss) -> tuple[Floats, Floats]:
    """Return `expected_targets` and the expected absolute values of their terms.

    Rounding errors are relative to these sizes. For ``"pd"``, the size is E[Y_ij] + E[Y_ji]. For
    other losses, it is the expected absolute target, or more if a target is a sum of terms that
    cancel.
    """
    loss, distribution = resolve(distribution, loss)
    flat = distribution.probabilities @ all_targets(loss, distribution.labels)
    size = _sizes(loss, distribution)
    # Each entry sums at most `terms` terms, and each addition rounds by eps times the size.
    terms = distribution.labels.size / distribution.n_documents
    flat[np.abs(flat) <= (4 + terms) * np.finfo(np.float64).eps * size] = 0.0
    matrices = _as_entries(size, loss, distribution)
    return _as_entries(flat, loss, distribution), np.abs(matrices)


def _as_entries(flat: Floats, loss: Loss, distribution: LabelDistribution) -> Floats:
    """Return scores unchanged, and entries of pairs as a matrix."""
    if not loss.space.is_pairwise:
        return flat
    return loss.space.matrices(flat[None], distribution.n_documents)[0]


def _sizes(loss: Loss, distribution: LabelDistribution) -> Floats:
    """Return the sizes of `targets_and_sizes` as a vector, in the layout of decoders."""
    labels, p = distribution.labels, distribution.probabilities
    m, r = labels.shape[:2]
    if loss.space != PAIRS and not isinstance(loss, PDByScores):
        return p @ np.abs(all_targets(loss, labels))
    encode = loss.differences if isinstance(loss, PDByScores) else loss.encode
    weights = encode(*as_queries(labels)).weights(np.arange(m * r).reshape(m, r))
    both = weights + weights.transpose(0, 2, 1)
    if loss.space == PAIRS:  # E[Y_ij] + E[Y_ji], not the size of their difference
        mean: Floats = np.tensordot(p, both, 1)
        return mean[np.triu_indices(r, 1)]
    # Only the score function knows which terms it adds. They do not cancel if each document wins
    # all comparisons with later ones: use the largest of these scores as the size of all.
    return np.full(r, (p @ np.abs(all_targets(loss, np.triu(both)))).max())


@lru_cache(maxsize=4)
def all_ranks(r: int) -> Ints:
    """Return all rankings (r!, r) as positions from 1, in ascending order of document lists."""
    orders = np.array(list(itertools.permutations(range(r))), dtype=np.int64)
    ranks = np.argsort(orders, axis=1) + 1
    ranks.flags.writeable = False
    return ranks


def ranking_numbers(ranks: Ints) -> Ints:
    """Return the index in `all_ranks` of each ranking (n, r)."""
    r = ranks.shape[1]
    # Read ranks minus 1 as the digits of a number in base r, which is unique for each ranking.
    digits = r ** np.arange(r)
    codes = (all_ranks(r) - 1) @ digits
    order = np.argsort(codes)
    return order[np.searchsorted(codes[order], (ranks - 1) @ digits)]


def values_of_rankings(
    measure: Callable[[Ranking, Any], Floats], labels: Floats, ranks: Ints
) -> Floats:
    """Return ``measure(ranking, labels)`` of n rankings under each of m labels, (m, n)."""
    m = len(labels)
    values = np.empty((m, len(ranks)))
    # Each pair of a label and a ranking becomes a query. A block has all labels of some rankings.
    step = rows_per_block(8 * labels.size)
    for first in range(0, len(ranks), step):
        some = ranks[first : first + step]
        repeated, queries = as_queries(np.repeat(labels, len(some), axis=0))
        ranked = Ranking.from_ranks(np.tile(some, (m, 1)).ravel(), queries)
        values[:, first : first + step] = measure(ranked, repeated).reshape(m, -1)
    return values


def calibrated_values(loss: Loss, labels: Floats, ranks: Ints) -> Floats:
    """Return `Loss.calibrated_measure` (m, n) of rankings for labels; larger is better."""
    return values_of_rankings(loss.calibrated_measure, labels, ranks)


def bayes_ranking(
    distribution: Distribution, loss: str | Loss, *, time_limit: float | None = None
) -> Ints:
    """Find the ranking with the smallest expected loss.

    Up to 8 documents, all rankings are enumerated. Beyond that, the expected targets are decoded
    exactly (Ramaswamy et al., 2013, theorem 3). ``"map"`` allows 24 documents. A loss that is not
    calibrated for every distribution allows only 8.

    Parameters
    ----------
    distribution, loss
        As in `expected_targets`.
    time_limit : float, default=None
        Limit in seconds for ``"pd"`` with more than 8 documents and cyclic expected preferences.
        A `ConvergenceWarning` is issued if optimality cannot be proved in this time. None means no
        limit.

    Returns
    -------
    ranks : ndarray of shape (r,)
        The position of each document, 1 = top. If several rankings of up to 8 documents are
        optimal, return the one with the lexicographically first list of documents, best first.

    Examples
    --------
    For average precision, the optimal ranking puts the third document last, although it has the
    largest expected score:

    >>> from sklearn_rankcal.consistency import bayes_ranking, expected_targets
    >>> distribution = ([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7])
    >>> bayes_ranking(distribution, "map").tolist()
    [1, 2, 4, 3]
    >>> expected_targets(distribution, "map_by_scores").argmax().item()
    2
    """
    loss, distribution = resolve(distribution, loss)
    r = distribution.n_documents
    if r <= LARGEST:
        risks, sizes = _risks(all_ranks(r), distribution, loss)
        # Take the first of the rankings with the least risk, up to rounding.
        best = risks.argmin()
        return all_ranks(r)[np.argmax(risks - risks[best] <= _slack(sizes, best))].copy()
    if not loss.space.is_pairwise and not without_shrinkage(loss).calibrated_everywhere:
        raise ValueError(
            f"The rankings of {r} documents are too many to enumerate (the limit is {LARGEST}), "
            f"and {type(loss).__name__} has no exact decoder; loss='map' and loss='pd' have one."
        )
    if loss.space == SYMMETRIC_PAIRS and r > DP_LARGEST:
        raise ValueError(
            f"Average precision can be maximised exactly for up to {DP_LARGEST} documents; got {r}."
        )
    decoder = get_decoder("exact" if loss.space.is_pairwise else "sort", loss.space)
    if loss.space == PAIRS:
        decoder.set_params(time_limit=time_limit)
    expected = distribution.probabilities @ all_targets(loss, distribution.labels)
    ranks: Ints = decoder.decode(expected, Queries.single(r)).ranks
    return ranks


def ranking_risk(ranks: ArrayLike, distribution: Distribution, loss: str | Loss) -> Any:
    """Compute the expected loss of a ranking: minus the expected `calibrated_measure`.

    Parameters
    ----------
    ranks : array-like of shape (r,) or (n_rankings, r)
        The position of each document, 1 = top. Each row of a two-dimensional array is one ranking.
    distribution, loss
        As in `expected_targets`.

    Returns
    -------
    risk : float or ndarray of shape (n_rankings,)
        For ``"pd"`` and ``"pd_by_scores"``, the expected weight of the preferences that the ranking
        contradicts. For other losses, minus the expected measure.

    Examples
    --------
    The expected scores of four documents tie, although their order matters (proof of theorem 3.3 of
    Calauzènes et al., 2013, which adds the two labels instead of taking their mean):

    >>> from sklearn_rankcal.consistency import ranking_risk
    >>> distribution = ([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    >>> ranking_risk([[1, 3, 2, 4], [1, 2, 3, 4]], distribution, "map").round(4).tolist()
    [-0.6667, -0.7083]
    """
    loss, distribution = resolve(distribution, loss)
    risks, _ = _risks(_read_ranks(ranks, distribution.n_documents), distribution, loss)
    return float(risks[0]) if np.ndim(ranks) == 1 else risks


def _read_ranks(ranks: ArrayLike, r: int) -> Ints:
    """Check one ranking or several, and return an array of shape (n_rankings, r)."""
    given = read_array(ranks, "ranks")
    if given.ndim not in (1, 2) or given.shape[-1] != r:
        raise ValueError(
            f"ranks must have shape ({r},) or (n_rankings, {r}), with the position of each "
            f"document; it has shape {given.shape}."
        )
    rows = given.reshape(-1, r)
    return check_ranks(rows.ravel(), Queries.uniform(len(rows), r)).reshape(rows.shape)


def _risks(ranks: Ints, distribution: LabelDistribution, loss: Loss) -> tuple[Floats, Floats]:
    """Return expected losses of rankings, and the expected absolute values of their terms."""
    values = calibrated_values(loss, distribution.labels, ranks)
    return -(distribution.probabilities @ values), distribution.probabilities @ np.abs(values)


def _slack(sizes: Floats, best: Any) -> Floats:
    """Return how much each ranking may differ from ranking number `best` and still be equal."""
    return ROUNDING * (sizes + sizes[best]) + NOISE * float(sizes.max())


def ranking_regret(
    ranks: ArrayLike,
    distribution: Distribution,
    loss: str | Loss,
    *,
    time_limit: float | None = None,
) -> Any:
    """Compute the regret of a ranking: its expected loss minus the least expected loss.

    Parameters
    ----------
    ranks, distribution, loss
        As in `ranking_risk`.
    time_limit : float, default=None
        Limit in seconds for `bayes_ranking`. If it is too short, a regret can be negative.

    Returns
    -------
    regret : float or ndarray of shape (n_rankings,)
        The regret. It is 0 if a ranking differs from the best one only by rounding.

    Examples
    --------
    Algorithm 1 of Ramaswamy et al. (2013) is not exact on cyclic preferences:

    >>> from sklearn_rankcal.consistency import ranking_regret
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> weights = [[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]]
    >>> greedy = decode_preferences(weights, "greedy_dag").ranks
    >>> ranking_regret(greedy, ([weights], [1.0]), "pd")
    2.0
    """
    best = bayes_ranking(distribution, loss, time_limit=time_limit)
    loss, distribution = resolve(distribution, loss)
    positions = _read_ranks(ranks, distribution.n_documents)
    risks, sizes = _risks(np.vstack([best, positions]), distribution, loss)
    regret = risks - risks[0]
    regret = np.where(np.abs(regret) <= _slack(sizes, 0), 0.0, regret)[1:]
    return float(regret[0]) if np.ndim(ranks) == 1 else regret
