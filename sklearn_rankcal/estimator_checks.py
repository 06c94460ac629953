"""Checks for rankers and losses, beside scikit-learn's: what `check_estimator` cannot see.

scikit-learn's checks know nothing of queries: a ranker that returns the worst order passes them.
`check_ranker` runs every ``check_ranker_*`` of this module; `check_loss` tests a loss against
exhaustive enumeration. Each raises AssertionError when a promise is broken.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import get_tags

from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.measures import BinaryMeasure
from sklearn_rankcal.metrics import kendall_tau_score
from sklearn_rankcal.models import BilinearPairs, PairModel, is_model
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.rankers import RankerMixin
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, Space, flat_targets

__all__ = [
    "check_loss",
    "check_ranker",
    "expected_failed_checks",
    "yield_ranker_checks",
]


_DENSE_ONLY = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """scikit-learn checks that a ranker fails by what ranks are, each with its reason.

    For `sklearn.utils.estimator_checks.parametrize_with_checks(...,
    expected_failed_checks=...)` and `check_estimator`.

    Parameters
    ----------
    estimator : estimator
        The ranker.

    Returns
    -------
    checks : dict
        Name of the check to the reason.
    """
    ranks_documents = isinstance(estimator, RankerMixin)
    if not ranks_documents:  # a label ranker or a classifier
        folds = getattr(estimator, "n_folds", None) is not None
        if not (folds or get_tags(estimator).non_deterministic):
            return {}
        return {
            "check_sample_weight_equivalence_on_dense_data": (
                "bootstrap samples and folds are drawn from rows, whatever their weight"
            )
        }
    reasons = {
        "check_methods_subset_invariance": (
            "predict returns positions among the rows it is given: a subset of the rows has "
            "other positions. decision_function is subset invariant."
        ),
    }
    space = get_loss(estimator.loss).space
    wrapped = not is_model(estimator.regressor) or isinstance(estimator.regressor, PairModel)
    if space == PAIRS and wrapped:
        reasons["check_sample_weight_equivalence_on_dense_data"] = (
            "a regressor on pairs sees a repeated row as a pair with itself too, and the "
            "default trees bin columns by rows, not by weight. PairwiseRidge passes."
        )
    elif space == PAIRS and isinstance(estimator.regressor, BilinearPairs):
        reasons["check_sample_weight_equivalence_on_dense_data"] = (
            "predictions agree up to rounding, but of cyclic preferences several rankings can be "
            "best, and rounding chooses. predict_preferences passes."
        )
    if space == SYMMETRIC_PAIRS or (space == SCORES and not _targets_are_per_row(estimator)):
        weight = (
            "the loss's targets depend on the whole query (its normaliser): repeating a row "
            "changes the targets of the others, weighting it does not. Weights are regression "
            "weights, not repetitions."
        )
        reasons["check_sample_weight_equivalence_on_dense_data"] = weight
    dense = reasons.get("check_sample_weight_equivalence_on_dense_data")
    # not by the tag: in scikit-learn 1.6 Ridge takes sparse tables without saying so
    if dense is not None and not isinstance(estimator.regressor, _DENSE_ONLY):
        reasons["check_sample_weight_equivalence_on_sparse_data"] = dense
    return reasons


def _targets_are_per_row(estimator: Any) -> bool:
    loss = get_loss(estimator.loss)
    y = np.array([0.0, 1.0, 1.0, 0.0])
    alone = loss.encode(y, Queries.single(4))
    repeated = loss.encode(np.append(y, 1.0), Queries.single(5))[:4]
    return bool(np.allclose(alone, repeated))


# -------------------------------------------------------------------- rankers


def check_ranker(ranker: Any) -> None:
    """Run every check of this module on a ranker.

    Parameters
    ----------
    ranker : estimator
        An unfitted ranker; it is cloned.

    Raises
    ------
    AssertionError
        The first broken promise.

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
    """Every check of a ranker, for use with `pytest.mark.parametrize`."""
    yield check_ranker_permutation_per_query
    yield check_ranker_row_order
    yield check_ranker_group_names
    yield check_ranker_queries_are_separate
    yield check_ranker_better_than_constant
    yield check_ranker_structured_labels
    yield check_ranker_predict_order
    yield check_ranker_clone_and_pickle
    yield check_ranker_leaves_input_alone
    yield check_ranker_sparse_equals_dense
    yield check_ranker_frame_equals_array
    yield check_ranker_small_queries
    yield check_ranker_ties


def _data(n_queries: int = 40, seed: int = 0) -> Any:
    """Queries of varied size with binary labels, which every loss takes."""
    data = make_ranking(
        n_queries, (2, 9), 6, n_informative=3, n_levels=2, noise=0.1, random_state=seed
    )
    data.X = data.X.round(3)
    return data


def _fit(ranker: Any, X: Any, y: Any, groups: Any) -> Any:
    ranker = clone(ranker)
    if "random_state" in ranker.get_params():
        ranker.set_params(random_state=0)
    return ranker.fit(X, y, groups=groups)


def check_ranker_permutation_per_query(ranker: Any) -> None:
    """`predict` gives each query the positions 1 .. r, as int64."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    assert ranks.shape == data.y.shape and ranks.dtype == np.int64
    for group in np.unique(data.groups):
        rows = data.groups == group
        assert sorted(ranks[rows]) == list(range(1, rows.sum() + 1))


def check_ranker_row_order(ranker: Any) -> None:
    """Permuting the rows of `predict` permutes its positions."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    ranks = fitted.predict(data.X, groups=data.groups)
    shuffle = np.random.RandomState(0).permutation(len(data.y))
    again = fitted.predict(data.X[shuffle], groups=data.groups[shuffle])
    np.testing.assert_array_equal(again, ranks[shuffle])


def check_ranker_group_names(ranker: Any) -> None:
    """Names of the groups do not matter, in `fit` or in `predict`."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    names = np.array([f"query {(7 * g) % 41}" for g in data.groups])
    other = _fit(ranker, data.X, data.y, names).predict(data.X, groups=names.tolist())
    np.testing.assert_array_equal(other, ranks)


def check_ranker_queries_are_separate(ranker: Any) -> None:
    """A query is ranked alike alone and among others."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    ranks = fitted.predict(data.X, groups=data.groups)
    for group in (0, 7, 39):
        rows = data.groups == group
        alone = fitted.predict(data.X[rows], groups=data.groups[rows])
        np.testing.assert_array_equal(alone, ranks[rows])


def check_ranker_better_than_constant(ranker: Any) -> None:
    """On new queries of an easy problem the ranking follows the labels."""
    train, test = _data(150), _data(150)
    half = train.groups < 75
    fitted = _fit(ranker, train.X[half], train.y[half], train.groups[half])
    ranks = fitted.predict(test.X[~half], groups=test.groups[~half])
    tau = kendall_tau_score(test.y[~half], ranks=ranks, groups=test.groups[~half])
    best = kendall_tau_score(
        test.y[~half],
        ranks=_within(test.latent[~half], test.groups[~half]),
        groups=test.groups[~half],
    )
    assert tau > 0.3 * best, f"Kendall's tau {tau:.3f}, attainable about {best:.3f}"


def _within(scores: NDArray[Any], groups: NDArray[Any]) -> NDArray[np.int64]:
    queries = Queries.from_groups(groups)
    return queries.rank(queries.sort(scores))


def check_ranker_structured_labels(ranker: Any) -> None:
    """Structured labels say what `groups` says, to `fit` and `score`."""
    data = _data()
    one = _fit(ranker, data.X, data.y, data.groups)
    labels = relevance_labels(data.y, data.groups)
    other = _fit(ranker, data.X, labels, None)
    ranks = one.predict(data.X, groups=data.groups)
    np.testing.assert_array_equal(other.predict(data.X, groups=data.groups), ranks)
    assert one.score(data.X, data.y, groups=data.groups) == other.score(data.X, labels)


def check_ranker_predict_order(ranker: Any) -> None:
    """`predict_order` lists the rows of each query by `predict`'s positions."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    ranks = fitted.predict(data.X, groups=data.groups)
    for k in (None, 1, 3):
        rows, offsets, queries = fitted.predict_order(data.X, groups=data.groups, k=k)
        for q, group in enumerate(queries):
            listed = rows[offsets[q] : offsets[q + 1]]
            assert (data.groups[listed] == group).all()
            size = (data.groups == group).sum()
            assert ranks[listed].tolist() == list(range(1, min(size, k or size) + 1))


def check_ranker_clone_and_pickle(ranker: Any) -> None:
    """A clone fits alike, a pickle predicts alike, and `predict` changes no state."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    before = pickle.dumps(fitted)
    ranks = fitted.predict(data.X, groups=data.groups)
    fitted.score(data.X, data.y, groups=data.groups)
    assert pickle.dumps(fitted) == before, "predict or score changed the ranker"
    again = pickle.loads(before).predict(data.X, groups=data.groups)
    np.testing.assert_array_equal(again, ranks)
    copy = _fit(fitted, data.X, data.y, data.groups)
    np.testing.assert_array_equal(copy.predict(data.X, groups=data.groups), ranks)


def check_ranker_leaves_input_alone(ranker: Any) -> None:
    """X, y, groups and weights are not written to."""
    data = _data()
    arrays = [data.X.copy(), data.y.copy(), data.groups.copy(), np.ones(len(data.y))]
    for array in arrays:
        array.flags.writeable = False
    fitted = _fit(ranker, *arrays[:3])
    fitted.predict(arrays[0], groups=arrays[2])
    fitted.score(*arrays)


def check_ranker_sparse_equals_dense(ranker: Any) -> None:
    """A sparse X is ranked as the same dense X, where the regressor takes sparse matrices."""
    if not get_tags(ranker).input_tags.sparse:
        return
    data = _data()
    ranker = clone(ranker)
    if "context" in ranker.get_params():
        ranker.set_params(context=None)  # context columns are for dense tables
    X = np.where(np.abs(data.X) > 0.7, data.X, 0.0)
    dense = _fit(ranker, X, data.y, data.groups).predict(X, groups=data.groups)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        S = kind(X)
        other = _fit(ranker, S, data.y, data.groups).predict(S, groups=data.groups)
        np.testing.assert_array_equal(other, dense)


def check_ranker_frame_equals_array(ranker: Any) -> None:
    """pandas and polars frames (where installed) are ranked as the same array."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    names = [f"column {j}" for j in range(data.X.shape[1])]
    for make in _frame_makers():
        frame = make(data.X, names)
        fitted = _fit(ranker, frame, data.y, data.groups)
        assert fitted.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(fitted.predict(frame, groups=data.groups), ranks)


def _frame_makers() -> Iterator[Callable[[NDArray[Any], list[str]], Any]]:
    try:
        import pandas as pd

        yield lambda X, names: pd.DataFrame(X, columns=names)
    except ImportError:
        pass
    try:
        import polars as pl

        yield lambda X, names: pl.DataFrame(X, schema=names)
    except ImportError:
        pass


def check_ranker_small_queries(ranker: Any) -> None:
    """Queries of one document, and of equal documents, are legal in `fit` and `predict`."""
    data = _data()
    X = np.vstack([data.X, data.X[:1], np.repeat(data.X[1:2], 3, axis=0)])
    y = np.concatenate([data.y, [1], [0, 1, 0]])
    groups = np.concatenate([data.groups, [100], [101] * 3])
    ranks = _fit(ranker, X, y, groups).predict(X, groups=groups)
    assert ranks[-4] == 1 and sorted(ranks[-3:]) == [1, 2, 3]


def check_ranker_ties(ranker: Any) -> None:
    """Documents that the model cannot tell apart get the same order in every order of rows."""
    data = _data()
    X = data.X.copy()
    X[:, 1:] = 0.0
    X[:, 0] = (X[:, 0] > 0) + 1e-9 * np.arange(len(X))
    fitted = _fit(ranker, X, data.y, data.groups)
    ranks = fitted.predict(X, groups=data.groups)
    for seed in range(3):
        shuffle = np.random.RandomState(seed).permutation(len(X))
        again = fitted.predict(X[shuffle], groups=data.groups[shuffle])
        np.testing.assert_array_equal(again, ranks[shuffle])


# -------------------------------------------------------------------- losses


def check_loss(
    loss: Loss | str,
    *,
    levels: tuple[float, ...] | None = None,
    n_documents: tuple[int, ...] = (1, 2, 3, 4),
    n_distributions: int = 200,
    random_state: int = 0,
) -> None:
    """Test a loss against exhaustive enumeration.

    Checked are: shapes and finiteness of the targets; `defined` agreeing with `measure`; the same
    values in any row layout and with other queries present; `measure` of tied scores being the
    mean over orders; and calibration itself: on random distributions of the labels, ranking by the
    expected targets (a sort, or the exact decoder of the loss's space) attains the largest expected
    goal among all r! rankings, for losses that claim every distribution, and the regret bound of
    `regret_constant` on random scores.

    Parameters
    ----------
    loss : Loss or str
        A loss, yours or a registered one.
    levels : tuple of float, default=None
        Labels to draw from; None is (0, 1) for binary losses and (0, 1, 2, 3) for others.
    n_documents : tuple of int, default=(1, 2, 3, 4)
        Query sizes to enumerate.
    n_distributions : int, default=200
        Random distributions per size.
    random_state : int, default=0
        Seed.

    Raises
    ------
    AssertionError
        A promise is broken.

    Examples
    --------
    >>> from sklearn_rankcal.estimator_checks import check_loss
    >>> check_loss("ndcg@2", n_distributions=20)
    """
    loss = get_loss(loss)
    assert loss.calibrated_over, "calibrated_over must say where the loss is calibrated"
    if levels is None:
        binary = isinstance(loss.measure, BinaryMeasure) and loss.threshold is None
        levels = (0.0, 1.0) if binary else (0.0, 1.0, 2.0, 3.0)
    random = np.random.RandomState(random_state)
    top = np.array(levels)
    loss = loss.resolve(top)
    get_decoder("auto", loss.space)
    clone(loss)
    _check_layouts(loss, levels, random)
    for r in n_documents:
        _check_ties(loss, levels, r, random)
        for _ in range(n_distributions):
            _check_calibration(loss, levels, r, random)


def _ranks(order: tuple[int, ...]) -> NDArray[np.int64]:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[list(order)] = np.arange(1, len(order) + 1)
    return ranks


def _measure(loss: Loss, y: NDArray[np.float64], order: tuple[int, ...]) -> float:
    return float(loss.metric(y, _ranks(order), Queries.single(len(y)))[0])


def _goal(loss: Loss, y: NDArray[np.float64], order: tuple[int, ...]) -> float:
    ranking = Ranking.from_ranks(_ranks(order), Queries.single(len(y)))
    return float(loss.calibrated_measure(ranking, y)[0])


def _targets(loss: Loss, y: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """Targets as a vector: of the rows, or of the pairs of every query."""
    return flat_targets(loss.encode(y, queries))


def _check_layouts(loss: Loss, levels: tuple[float, ...], random: Any) -> None:
    """Targets and measures of a query do not depend on its neighbours or on the row layout."""
    groups = np.repeat(np.arange(12), random.randint(1, 6, size=12))
    y = random.choice(levels, size=len(groups))
    shuffle = random.permutation(len(y))
    queries = Queries.from_groups(groups[shuffle])
    targets = _targets(loss, y[shuffle], queries)
    if not loss.space.is_pairwise:
        assert targets.shape == y.shape, "encode returns one target per row"
        targets = targets[np.argsort(shuffle)]
    assert np.isfinite(targets).all(), "targets must be finite, 0 where the loss is undefined"
    scores = random.randint(0, 3, size=len(y)).astype(float)
    values = loss.measure.per_query(Ranking.from_scores(scores[shuffle], queries), y[shuffle])
    defined = loss.defined(y[shuffle], queries)
    assert values.shape == defined.shape == (queries.n_queries,)
    np.testing.assert_array_equal(np.isnan(values), ~defined, "measure is NaN where not defined")
    for q, group in enumerate(queries.ids):
        rows = np.flatnonzero(groups == group)
        alone = Queries.single(len(rows))
        if not loss.space.is_pairwise:
            here, label = targets[rows], y[rows]
        else:  # in the order in which the shuffled rows of the query come
            label = y[shuffle][queries.codes == q]
            here = targets[_entries(loss.space, queries, q)]
        np.testing.assert_allclose(here, _targets(loss, label, alone), atol=1e-12)
        value = loss.measure.per_query(Ranking.from_scores(scores[rows], alone), y[rows])
        np.testing.assert_allclose(values[q], value[0], atol=1e-12)


def _entries(space: Space, queries: Queries, q: int) -> slice:
    """Where a query's pairs are in the vector of all."""
    counts = space.n_entries(queries.sizes)
    stops = np.cumsum(counts)
    return slice(int(stops[q] - counts[q]), int(stops[q]))


def _check_ties(loss: Loss, levels: tuple[float, ...], r: int, random: Any) -> None:
    """The measure of tied scores is the mean over the orders that the ties allow."""
    for _ in range(20):
        y = random.choice(levels, size=r)
        scores = random.randint(0, 3, size=r).astype(float)
        orders = [
            order
            for order in itertools.permutations(range(r))
            if (np.diff(scores[list(order)]) <= 0).all()
        ]
        mean = np.mean([_measure(loss, y, order) for order in orders])
        value = loss.measure.per_query(Ranking.from_scores(scores, Queries.single(r)), y)[0]
        np.testing.assert_allclose(value, mean, atol=1e-10, err_msg=f"y={y}, scores={scores}")


def _check_calibration(loss: Loss, levels: tuple[float, ...], r: int, random: Any) -> None:
    """Decoding the expected targets is optimal, and the regret bound holds for other scores."""
    n_labels = random.randint(1, 5)
    labels = random.choice(levels, size=(n_labels, r))
    labels = labels[[bool(loss.defined(y, Queries.single(r))[0]) for y in labels]]
    if not len(labels):
        return
    chance = random.dirichlet(np.full(len(labels), 0.7))
    if not without_shrinkage(loss).calibrated_everywhere:
        labels, chance = labels[:1], np.ones(1)  # a point mass satisfies every noise condition
    orders = list(itertools.permutations(range(r)))
    risk = np.array(
        [
            sum(p * _goal(loss, y, order) for p, y in zip(chance, labels, strict=True))
            for order in orders
        ]
    )
    expected = sum(
        p * _targets(loss, y, Queries.single(r)) for p, y in zip(chance, labels, strict=True)
    )
    if loss.space.is_pairwise:
        exact = get_decoder("exact", loss.space)
        order = tuple(np.argsort(exact.decode(expected, Queries.single(r)).ranks).tolist())
        value = risk[orders.index(order)]
        assert value >= risk.max() - 1e-9, (
            f"{loss!r} is not calibrated: labels {labels.tolist()} with probabilities "
            f"{chance.tolist()}: decoding gives {value:.6f}, the best ranking {risk.max():.6f}"
        )
        return
    sorts = _sorted_values(risk, orders, expected)
    assert sorts.min() >= risk.max() - 1e-9, (
        f"{loss!r} is not calibrated: labels {labels.tolist()} with probabilities "
        f"{chance.tolist()}: sorting gives {sorts.min():.6f}, the best ranking {risk.max():.6f}"
    )
    constant = loss.regret_constant(r)
    if constant is None:
        return
    scores = expected + random.choice([0.01, 0.3, 2.0]) * random.normal(size=r)
    regret = risk.max() - _sorted_values(risk, orders, scores).min()
    bound = constant * np.sqrt(np.sum((scores - expected) ** 2))
    assert regret <= bound + 1e-9, f"regret {regret:.6f} exceeds the bound {bound:.6f}"


def _sorted_values(
    risk: NDArray[np.float64], orders: list[tuple[int, ...]], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The expected measure of every order that sorts the scores (rounding aside)."""
    sorts = [bool((np.diff(scores[list(order)]) <= 1e-12).all()) for order in orders]
    return risk[sorts]
