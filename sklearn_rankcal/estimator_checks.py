"""Checks for rankers, losses and surrogates, in addition to `sklearn.utils.estimator_checks`.

scikit-learn's checks do not test rankings: a ranker that returns the worst order passes them.
`check_ranker` runs every check of `yield_ranker_checks` on a ranker. `check_loss` compares a loss
with an enumeration of all rankings, and `check_surrogate` a surrogate with finite differences. A
failed check raises AssertionError.
`expected_failed_checks` lists the checks of scikit-learn that do not apply to rankers.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.consistency import _distributions
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.metrics import kendall_tau_score
from sklearn_rankcal.models import BilinearPairs, Model, PairModel
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.rankers import RankerMixin
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, Space, flat_targets
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

__all__ = [
    "check_loss",
    "check_ranker",
    "check_surrogate",
    "expected_failed_checks",
    "yield_ranker_checks",
]

#: Values of a measure count as equal if they differ by at most this much.
ROUNDING = 1e-9
#: Scores tie if they differ by at most this much. A sort may return tied documents in any order.
TIED = 1e-12
#: Number of label vectors per query size with which tied scores are checked.
TIED_LABELS = 20
#: Step of finite differences.
STEP = 1e-6

_DENSE_ONLY = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Get the checks of scikit-learn that a ranker cannot pass, with reasons.

    Pass the result as `expected_failed_checks` to `sklearn.utils.estimator_checks.check_estimator`.
    Pass the function itself to `parametrize_with_checks`.

    Parameters
    ----------
    estimator : estimator
        A ranker, or any other estimator of this package.

    Returns
    -------
    checks : dict of str to str
        The reason for each check, by the name of the check.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.estimator_checks import expected_failed_checks
    >>> "check_methods_subset_invariance" in expected_failed_checks(CalibratedRanker())
    True
    """
    ranks_documents = isinstance(estimator, RankerMixin)
    if not ranks_documents:  # the estimator is a label ranker or a classifier
        folds = getattr(estimator, "n_folds", None) is not None
        if not (folds or get_tags(estimator).non_deterministic):
            return {}
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "bootstrap samples and folds consist of rows and do not depend on weights"
            )
        }
    reasons = {
        "check_methods_subset_invariance": (
            "predict returns positions among the given rows, and a subset of the rows has "
            "different positions. decision_function is invariant to subsets."
        ),
    }
    weight = _why_weights_are_no_repetitions(estimator)
    if weight is not None:
        reasons["check_sample_weight_equivalence_on_dense_data"] = weight
        # The tag for sparse input is not reliable: in scikit-learn 1.6, Ridge supports sparse input
        # although its tag says otherwise.
        if not isinstance(getattr(estimator, "regressor", None), _DENSE_ONLY):
            reasons["check_sample_weight_equivalence_on_sparse_data"] = weight
    return reasons


def _why_weights_are_no_repetitions(estimator: Any) -> str | None:
    """Return why a row with weight 2 differs from two such rows, or None if it does not."""
    regressor = getattr(estimator, "regressor", None)
    if estimator._weighs_queries or getattr(regressor, "_weighs_queries", False):
        return (
            "the weight of a query is the mean weight of its rows. A query with weight 2 equals "
            "two such queries, but a row with weight 2 does not equal two rows of one query."
        )
    space = get_loss(estimator.loss).space
    if space == SYMMETRIC_PAIRS or (space == SCORES and not _targets_are_per_row(estimator)):
        return (
            "the normalizer of the loss depends on all rows of a query. A repeated row changes the "
            "targets of its query, but a weight only changes the regression."
        )
    if space == PAIRS and (not isinstance(regressor, Model) or isinstance(regressor, PairModel)):
        return (
            "for a regressor on pairs, a repeated row also forms a pair with itself, and the "
            "default trees bin columns by rows instead of weights. PairwiseRidge passes."
        )
    if space == PAIRS and isinstance(regressor, BilinearPairs):
        return (
            "predictions agree up to rounding, but cyclic preferences can have several best "
            "rankings, and rounding decides between them. predict_preferences passes."
        )
    return None


def _targets_are_per_row(estimator: Any) -> bool:
    """Return whether repeating a row leaves the targets of all other rows unchanged."""
    loss = get_loss(estimator.loss)
    y = np.array([0.0, 1.0, 1.0, 0.0])
    alone = loss.encode(y, Queries.single(4))
    repeated = loss.encode(np.append(y, 1.0), Queries.single(5))[:4]
    return bool(np.allclose(alone, repeated))


def check_ranker(ranker: Any) -> None:
    """Run every check of `yield_ranker_checks` on a ranker.

    Parameters
    ----------
    ranker : estimator
        An unfitted ranker. Each check fits a clone.

    Raises
    ------
    AssertionError
        If a check fails. The remaining checks are not run.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.estimator_checks import check_ranker
    >>> check_ranker(CalibratedRanker(Ridge()))
    """
    for check in yield_ranker_checks():
        check(ranker)


def yield_ranker_checks() -> Iterator[Callable[[Any], None]]:
    """Yield the checks for rankers, for use with `pytest.mark.parametrize`.

    Yields
    ------
    check : callable
        A function that takes an unfitted ranker and raises AssertionError if the check fails.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.estimator_checks import yield_ranker_checks
    >>> first = next(yield_ranker_checks())
    >>> first(CalibratedRanker(Ridge()))
    """
    yield from _CHECKS


# ---------------------------------------------------------------- the table of checks of rankers

_CHECKS: list[Callable[[Any], None]] = []


class _Case:
    """A ranker to check, and queries of different sizes, with binary labels for every loss."""

    def __init__(self, ranker: Any, n_queries: int = 40) -> None:
        self.ranker = ranker
        data = make_ranking(
            n_queries, (2, 9), 6, n_informative=3, n_levels=2, noise=0.1, random_state=0
        )
        self.X, self.y, self.groups = data.X.round(3), data.y, data.groups
        self.latent = data.latent

    def fit(self, X: Any, y: Any, groups: Any) -> Any:
        """Fit a clone of the ranker with a fixed random state."""
        ranker = clone(self.ranker)
        if "random_state" in ranker.get_params():
            ranker.set_params(random_state=0)
        return ranker.fit(X, y, groups=groups)

    @cached_property
    def fitted(self) -> Any:
        return self.fit(self.X, self.y, self.groups)

    @cached_property
    def ranks(self) -> Ints:
        ranks: Ints = self.fitted.predict(self.X, groups=self.groups)
        return ranks

    def same(self, fitted: Any, X: Any, groups: Any, rows: Any = slice(None)) -> None:
        """Check that a ranker gives these rows the positions of the first ranker."""
        np.testing.assert_array_equal(fitted.predict(X, groups=groups), self.ranks[rows])


def _check(check: Callable[[_Case], None]) -> Callable[[Any], None]:
    """Add a function of a case to the table, as a check of a ranker."""

    @wraps(check)
    def check_case(ranker: Any) -> None:
        check(_Case(ranker))

    _CHECKS.append(check_case)
    return check_case


@_check
def check_ranker_permutation_per_query(case: _Case) -> None:
    """Check that `predict` returns the positions 1 to r for each query of r documents, as int64."""
    assert case.ranks.shape == case.y.shape and case.ranks.dtype == np.int64
    for group in np.unique(case.groups):
        rows = case.groups == group
        assert sorted(case.ranks[rows]) == list(range(1, rows.sum() + 1))


@_check
def check_ranker_row_order(case: _Case) -> None:
    """Check that permuting the rows of `predict` permutes its positions."""
    shuffle = np.random.RandomState(0).permutation(len(case.y))
    case.same(case.fitted, case.X[shuffle], case.groups[shuffle], shuffle)


@_check
def check_ranker_group_names(case: _Case) -> None:
    """Check that the values of the query ids affect neither `fit` nor `predict`."""
    names = np.array([f"query {(7 * g) % 41}" for g in case.groups])
    case.same(case.fit(case.X, case.y, names), case.X, names.tolist())


@_check
def check_ranker_queries_are_separate(case: _Case) -> None:
    """Check that `predict` ranks each query independently of all other queries."""
    for group in (0, 7, 39):
        rows = case.groups == group
        case.same(case.fitted, case.X[rows], case.groups[rows], rows)


@_check
def check_ranker_better_than_constant(case: _Case) -> None:
    """Check that Kendall's tau on new, easy queries is above 0.3 times the attainable value."""
    case = _Case(case.ranker, n_queries=150)
    train, test = case.groups < 75, case.groups >= 75
    groups = case.groups[test]
    ranks = case.fit(case.X[train], case.y[train], case.groups[train]).predict(
        case.X[test], groups=groups
    )
    queries = Queries.from_groups(groups)
    attainable = queries.rank(queries.sort(case.latent[test]))
    tau, best = (
        kendall_tau_score(case.y[test], ranks=one, groups=groups) for one in (ranks, attainable)
    )
    assert tau > 0.3 * best, f"Kendall's tau {tau:.3f}, attainable about {best:.3f}"


@_check
def check_ranker_structured_labels(case: _Case) -> None:
    """Check that labels that contain the queries can replace `groups` in `fit` and `score`."""
    labels = relevance_labels(case.y, case.groups)
    other = case.fit(case.X, labels, None)
    case.same(other, case.X, case.groups)
    score = case.fitted.score(case.X, case.y, groups=case.groups)
    assert score == other.score(case.X, labels)


@_check
def check_ranker_predict_order(case: _Case) -> None:
    """Check that `predict_order` lists the rows of each query in the order of `predict`."""
    for k in (None, 1, 3):
        rows, offsets, queries = case.fitted.predict_order(case.X, groups=case.groups, k=k)
        for q, group in enumerate(queries):
            listed = rows[offsets[q] : offsets[q + 1]]
            assert (case.groups[listed] == group).all()
            size = (case.groups == group).sum()
            assert case.ranks[listed].tolist() == list(range(1, min(size, k or size) + 1))


@_check
def check_ranker_clone_and_pickle(case: _Case) -> None:
    """Check that clones and pickles give the same predictions, and `predict` changes no state."""
    before = pickle.dumps(case.fitted)
    case.fitted.score(case.X, case.y, groups=case.groups)
    case.same(pickle.loads(before), case.X, case.groups)
    assert pickle.dumps(case.fitted) == before, "predict or score changed the ranker"
    case.same(_Case(case.fitted).fitted, case.X, case.groups)


@_check
def check_ranker_leaves_input_alone(case: _Case) -> None:
    """Check that no method changes X, y, groups or weights."""
    arrays = [case.X.copy(), case.y.copy(), case.groups.copy(), np.ones(len(case.y))]
    for array in arrays:
        array.flags.writeable = False
    fitted = case.fit(*arrays[:3])
    fitted.predict(arrays[0], groups=arrays[2])
    fitted.score(*arrays)


@_check
def check_ranker_sparse_equals_dense(case: _Case) -> None:
    """Check that sparse and dense X give the same ranking, if the ranker accepts sparse X."""
    if not get_tags(case.ranker).input_tags.sparse:
        return
    case.ranker = clone(case.ranker)
    if "context" in case.ranker.get_params():
        case.ranker.set_params(context=None)  # context columns need dense input
    case.X = np.where(np.abs(case.X) > 0.7, case.X, 0.0)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        S = kind(case.X)
        case.same(case.fit(S, case.y, case.groups), S, case.groups)


@_check
def check_ranker_frame_equals_array(case: _Case) -> None:
    """Check that data frames of pandas and polars, if installed, give the ranking of an array."""
    names = [f"column {j}" for j in range(case.X.shape[1])]
    for library, argument in (("pandas", "columns"), ("polars", "schema")):
        try:
            module = import_module(library)
        except ImportError:
            continue
        frame = module.DataFrame(case.X, **{argument: names})
        fitted = case.fit(frame, case.y, case.groups)
        assert fitted.feature_names_in_.tolist() == names
        case.same(fitted, frame, case.groups)


@_check
def check_ranker_small_queries(case: _Case) -> None:
    """Check that `fit` and `predict` accept queries with one document or equal documents."""
    X = np.vstack([case.X, case.X[:1], np.repeat(case.X[1:2], 3, axis=0)])
    y = np.concatenate([case.y, [1], [0, 1, 0]])
    groups = np.concatenate([case.groups, [100], [101] * 3])
    ranks = case.fit(X, y, groups).predict(X, groups=groups)
    assert ranks[-4] == 1 and sorted(ranks[-3:]) == [1, 2, 3]


@_check
def check_ranker_ties(case: _Case) -> None:
    """Check that the order of tied documents does not depend on the order of the rows."""
    case.X = np.where(np.arange(case.X.shape[1]) > 0, 0.0, case.X > 0)
    case.X[:, 0] += 1e-9 * np.arange(len(case.X))
    for seed in range(3):
        shuffle = np.random.RandomState(seed).permutation(len(case.X))
        case.same(case.fitted, case.X[shuffle], case.groups[shuffle], shuffle)


# ---------------------------------------------------------------- losses


def check_loss(
    loss: Loss | str,
    *,
    levels: tuple[float, ...] | None = None,
    n_documents: tuple[int, ...] = (1, 2, 3, 4),
    n_distributions: int = 200,
    random_state: int = 0,
) -> None:
    """Test a loss against an enumeration of all rankings.

    The function checks the following:

    - Targets have the right shape and are finite.
    - `defined` is true if and only if `per_query` is not NaN.
    - Targets and measures of a query do not depend on the order of the rows or on other queries.
    - The measure of tied scores is the mean over all orders of the tied documents.
    - The loss is calibrated. For random distributions of the labels, the ranking decoded from the
      expected targets (by sorting, or by the exact decoder) attains the largest expected value of
      `calibrated_measure` among all r! rankings. If the loss does not claim to be calibrated for
      every distribution, each distribution has a single label vector.
    - The regret of random scores does not exceed the bound of `regret_constant`.

    Parameters
    ----------
    loss : Loss or str
        A loss object, for example of your own class, or the name of a loss.
    levels : tuple of float, default=None
        The grades to sample labels from. If None, (0, 1) for binary losses, otherwise
        (0, 1, 2, 3).
    n_documents : tuple of int, default=(1, 2, 3, 4)
        The sizes r of queries. All r! rankings of each size are enumerated.
    n_distributions : int, default=200
        Number of random distributions for each size.
    random_state : int, default=0
        Seed of the random numbers.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from sklearn_rankcal.estimator_checks import check_loss
    >>> check_loss("ndcg@2", n_distributions=20)
    """
    loss = get_loss(loss)
    assert loss.calibrated_over, (
        "calibrated_over must name the distributions over which the loss is calibrated"
    )
    if levels is None:
        levels = (0.0, 1.0) if loss.needs_threshold else (0.0, 1.0, 2.0, 3.0)
    random = np.random.RandomState(random_state)
    loss = loss.resolve(np.array(levels))
    get_decoder("auto", loss.space)
    clone(loss)
    _check_layouts(loss, levels, random)
    for r in n_documents:
        _check_ties(loss, levels, r, random)
        _check_calibration(loss, levels, r, n_distributions, random)


def _targets(loss: Loss, y: Floats, queries: Queries) -> Floats:
    """Return the targets as a vector with one entry per row or per pair."""
    return flat_targets(loss.encode(y, queries))


def _check_layouts(loss: Loss, levels: tuple[float, ...], random: Any) -> None:
    """Check that targets and measures of a query do not depend on other queries or row order."""
    # Compute everything for shuffled rows of 12 queries.
    groups = np.repeat(np.arange(12), random.randint(1, 6, size=12))
    y = random.choice(levels, size=len(groups))
    shuffle = random.permutation(len(y))
    queries = Queries.from_groups(groups[shuffle])
    targets = _targets(loss, y[shuffle], queries)
    if not loss.space.is_pairwise:
        assert targets.shape == y.shape, "encode must return one target per row"
        targets = targets[np.argsort(shuffle)]
    assert np.isfinite(targets).all(), "targets must be finite, and 0 if the loss is undefined"
    scores = random.randint(0, 3, size=len(y)).astype(float)
    different = random.permutation(len(y)).astype(float)
    values = loss.per_query(Ranking.from_scores(scores[shuffle], queries), y[shuffle])
    calibrated = loss.calibrated_measure(
        Ranking.from_scores(different[shuffle], queries), y[shuffle]
    )
    defined = loss.defined(y[shuffle], queries)
    assert values.shape == defined.shape == (queries.n_queries,)
    np.testing.assert_array_equal(np.isnan(values), ~defined, "measure is NaN where not defined")
    # Compare with the results of each query alone, with rows in the original order.
    for q, group in enumerate(queries.ids):
        rows = np.flatnonzero(groups == group)
        alone = Queries.single(len(rows))
        if not loss.space.is_pairwise:
            here, label = targets[rows], y[rows]
        else:  # pairs are numbered in the order of the shuffled rows
            label = y[shuffle][queries.codes == q]
            here = targets[_entries(loss.space, queries, q)]
        np.testing.assert_allclose(here, _targets(loss, label, alone), atol=1e-12)
        value = loss.per_query(Ranking.from_scores(scores[rows], alone), y[rows])
        np.testing.assert_allclose(values[q], value[0], atol=1e-12)
        value = loss.calibrated_measure(Ranking.from_scores(different[rows], alone), y[rows])
        np.testing.assert_allclose(calibrated[q], value[0], atol=1e-12)


def _entries(space: Space, queries: Queries, q: int) -> slice:
    """Return the slice of a query in the vector of the pairs of all queries."""
    counts = space.n_entries(queries.sizes)
    stops = np.cumsum(counts)
    return slice(int(stops[q] - counts[q]), int(stops[q]))


def _check_ties(loss: Loss, levels: tuple[float, ...], r: int, random: Any) -> None:
    """Check that the measure of tied scores is the mean over the orders of the tied documents."""
    labels = random.choice(levels, size=(TIED_LABELS, r))
    scores = random.randint(0, 3, size=(TIED_LABELS, r)).astype(float)
    queries = Queries.uniform(TIED_LABELS, r)
    loss.check(labels.ravel())
    of_rankings = _distributions.values_of_rankings(
        loss.per_query, labels, _distributions.all_ranks(r)
    )
    allowed = _sorting_rankings(scores)
    of_ties = loss.per_query(Ranking.from_scores(scores.ravel(), queries), labels.ravel())
    for y, tied, value, values, sorts in zip(
        labels, scores, of_ties, of_rankings, allowed, strict=True
    ):
        np.testing.assert_allclose(
            value, values[sorts].mean(), atol=1e-10, err_msg=f"y={y}, scores={tied}"
        )


def _check_calibration(
    loss: Loss, levels: tuple[float, ...], r: int, n_distributions: int, random: Any
) -> None:
    """Check calibration and the regret bound, for a block of distributions at a time."""
    # The largest array has a number for each distribution, ranking and document.
    step = rows_per_block(8 * math.factorial(r) * r)
    for first in range(0, n_distributions, step):
        n = min(step, n_distributions - first)
        labels, chance = _draw_distributions(loss, levels, r, n, random)
        if len(chance):
            _check_distributions(loss, labels, chance, random)


def _draw_distributions(
    loss: Loss, levels: tuple[float, ...], r: int, n: int, random: Any
) -> tuple[Floats, Floats]:
    """Sample up to n distributions of one to four label vectors on which the loss is defined.

    Return the distinct label vectors (m, r), and their probabilities (at most n, m).
    """
    sizes = random.randint(1, 5, size=n)
    owner = np.repeat(np.arange(n), sizes)
    drawn = random.choice(levels, size=(len(owner), r))
    defined = loss.defined(drawn.ravel(), Queries.uniform(len(drawn), r))
    owner, drawn = owner[defined], drawn[defined]
    if not without_shrinkage(loss).calibrated_everywhere:
        # A distribution of a single label vector satisfies every noise condition.
        owner, first = np.unique(owner, return_index=True)
        drawn = drawn[first]
    # Gamma variables divided by their sum have a Dirichlet distribution.
    weight = random.gamma(0.7, size=len(owner))
    labels, number = np.unique(drawn, axis=0, return_inverse=True)
    chance = np.zeros((n, len(labels)))
    np.add.at(chance, (owner, number.ravel()), weight)
    chance = chance[np.unique(owner)]
    return labels, chance / chance.sum(axis=1, keepdims=True)


def _check_distributions(loss: Loss, labels: Floats, chance: Floats, random: Any) -> None:
    """Check that decoding expected targets is optimal, and that the regret bound holds."""
    n, r = len(chance), labels.shape[1]
    # The expected value of every ranking under each distribution, shape (n, r!), larger is better.
    worth = chance @ _distributions.calibrated_values(loss, labels, _distributions.all_ranks(r))
    best = worth.max(axis=1)
    expected = chance @ _distributions.all_targets(loss, labels)
    if not loss.space.is_pairwise:
        method, attained = "sorting", _least_when_sorted(worth, expected)
    else:
        exact = get_decoder("exact", loss.space)
        ranks = exact.decode(expected.ravel(), Queries.uniform(n, r)).ranks.reshape(n, r)
        method, attained = "decoding", worth[np.arange(n), _distributions.ranking_numbers(ranks)]
    for k in np.flatnonzero(~(attained >= best - ROUNDING))[:1]:
        possible = chance[k] > 0
        raise AssertionError(
            f"{loss!r} is not calibrated: for the labels {labels[possible].tolist()} with "
            f"probabilities {chance[k][possible].tolist()}, {method} gives {attained[k]:.6f}, but "
            f"the best ranking gives {best[k]:.6f}."
        )
    constant = loss.regret_constant(r)
    if loss.space.is_pairwise or constant is None:
        return
    scores = expected + random.choice([0.01, 0.3, 2.0], size=(n, 1)) * random.normal(size=(n, r))
    regret = best - _least_when_sorted(worth, scores)
    bound = constant * np.linalg.norm(scores - expected, axis=1)
    for k in np.flatnonzero(~(regret <= bound + ROUNDING))[:1]:
        raise AssertionError(
            f"The regret {regret[k]:.6f} of random scores exceeds the bound {bound[k]:.6f} of "
            "regret_constant."
        )


def _sorting_rankings(scores: Floats) -> Bools:
    """Return whether each ranking of `all_ranks` sorts each row of scores, shape (n, r!)."""
    orders = np.argsort(_distributions.all_ranks(scores.shape[1]), axis=1)
    sorts: Bools = np.all(np.diff(scores[:, orders], axis=2) <= TIED, axis=2)
    return sorts


def _least_when_sorted(worth: Floats, scores: Floats) -> Floats:
    """Return the smallest worth among the rankings that sort the scores."""
    return np.where(_sorting_rankings(scores), worth, np.inf).min(axis=1)


# ---------------------------------------------------------------- surrogates


def check_surrogate(
    surrogate: Surrogate | str,
    *,
    levels: tuple[float, ...] | None = None,
    exact_curvature: bool = True,
    random_state: int = 0,
) -> None:
    """Test a surrogate against finite differences, and what it declares.

    The function checks the following, on random utilities and scores of four queries:

    - The gradient is the derivative of the value, and the curvature, if there is one, is the
      derivative of the gradient.
    - Value and derivatives of a query depend neither on the order of its rows nor on other queries.
    - `shift_invariant`, `scale_invariant`, `convex` and `affine` hold if they are declared.
    - No other scores have a smaller value than `minimizer`, if the surrogate has one.

    `sklearn_rankcal.consistency.is_calibrated_numerically` tests whether it preserves orders.

    Parameters
    ----------
    surrogate : Surrogate or str
        A surrogate object, for example of your own class, or the name of a surrogate.
    levels : tuple of float, default=None
        The utilities to sample from. If None, (0, 0.5, 1, 1.5), and also -1 if the surrogate takes
        negative utilities.
    exact_curvature : bool, default=True
        Whether to check the curvature. Pass False if it is an approximation on purpose, such as
        that of Gauss and Newton.
    random_state : int, default=0
        Seed of the random numbers.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from sklearn_rankcal.estimator_checks import check_surrogate
    >>> check_surrogate("softmax")
    """
    own: Surrogate = clone(get_surrogate(surrogate))
    assert own.theorem, "theorem must say why the surrogate is or is not order preserving"
    random = np.random.RandomState(random_state)
    queries = Queries.from_groups(random.permutation(np.repeat(np.arange(4), (1, 2, 5, 9))))
    codes, n = queries.codes, queries.n_rows
    if levels is None:
        levels = (0.0, 0.5, 1.0, 1.5, *([-1.0] if own.takes_negative else []))
    v, (s, other) = random.choice(levels, size=n), random.normal(size=(2, n))
    fixed = own.resolve(v)
    found = fixed.evaluate(v, s, queries)
    assert found.value.shape == (4,) and found.gradient.shape == (n,), (
        "the value must have one entry per query, and the gradient one entry per row"
    )

    def check(actual: Any, wanted: Any, message: str, tolerance: float = 1e-9) -> None:
        np.testing.assert_allclose(
            actual, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{own!r}: {message}"
        )

    # Derivatives, by moving one score up and down
    for row, move in enumerate(STEP * np.eye(n)):
        up, down = fixed.evaluate(v, s + move, queries), fixed.evaluate(v, s - move, queries)
        slopes = (up.value - down.value) / (2 * STEP)
        wanted = np.where(np.arange(4) == codes[row], found.gradient[row], 0.0)
        check(wanted, slopes, "the gradient is not the derivative of the value", 1e-5)
        if exact_curvature and found.curvature is not None:
            bend = (up.gradient[row] - down.gradient[row]) / (2 * STEP)
            message = "the curvature is not the derivative of the gradient"
            check(found.curvature[row], bend, message, 1e-5)
    # Each query alone, with its rows in reverse order
    for q in range(4):
        rows = np.flatnonzero(codes == q)[::-1]
        alone = fixed.evaluate(v[rows], s[rows], Queries.single(len(rows)))
        for part, here in zip(alone, (found.value[[q]], *found[1:]), strict=True):
            if part is not None:
                here = here if part is alone.value else here[rows]
                check(part, here, "a query depends on other queries, or on the order of its rows")
    # What the surrogate declares
    moved = {"shift_invariant": s + other[codes], "scale_invariant": 3 * s}
    for name, scores in moved.items():
        if getattr(own, name):
            check(fixed.evaluate(v, scores, queries).value, found.value, f"it is not {name}")
    ends = found.value, fixed.evaluate(v, other, queries).value
    for share in (0.1, 0.5, 0.8) if own.convex else ():
        between = fixed.evaluate(v, (1 - share) * s + share * other, queries).value
        chord = (1 - share) * ends[0] + share * ends[1]
        check(np.maximum(between, chord), chord, "it is not convex")
    if own.affine:
        w = random.permutation(v)
        mean = (found.gradient + fixed.evaluate(w, s, queries).gradient) / 2
        middle = fixed.evaluate((v + w) / 2, s, queries).gradient
        check(middle, mean, "it is not affine in the utilities")
    best = fixed.minimizer(v, queries)
    if best is not None and np.isfinite(best).all():
        least = fixed.evaluate(v, best, queries).value
        for scores in (s, other, best + STEP * other, best + 0.1 * other):
            higher = fixed.evaluate(v, scores, queries).value
            check(np.minimum(higher, least), least, "its minimizer does not minimise it")
