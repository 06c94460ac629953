"""Matrices for the decoders' tests, and their losses for all orders at once (r <= 7)."""

import functools

import numpy as np
import pytest

from sklearn_rankcal.decoders import KERNELS

from . import oracles


def uniform(r, rng):
    return rng.random((r, r))


def btl(r, rng, noise=0.15):
    scores = rng.normal(size=r)
    return 1 / (1 + np.exp(scores - scores[:, None])) + noise * rng.normal(size=(r, r))


def ties(r, rng):
    return rng.integers(0, 3, size=(r, r)).astype(float)


def tournament(r, rng):
    upper = np.triu(rng.integers(0, 2, size=(r, r)), 1)
    return (upper + np.tril(1 - upper.T, -1)).astype(float)


def sparse(r, rng):
    return rng.integers(1, 4, size=(r, r)) * (rng.random((r, r)) < 0.25) + 0.0


def acyclic(r, rng, density=1.0):
    """Weights of a hidden order, plus pairs of opposed weights that cancel exactly."""
    above = rng.integers(1, 6, size=(r, r)) * (rng.random((r, r)) < density)
    shift = rng.integers(0, 4, size=(r, r))
    hidden = rng.permutation(r)
    return (np.triu(above, 1) + shift + shift.T)[np.ix_(hidden, hidden)] / 4


def acyclic_sparse(r, rng):
    return acyclic(r, rng, 0.3)


def components(r, rng):
    """Strongly connected blocks, one after the other, under a random numbering."""
    block = np.sort(rng.integers(0, 1 + r // 3, size=r))
    u = np.where(block[:, None] <= block, rng.integers(0, 5, size=(r, r)), 0)
    hidden = rng.permutation(r)
    return u[np.ix_(hidden, hidden)] + 0.0


def negative(r, rng):
    return rng.normal(size=(r, r))


def shifted(r, rng):
    shift = rng.integers(-1000, 1000, size=(r, r))
    return rng.integers(0, 4, size=(r, r)) + (shift + shift.T) + 0.0


def huge(r, rng):
    return 1e12 * rng.random((r, r))


def tiny(r, rng):
    return 1e-12 * btl(r, rng, 0.3)


def wide(r, rng):
    return 10 ** rng.uniform(-9, 9, size=(r, r))


def zero(r, rng):
    return np.zeros((r, r))


FAMILIES = {
    make.__name__: make
    for make in (
        uniform, btl, ties, tournament, sparse, acyclic, acyclic_sparse, components, negative,
        shifted, huge, tiny, wide, zero,
    )
}  # fmt: skip

# Outside P_DAG, where Algorithm 1 of Ramaswamy et al. (2013) fails. The edges, with documents
# counted from 1, are 4->1 (6), 3->2 (5), 2->4 (4), 1->3 (3), 4->3 (2) and 1->2 (1).
SIX_EDGES = np.array([[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]], dtype=float)


def relevance(r, rng):
    """Return E[Y Y' / sum Y] over a few label vectors."""
    labels = np.unique((rng.random((4, r)) < rng.random()).astype(int), axis=0)
    labels = labels[labels.any(axis=1)] if labels.any() else np.ones((1, r), dtype=int)
    return outcomes(labels, rng.dirichlet(np.ones(len(labels))))


def outcomes(labels, probabilities):
    return sum(p * np.outer(y, y) / sum(y) for p, y in zip(probabilities, labels, strict=True))


def symmetric(r, rng):
    half = rng.normal(size=(r, r))
    return half + half.T


def symmetric_ties(r, rng):
    half = np.triu(rng.integers(-1, 3, size=(r, r)))
    return half + np.triu(half, 1).T + 0.0


def rank_one(r, rng):
    scores = rng.random(r)
    return np.outer(scores, scores)


def diagonal_only(r, rng):
    return np.diag(rng.integers(0, 4, size=r) / 2)


def symmetric_huge(r, rng):
    return 1e12 * symmetric(r, rng)


def symmetric_tiny(r, rng):
    return 1e-12 * relevance(r, rng)


SYMMETRIC_FAMILIES = {
    make.__name__: make
    for make in (
        relevance, symmetric, symmetric_ties, rank_one, diagonal_only, symmetric_huge,
        symmetric_tiny, zero,
    )
}  # fmt: skip

# Outside P_reinforce (Ramaswamy et al., 2013, section 4): every sort by the diagonal puts the third
# document first.
OPPOSED = outcomes([(0, 0, 1, 0), (1, 1, 0, 1)], (0.3, 0.7))


def many(family, sizes, n, seed=0):
    n = n if KERNELS == "compiled" else 1 + n // 10  # NumPy's kernels are ten times slower
    rng = np.random.default_rng(seed)
    make = (FAMILIES | SYMMETRIC_FAMILIES)[family]
    return [make(r, rng) for r in sizes for _ in range(n)]


def order_of(ranks):
    return np.argsort(ranks).tolist()


def check_results(result, us, loss_of, rounding):
    """Check that results are permutations, with their true objectives and bounds not above them."""
    assert len(result.ranks) == len(us)
    for k, u in enumerate(us):
        ranks = result.ranks[k]
        assert ranks.dtype == np.int64 and sorted(ranks) == list(range(1, len(u) + 1))
        loss = loss_of(u.tolist(), order_of(ranks))
        assert result.objective[k] == pytest.approx(loss, rel=0, abs=rounding(u))
        assert result.lower_bound[k] <= result.objective[k]
    np.testing.assert_array_equal(result.gap, result.objective - result.lower_bound)
    return result


# ------------------------------------------------------------------ losses of all orders


@functools.cache
def all_ranks(r):
    return np.array([oracles.ranks_of(order) for order in oracles.all_orders(r)])


@functools.cache
def _preference_table(r):
    ranks = all_ranks(r)
    return (ranks[:, :, None] > ranks[:, None, :]).reshape(len(ranks), -1).astype(float)


@functools.cache
def _average_precision_table(r):
    ranks = all_ranks(r)
    worse = np.maximum(ranks[:, :, None], ranks[:, None, :])
    return np.tril(1 / worse).reshape(len(ranks), -1)


def preference_losses(u):
    """Return `oracles.preference_loss` of every order, as `all_ranks` lists them."""
    return _preference_table(len(u)) @ u.reshape(-1)


def average_precision_losses(u):
    return 1 - _average_precision_table(len(u)) @ u.reshape(-1)


def insertion_losses(losses, u, ranks):
    """Return the losses of the orders that are one insertion away, for small r only."""
    known = dict(zip(map(tuple, all_ranks(len(u)).tolist()), losses, strict=True))
    order = np.argsort(ranks).tolist()
    return [known[tuple(oracles.ranks_of(other))] for other in oracles.insertions(order)]


def rounding(u):
    """Return a bound on the rounding error of sums of entries of u."""
    return 1e-12 * np.abs(u - np.diag(np.diag(u))).sum() if len(u) > 1 else 0.0


def chained(blocks, heavy):
    """Join at least three blocks to a strongly connected matrix; also return the loss that it adds.

    The blocks follow each other over heavy edges, all of which the best order keeps; one edge of
    weight 1 leads from the last document back to the first.
    """
    block = np.repeat(np.arange(len(blocks)), [len(u) for u in blocks])
    weight = heavy * (1 + sum(np.abs(u).sum() for u in blocks))
    whole = np.where(block[:, None] < block, weight, 0.0)
    for k, u in enumerate(blocks):
        whole[np.ix_(block == k, block == k)] = u
    whole[-1, 0], whole[0, -1] = 1.0, 0.0
    return whole, 1.0
