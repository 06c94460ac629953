"""Checks for rankers, and the checks of scikit-learn that rankers cannot pass."""

from __future__ import annotations

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
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.metrics import kendall_tau_score
from sklearn_rankcal.models import BilinearPairs, PairModel, is_model
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers import RankerMixin
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS

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
    if space == PAIRS and (not is_model(regressor) or isinstance(regressor, PairModel)):
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
    """Make queries of different sizes, with binary labels for every loss."""
    data = make_ranking(
        n_queries, (2, 9), 6, n_informative=3, n_levels=2, noise=0.1, random_state=seed
    )
    data.X = data.X.round(3)
    return data


def _fit(ranker: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit a clone of the ranker with a fixed random state."""
    ranker = clone(ranker)
    if "random_state" in ranker.get_params():
        ranker.set_params(random_state=0)
    return ranker.fit(X, y, groups=groups)


def check_ranker_permutation_per_query(ranker: Any) -> None:
    """Check that `predict` returns the positions 1 to r for each query of r documents, as int64."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    assert ranks.shape == data.y.shape and ranks.dtype == np.int64
    for group in np.unique(data.groups):
        rows = data.groups == group
        assert sorted(ranks[rows]) == list(range(1, rows.sum() + 1))


def check_ranker_row_order(ranker: Any) -> None:
    """Check that permuting the rows of `predict` permutes its positions."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    ranks = fitted.predict(data.X, groups=data.groups)
    shuffle = np.random.RandomState(0).permutation(len(data.y))
    again = fitted.predict(data.X[shuffle], groups=data.groups[shuffle])
    np.testing.assert_array_equal(again, ranks[shuffle])


def check_ranker_group_names(ranker: Any) -> None:
    """Check that the values of the query ids affect neither `fit` nor `predict`."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    names = np.array([f"query {(7 * g) % 41}" for g in data.groups])
    other = _fit(ranker, data.X, data.y, names).predict(data.X, groups=names.tolist())
    np.testing.assert_array_equal(other, ranks)


def check_ranker_queries_are_separate(ranker: Any) -> None:
    """Check that `predict` ranks each query independently of all other queries."""
    data = _data()
    fitted = _fit(ranker, data.X, data.y, data.groups)
    ranks = fitted.predict(data.X, groups=data.groups)
    for group in (0, 7, 39):
        rows = data.groups == group
        alone = fitted.predict(data.X[rows], groups=data.groups[rows])
        np.testing.assert_array_equal(alone, ranks[rows])


def check_ranker_better_than_constant(ranker: Any) -> None:
    """Check that Kendall's tau on new, easy queries is above 0.3 times the attainable value."""
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
    """Return the position of each row after sorting the scores of its query."""
    queries = Queries.from_groups(groups)
    return queries.rank(queries.sort(scores))


def check_ranker_structured_labels(ranker: Any) -> None:
    """Check that labels that contain the queries can replace `groups` in `fit` and `score`."""
    data = _data()
    one = _fit(ranker, data.X, data.y, data.groups)
    labels = relevance_labels(data.y, data.groups)
    other = _fit(ranker, data.X, labels, None)
    ranks = one.predict(data.X, groups=data.groups)
    np.testing.assert_array_equal(other.predict(data.X, groups=data.groups), ranks)
    assert one.score(data.X, data.y, groups=data.groups) == other.score(data.X, labels)


def check_ranker_predict_order(ranker: Any) -> None:
    """Check that `predict_order` lists the rows of each query in the order of `predict`."""
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
    """Check that clones and pickles give the same predictions, and `predict` changes no state."""
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
    """Check that no method changes X, y, groups or weights."""
    data = _data()
    arrays = [data.X.copy(), data.y.copy(), data.groups.copy(), np.ones(len(data.y))]
    for array in arrays:
        array.flags.writeable = False
    fitted = _fit(ranker, *arrays[:3])
    fitted.predict(arrays[0], groups=arrays[2])
    fitted.score(*arrays)


def check_ranker_sparse_equals_dense(ranker: Any) -> None:
    """Check that sparse and dense X give the same ranking, if the ranker accepts sparse X."""
    if not get_tags(ranker).input_tags.sparse:
        return
    data = _data()
    ranker = clone(ranker)
    if "context" in ranker.get_params():
        ranker.set_params(context=None)  # context columns need dense input
    X = np.where(np.abs(data.X) > 0.7, data.X, 0.0)
    dense = _fit(ranker, X, data.y, data.groups).predict(X, groups=data.groups)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        S = kind(X)
        other = _fit(ranker, S, data.y, data.groups).predict(S, groups=data.groups)
        np.testing.assert_array_equal(other, dense)


def check_ranker_frame_equals_array(ranker: Any) -> None:
    """Check that data frames of pandas and polars, if installed, give the ranking of an array."""
    data = _data()
    ranks = _fit(ranker, data.X, data.y, data.groups).predict(data.X, groups=data.groups)
    names = [f"column {j}" for j in range(data.X.shape[1])]
    for make in _frame_makers():
        frame = make(data.X, names)
        fitted = _fit(ranker, frame, data.y, data.groups)
        assert fitted.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(fitted.predict(frame, groups=data.groups), ranks)


def _frame_makers() -> Iterator[Callable[[NDArray[Any], list[str]], Any]]:
    """Yield a function (array, names) -> data frame for each installed library."""
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
    """Check that `fit` and `predict` accept queries with one document or equal documents."""
    data = _data()
    X = np.vstack([data.X, data.X[:1], np.repeat(data.X[1:2], 3, axis=0)])
    y = np.concatenate([data.y, [1], [0, 1, 0]])
    groups = np.concatenate([data.groups, [100], [101] * 3])
    ranks = _fit(ranker, X, y, groups).predict(X, groups=groups)
    assert ranks[-4] == 1 and sorted(ranks[-3:]) == [1, 2, 3]


def check_ranker_ties(ranker: Any) -> None:
    """Check that the order of tied documents does not depend on the order of the rows."""
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
