"""Methods of a fitted ranker that report on its rankings.

The features of some queries come in. The predictions for their pairs of documents, the report of
the decoder on each query, or a diagnosis with bounds of the regret come out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.consistency._diagnosis import (
    Diagnosis,
    rounding_slack,
    scores_suffice,
    squared_errors,
)
from sklearn_rankcal.decoders import GreedyDAG
from sklearn_rankcal.labels._labels import read_any_labels, take_labels
from sklearn_rankcal.labels._relevance import agreed_queries, is_structured
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._query_input import QueryInputMixin
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._numbers import read_array
from sklearn_rankcal.utils._row_hashes import hash_rows

_PAIRS_AT_A_TIME = 1 << 21  # matrix entries predicted and decoded at a time; 16 MB in each array


def predicts_pairs(ranker: Any) -> bool:
    """Return True if the loss of a ranker is on pairs, or raise an error, for `available_if`."""
    if get_loss(ranker.loss).space.is_pairwise:
        return True
    instead = (
        "decision_function returns the scores"
        if hasattr(ranker, "decision_function")
        else "predict sorts them"
    )
    raise AttributeError(
        f"loss={ranker.loss!r} predicts one score for each document or label, and no number for "
        f"each pair of them; {instead}. Losses on pairs are 'pd' and 'map'."
    )


def predicts_scores(ranker: Any) -> bool:
    """Return True if the loss of a ranker is on scores, or raise an error, for `available_if`."""
    space = get_loss(ranker.loss).space
    if not space.is_pairwise:
        return True
    decode, by_scores = (
        ("decode_average_precision", "'map_by_scores'")
        if space.symmetric
        else ("decode_preferences", "'pd_by_scores'")
    )
    raise AttributeError(
        f"loss={ranker.loss!r} has no scores: one number for each document is not enough to find "
        "its best ranking, so the ranker predicts a number for each pair of documents. "
        "predict and predict_order return the ranking, predict_preferences returns the numbers "
        f"of the pairs, and decoders.{decode} ranks by them. If scores are needed, choose a loss "
        f"on scores, such as {by_scores} or 'ndcg'."
    )


class ReportingRanker(QueryInputMixin):
    """A mix-in class with the methods `predict_preferences`, `decode_report` and `diagnose`."""

    loss: str | Loss
    n_jobs: int | None
    verbose: int
    loss_: Loss
    model_: Any
    decoder_: Any
    #: Whether the predictions of the model estimate the expected targets of the loss.
    _learns_targets: bool = True

    def _predicted_pairs(
        self, X: Any, queries: Queries
    ) -> Iterator[tuple[NDArray[np.int64], Queries, NDArray[np.float64]]]:
        """Yield the rows of some queries at a time, their queries and their predictions.

        The rows of a query are sorted by a hash of their content. Therefore neither the predictions
        nor the order of tied documents depends on the order of the rows of X.
        """
        queries.check_pairs_fit()
        started, done = time.perf_counter(), 0
        for listed, part in queries.chunks(_PAIRS_AT_A_TIME, squared=True):
            rows = np.arange(queries.n_rows)[listed] if isinstance(listed, slice) else listed
            rows = rows[np.lexsort((hash_rows(X, rows), part.codes))]
            yield rows, part, self.model_.predict(take_rows(X, rows), part)
            done += part.n_queries  # the caller has dealt with these before it asks for more
            self._print_progress(
                f"{done} of {queries.n_queries} queries predicted and decoded", started
            )

    def _print_progress(self, what: str, started: float | None = None) -> None:
        """Print a line if `verbose` is not 0, with the seconds since `started` if it is given."""
        if self.verbose:
            took = "" if started is None else f" ({time.perf_counter() - started:.2f} s)"
            print(f"[{type(self).__name__}] {what}{took}", flush=True)

    @available_if(predicts_pairs)
    @checks_keywords
    def predict_preferences(
        self, X: Any, groups: ArrayLike | None = None
    ) -> list[NDArray[np.float64]]:
        """Return the predictions for every pair of documents, which the decoder receives.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, as in `predict`.

        Returns
        -------
        matrices : list of ndarray of shape (r, r)
            One matrix per query, in order of first appearance. Its rows and columns are the
            documents of the query, in the order of the rows of X.

        Notes
        -----
        For ``loss="pd"`` the matrices are antisymmetric. Entry [i, j] is an estimate of
        E[y_ij - y_ji], where y_ij is the weight with which document i is preferred to document j.
        If it is positive, document i is expected to be preferred to document j. The function
        `decode_preferences` takes such matrices.

        For ``loss="map"`` the matrices are symmetric. Entry [i, j] is an estimate of
        E[y_i y_j / sum(y)], where y_i is 1 if document i is relevant and 0 otherwise. A constant
        may have been added to the diagonal entries, which does not change the decoded ranking. The
        function `decode_average_precision` takes such matrices.
        """
        X, queries = self._read_queries(X, groups)
        matrices: list[NDArray[np.float64]] = []
        place = queries.scatter(queries.place)
        space = self.loss_.space
        for rows, part, u in self._predicted_pairs(X, queries):
            starts = np.append(0, np.cumsum(space.n_entries(part.sizes)))
            # a loop over queries: each has a matrix of its own
            for q, r in enumerate(part.sizes):
                places = place[rows[part.offsets[q] : part.offsets[q + 1]]]
                matrix = np.empty((r, r))
                entries = u[None, starts[q] : starts[q + 1]]
                matrix[np.ix_(places, places)] = space.matrices(entries, r)[0]
                matrices.append(matrix)
        return matrices

    @available_if(predicts_pairs)
    @checks_keywords
    def decode_report(self, X: Any, groups: ArrayLike | None = None) -> dict[str, NDArray[Any]]:
        """Report how far the ranking of each query can be from the best one for its predictions.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, as in `predict`.

        Returns
        -------
        report : dict of ndarray of shape (n_queries,)
            ``pandas.DataFrame(report)`` is a table with one row per query. The columns are:

            - ``query``: the id of the query.
            - ``n_documents``: the number of its documents.
            - ``objective``: the value that the decoder minimises, for its ranking. For ``"pd"`` it
              is the weight of the predicted preferences that the ranking contradicts, and for
              ``"map"`` it is 1 minus the predicted average precision.
            - ``lower_bound``: no ranking has a smaller objective.
            - ``gap``: ``objective`` minus ``lower_bound``.
            - ``optimal``: whether the ranking is proved to have the smallest objective.
            - ``method``: the method of the decoder that found the ranking.
            - ``cyclic`` (only for ``"pd"``): whether the predicted preferences have a cycle.
              Preferences of at most 1e-9 of the largest one of the query are ignored.
        """
        X, queries = self._read_queries(X, groups)
        return self._report(X, queries, lambda rows, part, u: {})

    def _report(
        self,
        X: Any,
        queries: Queries,
        more: Callable[[NDArray[np.int64], Queries, NDArray[np.float64]], dict[str, NDArray[Any]]],
    ) -> dict[str, NDArray[Any]]:
        """Return the report of the decoder on each query, with the columns that `more` adds."""
        parts: dict[str, list[NDArray[Any]]] = {}
        for rows, part, u in self._predicted_pairs(X, queries):
            result = self.decoder_.decode(u, part, n_jobs=self.n_jobs)
            columns = {
                "objective": result.objective,
                "lower_bound": result.lower_bound,
                "gap": result.gap,
                "optimal": result.optimal,
                "method": result.method,
            }
            if self.loss_.space == PAIRS:
                threshold = result.threshold
                if threshold is None:
                    threshold = GreedyDAG(order="topological").decode(u, part).threshold
                columns["cyclic"] = threshold > rounding_slack(u, part, PAIRS)
            for name, column in (columns | more(rows, part, u)).items():
                parts.setdefault(name, []).append(column)
        report = {"query": queries.ids, "n_documents": queries.sizes}
        return report | {name: np.concatenate(columns) for name, columns in parts.items()}

    @checks_keywords
    def diagnose(self, X: Any, groups: ArrayLike | None = None, y: Any = None) -> Diagnosis:
        """Report whether the rankings are optimal, whether scores suffice, and regret bounds.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, as in `predict`.
        y : array-like of shape (n_documents,) or (n_documents, m), or list, default=None
            Labels of held-out queries, as in `score`. The labels of m judges are given as an array
            of relevance with m columns, or as a list of m structured labels, such as those of
            `preference_labels`. If labels are given, the expected regret is bounded by the squared
            distance between predictions and targets. With a single judge, this distance contains
            the noise of the labels, so that the bound may be too large to be informative. With
            several judges, the noise is estimated and removed.

        Returns
        -------
        diagnosis : Diagnosis
            ``print(diagnosis)`` shows a summary. The details are in its attributes ``shares``,
            ``regret_bound``, ``regret_estimate`` and ``per_query``, and in its methods
            ``to_frame()`` and ``plot()``.

        Notes
        -----
        By theorem 3 of Ramaswamy et al. (2013), the regret of a query is at most
        c ||u - u*|| + gap. Here u are the predictions, u* are the conditional expectations of the
        targets, c is the `regret_constant` of the loss (see `consistency.regret_bound`), and gap is
        that of `decode_report`. The mean regret is therefore at most
        sqrt(mean of c^2 ||u - u*||^2) + mean gap. For losses that are not calibrated for every
        distribution of labels, this does not hold, and no bound is given; nor is it for rankers
        whose scores do not estimate u*.

        In addition to the time of `decode_report`, ``"map"`` needs O(sum of r^3) time, where r is
        the number of documents of a query.

        Examples
        --------
        >>> from sklearn_rankcal import CalibratedRanker
        >>> from sklearn_rankcal.datasets import make_ranking
        >>> data = make_ranking(n_queries=80, n_documents=6, random_state=0)
        >>> train, test = data.groups < 60, data.groups >= 60
        >>> ranker = CalibratedRanker(loss="pd")
        >>> ranker = ranker.fit(data.X[train], data.y[train], groups=data.groups[train])
        >>> diagnosis = ranker.diagnose(data.X[test], data.groups[test], data.y[test])
        >>> diagnosis.shares["optimal"]
        1.0
        """
        if y is None:
            X, queries = self._read_queries(X, groups)
            labels: list[Any] = []
        else:
            check_is_fitted(self)
            if isinstance(y, list | tuple) and y and all(is_structured(one) for one in y):
                judges = list(y)
            elif not is_structured(y) and np.ndim(y) == 2:
                judges = list(read_array(y, "y").T)
            else:
                judges = [y]
            if not judges:
                raise ValueError("y has no columns. Leave it out, or pass labels.")
            X, read, queries, _ = self._read(X, judges[0], groups, reset=False)
            labels = [read]
            for other in judges[1:]:
                read, of_labels = read_any_labels(other, queries.n_rows, self.loss_.takes)
                agreed_queries(queries, of_labels)
                labels.append(read)
            for read in labels:
                self.loss_.check(read)
        loss = self.loss_
        bounded = bool(labels) and self._learns_targets and loss.regret_constant(2) is not None

        def more(
            rows: NDArray[np.int64], part: Queries, u: NDArray[np.float64]
        ) -> dict[str, NDArray[Any]]:
            enough = scores_suffice(u, part, loss.space)
            columns: dict[str, NDArray[Any]] = {"scores_suffice": enough}
            if bounded:
                own = [take_labels(label, rows, part) for label in labels]
                columns["squared_error"] = squared_errors(loss, u, own, part)
            return columns

        if not loss.space.is_pairwise:
            columns = {"query": queries.ids, "n_documents": queries.sizes}
            if bounded:
                scores = queries.gather(self.model_.predict(X, queries))
                columns["squared_error"] = squared_errors(loss, scores, labels, queries)
        else:
            columns = self._report(X, queries, more)
            if "cyclic" in columns:
                columns["acyclic"] = ~columns.pop("cyclic")
        if bounded:
            sizes, place = np.unique(queries.sizes, return_inverse=True)
            constants = np.array([loss.regret_constant(int(r)) for r in sizes])
            columns["squared_bound"] = constants[place] ** 2 * columns["squared_error"]
        return Diagnosis(loss, columns)
