"""Base classes of models, and the data that models are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.labels._labels import take_labels
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries, check_weight
from sklearn_rankcal.targets import SCORES, Space
from sklearn_rankcal.utils import _estimators, _features, _messages
from sklearn_rankcal.utils._numbers import Floats, Ints, exceeds

_N_REPORTS = 20  # number of progress lines, about, without early stopping


class Page(NamedTuple):
    """All documents that were shown: their table and queries, and which rows were judged."""

    X: Any
    queries: Queries
    rows: Ints


@dataclass(frozen=True, eq=False)
class Training:
    """Checked documents with the targets of a model.

    Parameters
    ----------
    X : {ndarray, sparse matrix, data frame} of shape (n_documents, n_features)
        The table, without a column of query ids.
    targets : ndarray of shape (n_documents,) or PairTargets
        Targets of the loss: one per document, or one per pair of documents.
    queries : Queries
        The rows of each query.
    weight : ndarray of shape (n_documents,), default=None
        Positive weight of each row. None means equal weights.
    labels : ndarray of shape (n_documents,) or Preferences, default=None
        The labels, for models that learn several targets.
    graded_targets : bool, default=False
        Whether each target depends only on the label of its document (`Loss.graded_targets`). A
        classifier can then learn the distinct targets as classes.
    validation : Validation, default=None
        Held-out queries, for models that stop early.
    page : Page, default=None
        The documents of the queries with those that nobody judged, for context columns. None means
        that all were judged.
    clusters : ndarray of shape (n_documents,), default=None
        The number of the cluster of each row, for standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_rankcal.models import DocumentModel, Training
    >>> from sklearn_rankcal.queries import Queries
    >>> X, targets = np.array([[0.0], [1.0], [5.0], [3.0]]), np.array([0.0, 2.0, 3.0, -1.0])
    >>> queries = Queries.from_groups(["a", "a", "b", "b"])
    >>> model = DocumentModel(LinearRegression()).fit(Training(X, targets, queries))
    >>> model.regressor_.coef_.round(2).tolist()
    [0.34]
    """

    X: Any
    targets: Any
    queries: Queries
    weight: Floats | None = None
    labels: Any = None
    graded_targets: bool = False
    validation: Validation | None = None
    page: Page | None = None
    clusters: Ints | None = None

    def learning(self, loss: Loss) -> Training:
        """Return the same data with the targets of a loss."""
        targets = loss.training_targets(self.labels, self.queries)
        return replace(self, targets=targets, graded_targets=loss.graded_targets)

    def judged(self) -> Training:
        """Return the rows whose labels are not NaN. The `page` keeps the others."""
        if not isinstance(self.labels, np.ndarray) or not np.isnan(self.labels).any():
            return self
        known, missing = self, np.isnan(self.labels)
        if self.weight is not None:  # weights of rows without a label do not count
            check_weight(self.weight[~missing], int((~missing).sum()))
            known = replace(self, weight=np.where(missing, 1.0, self.weight)).without_zero_weights()
        rows = np.flatnonzero(~np.isnan(known.labels))
        page = Page(known.X, known.queries, np.arange(known.queries.n_rows))
        return replace(known, page=page).take(rows, known.queries.take(rows))

    def without_zero_weights(self) -> Training:
        """Return the rows of positive weight, and their queries."""
        if self.weight is None or (self.weight > 0).all():
            return self
        rows = np.flatnonzero(self.weight)
        return self.take(rows, self.queries.take(rows))

    def without_undefined_queries(self, loss: Loss) -> Training:
        """Return the queries on which a loss is defined. Raise ValueError if there are none."""
        defined = loss.defined(self.labels, self.queries)
        if defined.all():
            return self
        if not defined.any():
            raise undefined_everywhere(loss, len(defined), self.queries.n_rows)
        return self.take_queries(defined)

    def weighted_by(self, factor: Floats) -> Training:
        """Return the same data with the weights multiplied by a factor of each row."""
        return replace(self, weight=factor if self.weight is None else self.weight * factor)

    def scores_of(self, model: Model) -> Floats:
        """Return the scores that a fitted model predicts for the rows, on their `page`."""
        if self.page is None:
            return model.predict(self.X, self.queries)
        return model.predict(self.page.X, self.page.queries)[self.page.rows]

    def take_queries(self, keep: NDArray[np.bool_]) -> Training:
        """Return the queries that `keep` (n_queries,) selects."""
        return self.take(*self.queries.select(keep))

    def take(self, rows: Any, queries: Queries) -> Training:
        """Return some rows, which are whole `queries`. Targets of pairs are dropped."""
        page = self.page
        if page is not None:
            own, shown = page.rows[rows], np.zeros(page.queries.n_queries, dtype=bool)
            shown[page.queries.codes[own]] = True
            kept, part = page.queries.select(shown)
            page = Page(_features.take_rows(page.X, kept), part, np.searchsorted(kept, own))
        return replace(
            self,
            page=page,
            X=_features.take_rows(self.X, rows),
            targets=self.targets[rows] if isinstance(self.targets, np.ndarray) else None,
            queries=queries,
            weight=None if self.weight is None else self.weight[rows],
            labels=None if self.labels is None else take_labels(self.labels, rows, queries),
            clusters=None if self.clusters is None else self.clusters[rows],
        )


def undefined_everywhere(loss: Loss, n_queries: int, n_rows: int) -> ValueError:
    """Return the error for a loss that is undefined on all queries."""
    return ValueError(
        f"{type(loss).__name__} is undefined on {_messages.all_of(n_queries, 'query')} "
        f"(n_samples={n_rows}), so there is nothing to learn from. For most losses, a query needs "
        "a document of positive relevance. For 'auc', 'spearman' and 'pd', two different labels."
    )


@dataclass(eq=False)
class Validation:
    """Validation queries, and the quality of their rankings after each iteration of a regressor.

    ``evaluate(scores)`` returns the measure of the rankings by these scores. ``steady(scores)``
    returns a value that varies less over few queries: minus the error of the targets, or minus the
    surrogate. Larger is better. Training stops after `n_iter_no_change` iterations without a new
    best value of either, and `n_iter` is the number of iterations before these. Among equal values,
    the first is the best. `scores` has the result of `evaluate` after each iteration.
    ``show(line)`` receives progress lines.
    """

    held_out: Training
    evaluate: Callable[[Floats], float]
    n_iter_no_change: int
    show: Callable[[str], None] | None = None
    steady: Callable[[Floats], float] | None = None
    scores: list[float] = field(default_factory=list, init=False)
    n_iter: int = field(default=0, init=False)
    _best: list[float] = field(default_factory=list, init=False)  # of `evaluate` and of `steady`
    _n_reported: int = field(default=0, init=False)

    def record(self, scores: Floats) -> None:
        """Evaluate the predictions after one more iteration.

        The measure of few queries is noisy, and by chance its largest value can come early.
        Therefore, training stops only if neither of the two values improves.
        """
        found = [self.evaluate(scores)]
        if self.steady is not None:
            found.append(self.steady(scores))
        self.scores.append(found[0])
        best = self._best or [-np.inf] * len(found)
        pairs = list(zip(found, best, strict=True))
        better = [new > old and bool(exceeds(new, old, abs(new))) for new, old in pairs]
        self._best = np.where(better, found, best).tolist()
        if any(better) or self.n_iter == 0:
            self.n_iter = len(self.scores)

    @property
    def stops(self) -> bool:
        """Whether training should stop."""
        return len(self.scores) - self.n_iter >= self.n_iter_no_change

    def report(self, n_max: int, seconds: float) -> None:
        """Show a progress line if enough iterations, of at most `n_max`, passed since the last."""
        n_done = len(self.scores)
        if self.show is None or n_done == 0 or n_done - self._n_reported < n_max / _N_REPORTS:
            return
        self._n_reported = n_done
        remaining = seconds / n_done * (n_max - n_done)
        self.show(
            f"iteration {n_done} of at most {n_max}: {self.scores[-1]:.4g} on the validation "
            f"queries, {self.scores[self.n_iter - 1]:.4g} after {self.n_iter}, the last new best; "
            f"at most {remaining:.1f} s remain ({seconds:.2f} s)"
        )


def squared_error(held_out: Training) -> Callable[[Floats], float]:
    """Return a function of scores: minus their mean squared error, centred in each query."""
    queries = held_out.queries
    wanted = queries.center(held_out.targets)

    def evaluate(scores: Floats) -> float:
        return -float(np.average((queries.center(scores) - wanted) ** 2, weights=held_out.weight))

    return evaluate


class Model(BaseEstimator):
    """Base class of models, which `CalibratedRanker` accepts as `regressor`.

    A subclass defines `fit` and `predict`, and overrides the attributes below that differ. As for
    all estimators of scikit-learn, the arguments of ``__init__`` are its parameters.

    Attributes
    ----------
    space : Space, default=targets.SCORES
        Whether targets and predictions are one number per document or one number per pair.
    needs_queries : bool, default=False
        Whether the score of a document depends on the other documents of its query.
    needs_dense : bool, default=False
        Whether X must be a dense table of numbers. The ranker converts sparse X.
    takes_categories : bool, default=False
        Whether a dense table may be a data frame with category columns.
    stops_early : bool, default=False
        Whether `fit` chooses a number of iterations by ``training.validation``.
    learns_targets : bool, default=True
        Whether predictions estimate the expected targets, given enough data.
    has_table : bool, default=False
        Whether `fit` fits one regressor, ``regressor_``, to a table with one row per document.

    Examples
    --------
    A model with a slope for the first column, by least squares within queries:

    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.models import Model
    >>> class FirstColumn(Model):
    ...     def fit(self, training):
    ...         inside = training.queries.center(training.X[:, 0])
    ...         self.slope_ = inside @ training.targets / (inside @ inside)
    ...         return self
    ...
    ...     def predict(self, X, queries):
    ...         return self.slope_ * X[:, 0]
    >>> X, y, groups = [[1.0], [2.0], [1.0], [2.0]], [0, 2, 1, 2], [0, 0, 1, 1]
    >>> CalibratedRanker(FirstColumn()).fit(X, y, groups=groups).predict(X, groups).tolist()
    [2, 1, 2, 1]
    """

    space: Space = SCORES
    needs_queries: bool = False
    needs_dense: bool = False
    takes_categories: bool = False
    stops_early: bool = False
    learns_targets: bool = True
    has_table: bool = False

    __reduce__ = _estimators.reduce_with_versions
    __sklearn_clone__ = _estimators.clone_with_catboost

    def fit(self, training: Training) -> Self:
        """Fit the model.

        Parameters
        ----------
        training : Training
            Documents, targets and queries.

        Returns
        -------
        self : Model
            The fitted model.
        """
        raise self._lacks("fit(training)")

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, or the target of each pair.

        Parameters
        ----------
        X : {ndarray, sparse matrix, data frame} of shape (n_documents, n_features)
            The table, without query ids.
        queries : Queries
            The rows of each query.

        Returns
        -------
        predictions : ndarray of shape (n_documents,) or (n_pairs,)
            Scores in the order of the rows, or pairs in the order of `PairTargets.flat`.
        """
        raise self._lacks("predict(X, queries)")

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} must define {method}. See the documentation of models.Model."
        )

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Predict scores whose differences are the predictions of a model of pairs.

        Parameters
        ----------
        X, queries
            As in `predict`.

        Returns
        -------
        scores : ndarray of shape (n_documents,) or None
            None if the predictions are not differences of scores.
        """
        return None

    def learners(self) -> Iterator[Any]:
        """Iterate over the model and the estimators inside it that learn targets.

        Yields
        ------
        estimator : estimator
            The model, or an estimator among its parameters.
        """
        yield self
        for value in self.get_params(deep=True).values():
            if hasattr(value, "get_params") and not isinstance(value, type):
                yield value

    def own_importances(self) -> Floats:
        """Return the importances of the fitted regressor per column of X.

        Returns
        -------
        importances : ndarray of shape (n_features,)
            Raises AttributeError if there are none.
        """
        raise AttributeError(f"{type(self).__name__} has no importances.")

    def own_coefficients(self) -> Floats:
        """Return the coefficients per column of X: average slopes within a query.

        Returns
        -------
        coefficients : ndarray of shape (n_features,)
            Raises AttributeError if there are none.
        """
        raise AttributeError(f"{type(self).__name__} has no coef_.")

    def why_no_table(self) -> str:
        """Return the end of an error message: why the model has no table (see `has_table`).

        Returns
        -------
        text : str
            A predicate, such as ``"adds the scores of a forest"``.
        """
        return f"has fitted {type(self).__name__}, which does not provide its table"


class PairwiseModel(Model):
    """Base class of models of pairs. They need a dense table of finite numbers."""

    needs_dense = True

    def why_no_table(self) -> str:
        """Return the end of an error message: the regressor is fitted to pairs."""
        return (
            f"fits a model of pairs of documents, {type(self).__name__}. Fit a ranker with "
            "regressor='boosting' and a loss on scores, such as 'pd_by_scores', 'map_by_scores' "
            "or 'ndcg'"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # the ranker converts sparse tables
        return tags
