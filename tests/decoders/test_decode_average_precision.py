"""Decoders of average precision, compared with all orders; the theorem of the diagonal."""

from functools import partial

import numpy as np
import pytest

from sklearn_rankcal.decoders import decode_average_precision

from .. import matrices, oracles
from ..matrices import (
    OPPOSED,
    SYMMETRIC_FAMILIES,
    average_precision_losses,
    check_results,
    many,
    order_of,
)

METHODS = ["auto", "exact", "local_search", "diagonal"]


def rounding(u):
    return 1e-12 * np.abs(u).sum() + 4e-16  # the loss starts from 1


check = partial(check_results, loss_of=oracles.average_precision_loss, rounding=rounding)


def check_small(us):
    least = np.array([average_precision_losses(u).min() for u in us])
    slack = np.array([rounding(u) for u in us])
    for method in METHODS:
        result = check(decode_average_precision(us, method), us)
        assert (result.lower_bound <= least + slack).all(), method
        assert (result.objective <= least + slack)[result.optimal].all(), method
        assert result.threshold is None or np.isnan(result.threshold).all()
        if method in ("exact", "auto"):
            assert result.optimal.all(), method


@pytest.mark.parametrize("family", SYMMETRIC_FAMILIES)
def test_oracles_agree(family):
    for u in many(family, range(1, 6), 3):
        orders = oracles.all_orders(len(u))
        losses = [oracles.average_precision_loss(u, order) for order in orders]
        np.testing.assert_allclose(average_precision_losses(u), losses, atol=rounding(u), rtol=0)
        least = oracles.least_loss(oracles.average_precision_loss, u)
        assert min(losses) == least
        assert abs(oracles.least_average_precision_loss_by_sets(u) - least) <= rounding(u)


@pytest.mark.parametrize("family", SYMMETRIC_FAMILIES)
def test_against_all_orders(family):
    check_small(many(family, range(1, 8), 40))


@pytest.mark.parametrize("family", ["relevance", "symmetric", "symmetric_ties", "rank_one"])
def test_exact_against_all_sets(family):
    us = many(family, range(8, 11), 2)
    result = check(decode_average_precision(us, "exact"), us)
    for u, objective in zip(us, result.objective, strict=True):
        least = oracles.least_average_precision_loss_by_sets(u.tolist())
        assert abs(objective - least) <= rounding(u)


@pytest.mark.parametrize("family", SYMMETRIC_FAMILIES)
def test_diagonal_by_its_definition(family):
    us = many(family, (1, 2, 5, 12, 40), 6)
    for u, ranks in zip(us, decode_average_precision(us, "diagonal").ranks, strict=True):
        assert order_of(ranks) == sorted(range(len(u)), key=lambda i: (-u[i, i], i))


def is_reinforced(u):
    """Whether P_reinforce holds: a larger diagonal entry outweighs what the row may lack."""
    r = len(u)
    return all(
        u[i, i] >= u[j, j] + sum(max(u[j, g] - u[i, g], 0) for g in range(r) if g not in (i, j))
        for i in range(r)
        for j in range(r)
        if i != j and u[i, i] >= u[j, j]
    )


def test_diagonal_is_exact_inside_p_reinforce():
    """This is theorem 4 of Ramaswamy et al. (2013). Outside its condition the diagonal may fail."""
    rng = np.random.default_rng(0)
    us = []
    for _ in range(3000):
        r = rng.integers(2, 6)
        labels = np.array(list(np.ndindex(*[2] * r)))[1:]
        each, mixed = rng.random(r), rng.random()
        independent = np.where(labels, each, 1 - each).prod(axis=1)
        other = rng.dirichlet(np.full(len(labels), 0.1))
        us.append(matrices.outcomes(labels, (1 - mixed) * independent + mixed * other))
    result = check(decode_average_precision(us, "diagonal"), us)
    least = np.array([average_precision_losses(u).min() for u in us])
    slack = np.array([rounding(u) for u in us])
    exact, inside = result.objective <= least + slack, np.array([*map(is_reinforced, us)])
    assert exact[inside].all() and not exact[~inside].all()
    assert min(inside.sum(), (~inside).sum()) > 200


def test_the_diagonal_fails_outside_p_reinforce():
    assert not is_reinforced(OPPOSED)
    diagonal = decode_average_precision(OPPOSED, "diagonal")
    assert diagonal.ranks[2] == 1 and not diagonal.optimal
    assert diagonal.objective == pytest.approx(1 - 0.7472, abs=5e-5)
    for method in ("exact", "auto", "local_search"):
        result = decode_average_precision(OPPOSED, method)
        assert result.ranks[2] == 4 and result.objective == pytest.approx(1 - 0.775)
        assert result.method


@pytest.mark.parametrize("family", SYMMETRIC_FAMILIES)
@pytest.mark.parametrize("n_perturbations", [None, 0])
def test_local_search(family, n_perturbations):
    options = {} if n_perturbations is None else {"n_perturbations": n_perturbations}
    us = many(family, (*range(1, 8), 12, 30, 60), 8, seed=1)
    result = check(decode_average_precision(us, "local_search", **options), us)
    diagonal = decode_average_precision(us, "diagonal").objective
    for u, ranks, found, sorted_ in zip(us, result.ranks, result.objective, diagonal, strict=True):
        assert found <= sorted_ + rounding(u)
        if len(u) <= 7:
            around = matrices.insertion_losses(average_precision_losses(u), u, ranks)
            assert found <= min(around, default=np.inf) + rounding(u)


@pytest.mark.parametrize("family", ["relevance", "symmetric", "rank_one"])
def test_exact_and_local_search_on_medium_sizes(family):
    us = many(family, (14, 17), 2, seed=2)
    slack = np.array([rounding(u) for u in us])
    exact = check(decode_average_precision(us, "exact"), us)
    assert exact.optimal.all()
    for method in ("local_search", "auto", "diagonal"):
        other = check(decode_average_precision(us, method), us)
        assert (other.objective >= exact.objective - slack).all()
        assert (other.lower_bound <= exact.objective + slack).all()
        assert (other.objective <= exact.objective + slack)[other.optimal].all()
    found = decode_average_precision(us, "local_search").objective
    assert (found <= exact.objective + 0.01 * np.abs(exact.objective)).all()


def test_beyond_the_exact_size():
    u = matrices.relevance(25, np.random.default_rng(0))
    for options in ({}, {"time_limit": 60}):
        with pytest.raises(ValueError, match=r"(?s)25.*local_search"):
            decode_average_precision(u, "exact", **options)
    large = [u, matrices.symmetric(150, np.random.default_rng(1))]
    check(decode_average_precision(large, "auto"), large)


def test_no_proof_beside_a_heavy_document():
    """An error that is small relative to the matrix may be large relative to the value."""
    u = np.zeros((5, 5))
    u[1:, 1:] = matrices.OPPOSED
    for heavy in (1.0, 1e6, 1e9):
        u[0, 0] = heavy
        assert not decode_average_precision(u, "diagonal").optimal
        assert decode_average_precision(u, "exact").optimal


def test_proved_means_no_gap():
    rng = np.random.default_rng(0)
    us = [matrices.symmetric(r, rng) for r in (1, 2, 2, 3, 3, 4) for _ in range(20)]
    for method in ("diagonal", "local_search", "exact"):
        result = decode_average_precision(us, method)
        assert result.optimal.any() and (result.gap[result.optimal] == 0).all()


def test_equal_documents_keep_their_order():
    for method in ("auto", "local_search", "diagonal"):
        assert decode_average_precision(np.ones((17, 17)), method).ranks.tolist() == [*range(1, 18)]
