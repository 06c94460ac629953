"""`DaskCalibratedRanker`: targets, context columns and rankings of partitions of a collection."""

from __future__ import annotations

import time
from functools import partial
from itertools import repeat
from typing import Any, Self

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.dask import _training
from sklearn_rankcal.dask._collections import (
    Collections,
    Rows,
    add_labels,
    add_up,
    check_whole,
    delayed_sum,
    for_each,
    ids_of,
    read_collections,
)
from sklearn_rankcal.dask._metrics import mean_of_queries
from sklearn_rankcal.dask._training import Counts, TrainingPlan
from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import BilinearPairs, DocumentModel, Model
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.models._model import undefined_everywhere
from sklearn_rankcal.rankers import CalibratedRanker
from sklearn_rankcal.rankers._advice import LARGEST_GRADE, warn_of_amounts, warn_of_single_rows
from sklearn_rankcal.rankers._calibrated import calibrated_over, check_is_no_ranker, chosen_context
from sklearn_rankcal.rankers._input import Schema
from sklearn_rankcal.rankers._predict import predicts_scores
from sklearn_rankcal.rankers._query_ranker import FOREIGN_WITHOUT_VALIDATION
from sklearn_rankcal.utils._estimators import SiteLink, set_random_states, set_verbose
from sklearn_rankcal.utils._messages import (
    check_count,
    check_flag,
    checks_keywords,
    counted,
    print_progress,
)
from sklearn_rankcal.utils._numbers import check_unit
from sklearn_rankcal.utils._sklearn_compat import available_if


class DaskCalibratedRanker(SiteLink, BaseEstimator):
    """`CalibratedRanker` for dask collections that need not fit in memory.

    All rows of a query must be in one partition (see `group_queries`). Targets and context columns
    are computed within each partition, and the regressor is fitted to all partitions. For any
    partitioning, the fitted `ranker_`, a `CalibratedRanker`, gives the same rankings.

    Parameters
    ----------
    regressor : estimator, default=None
        One of these:

        - `Ridge`, `LinearRegression`, `PairwiseRidge` or `BilinearPairs`, fitted in closed form;
        - ``lightgbm.DaskLGBMRegressor``, ``xgboost.dask.DaskXGBRegressor``, or a regressor of
          ``dask_ml`` or ``cuml.dask``;
        - a regressor with `partial_fit`, such as `SGDRegressor` or ``LinearModel(solver="sgd")``.

        None means `Ridge`, or `BilinearPairs` for ``loss="pd"`` and ``"map"``. These two divide the
        weights by their mean, as in `CalibratedRanker`; a regressor that you pass gets the weights
        unchanged. On most data, boosted trees rank better than the default.
        :ref:`dask-regressors` compares the regressors.
    loss : str or Loss, default="ndcg"
        The loss, as in `CalibratedRanker`. Labels must be a relevance grade for each row.
    decoder : str or decoder, default="auto"
        How predictions become a ranking, as in `CalibratedRanker`.
    context : "auto", None, str or list of str, default="auto"
        Columns that compare a document with its query, as in `CalibratedRanker`.
    center : bool, default=True
        Whether to subtract the mean of the query from each target. This changes no ranking.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids. It is not used as a feature. For
        arrays, pass ``groups`` to the methods instead.
    n_passes : int, default=1
        Number of passes over all partitions of a regressor with `partial_fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of every parameter ``random_state`` of the regressor.
    n_jobs : int, default=None
        Number of queries of a partition to decode in parallel, for losses on pairs.
    verbose : int, default=0
        If 1, `fit` prints each step with its time.

    Attributes
    ----------
    ranker_ : CalibratedRanker
        The fitted ranker for one machine. It accepts arrays and pandas frames, and can be saved.
    model_, loss_, decoder_, calibrated_over_ : object
        The attributes of `ranker_`.
    n_queries_, n_queries_dropped_ : int
        Number of queries in X, and number dropped (zero weight or undefined loss).
    n_features_in_ : int
        Number of columns of X, including the group column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, if X is a data frame with text column names.

    Notes
    -----
    Sums are added in the order of the partitions: a different partitioning changes the last digits
    of the coefficients. :doc:`/guide/more_data_than_memory` explains how often data are read, how
    much memory is needed, and what happens if a worker is lost.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from sklearn_rankcal.dask import DaskCalibratedRanker, group_queries
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> frame = pd.DataFrame(data.X, columns=[f"x{k}" for k in range(data.X.shape[1])])
    >>> frame = dd.from_pandas(frame.assign(qid=data.groups, label=data.y), npartitions=4)
    >>> frame = group_queries(frame, "qid").persist()
    >>> X = frame.drop(columns="label")
    >>> ranker = DaskCalibratedRanker(loss="ndcg@10", group_column="qid").fit(X, frame["label"])
    >>> ranked = frame.assign(position=ranker.predict(X)).compute()
    >>> ranked.groupby("qid")["position"].min().unique().tolist()
    [1]
    >>> ranker.ranker_.predict(X.compute()).tolist() == ranked["position"].tolist()
    True
    >>> top = ranker.predict_order(X, k=3).compute()
    >>> int(top["position"].max())
    3
    """

    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss: str | Loss = "ndcg",
        decoder: Any = "auto",
        context: Any = "auto",
        center: bool = True,
        group_column: str | None = None,
        n_passes: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.context = context
        self.center = center
        self.group_column = group_column
        self.n_passes = n_passes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_keywords(foreign=FOREIGN_WITHOUT_VALIDATION)
    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the regressor to the targets of the loss.

        Parameters
        ----------
        X : dask data frame or array of shape (n_documents, n_features)
            One row per query-document pair.
        y : dask series or array of shape (n_documents,)
            Relevance grade of each document, larger is better, in the same partitions as X.
        groups : dask series or array of shape (n_documents,), default=None
            Query id of each row: numbers, times or text. Required if `group_column` is None.
        sample_weight : dask series or array of shape (n_documents,), default=None
            Non-negative weight of each row in the regression, as in `CalibratedRanker`.

        Returns
        -------
        self : DaskCalibratedRanker
            The fitted ranker.
        """
        loss = get_loss(self.loss)
        self._check_parameters(loss)
        regressor = self._own_regressor(loss)
        _training.check_regressor(regressor, loss.space, self.loss)
        data = read_collections(X, self.group_column, groups)
        add_labels(data, y, sample_weight)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # after an error, no model for other columns must remain
        validate_data(self, X=data.table.meta, reset=True, skip_check_array=True)
        _training.check_columns(data.table.features(data.table.meta), regressor)
        decoder = get_decoder(self.decoder, loss.space)

        started = time.perf_counter()
        labels, ranges = self._read_labels(data, loss)
        of_labels = np.array([-ranges[0], ranges[1]])
        loss = loss.resolve(of_labels)
        if of_labels.max() > LARGEST_GRADE:
            warn_of_amounts(loss)
        counts = add_up(for_each(partial(Counts.of, loss=loss), labels))
        if not counts.n_kept:
            raise undefined_everywhere(loss, counts.n_queries, counts.n_documents)
        if counts.n_queries == counts.n_documents:
            warn_of_single_rows(counts.n_queries)
        unit = None
        if sample_weight is not None:
            unit = self._weight_unit(-ranges[2], ranges[3], counts)
        plan = TrainingPlan(data.table, loss, counts.sums, unit)
        largest = for_each(partial(plan.largest, center=self.center), labels)
        of_targets, of_centred = add_up(largest, np.maximum)
        del labels
        check_unit(of_targets)
        self.n_queries_ = counts.n_queries
        self.n_queries_dropped_ = counts.n_queries - counts.n_kept
        print_progress(
            self,
            f"{counted(counts.n_rows, 'document')} in {counted(counts.n_kept, 'query')} for "
            f"{loss!r}; {counted(self.n_queries_dropped_, 'query')} left out",
            started,
        )
        model = self._fit_model(regressor, data, plan, counts, of_centred)
        self.model_, self.loss_, self.decoder_ = model, loss, decoder
        self.calibrated_over_ = calibrated_over(loss, decoder, model)
        self.ranker_ = self._on_one_machine(regressor, data)
        return self

    def _check_parameters(self, loss: Loss) -> None:
        if loss.takes_judgements:
            raise ValueError(
                f"loss={self.loss!r} takes judgements. DaskCalibratedRanker takes a relevance of "
                "every row; aggregate the judgements first."
            )
        check_flag(self.center, "center")
        check_count(self.n_passes, "n_passes")
        check_context(None if self.context == "auto" else self.context)
        if self.group_column is not None and not isinstance(self.group_column, str):
            raise TypeError(f"group_column must be a string or None; got {self.group_column!r}.")

    def _own_regressor(self, loss: Loss) -> Any:
        """Return the regressor, unfitted, with its seeds set."""
        if self.regressor is None:
            pairwise = loss.space.is_pairwise
            regressor = BilinearPairs(symmetric=loss.space.symmetric) if pairwise else Ridge()
        else:
            regressor = self.regressor
            if isinstance(regressor, type) or not hasattr(regressor, "get_params"):
                raise TypeError(
                    "regressor must be an estimator object, such as lightgbm.DaskLGBMRegressor(), "
                    f"or None; got {regressor!r}."
                )
            if regressor.get_params().get("client") is not None:
                raise ValueError(
                    f"Leave out the parameter client of {type(regressor).__name__}. The default "
                    "client of dask is used."
                )
            check_is_no_ranker(regressor)
        return set_random_states(clone(regressor), self.random_state)

    def _read_labels(self, data: Collections, loss: Loss) -> tuple[list[Any], Any]:
        """Return the labels, queries and weights of the partitions, and the extremes over all."""
        parts = data.map(partial(_training.documents, table=data.table), table=False)
        parts = list(dask.persist(*parts))
        found = delayed_sum(for_each(partial(_training.extremes, loss=loss), parts), np.maximum)
        ids, ranges = dask.compute(for_each(ids_of, parts), found)
        data.whole = delayed(check_whole(ids), traverse=False)
        if ranges is None:
            raise ValueError(
                "sample_weight is zero for every row."
                if "sample_weight" in data.parts
                else "X has no rows: every partition is empty."
            )
        return parts, ranges

    def _weight_unit(self, smallest: float, largest: float, counts: Counts) -> float | None:
        """Return the number to divide weights by; None leaves the weights out."""
        if self.regressor is None:  # only ratios of weights matter
            return None if smallest == largest else counts.weight / counts.n_rows
        return None if smallest == largest == 1 else 1.0

    def _fit_model(
        self, regressor: Any, data: Collections, plan: TrainingPlan, counts: Counts, largest: float
    ) -> Any:
        """Fit the model and print the time this takes."""
        set_verbose(regressor, self.verbose - 1)
        name, model = type(regressor).__name__, regressor
        if not isinstance(regressor, Model):
            started = time.perf_counter()
            template = data.table.features(data.table.meta)
            model = self._document_model(regressor, data, template, counts, largest)
            model.match_parameters(regressor := clone(regressor), template)
            print_progress(self, f"context columns: {model.context_}", started)
        print_progress(
            self,
            f"fitting {name} to {counted(counts.n_rows, 'row')} in {data.n_partitions} "
            "partitions ...",
        )
        started = time.perf_counter()
        model = _training.fit_model(plan, data, model, regressor, counts.n_kept, self.n_passes)
        print_progress(self, f"fitted {name}", started)
        return model

    def _document_model(
        self, regressor: Any, data: Collections, template: Any, counts: Counts, largest: float
    ) -> DocumentModel:
        """Return an unfitted model with the context columns and the unit of the targets set."""
        model = DocumentModel(
            _training.unfitted_on_one_machine(regressor),
            center=self.center,
            context=chosen_context(self.context, True, template),
        )
        judged, columns = model.candidates(template)
        short = False
        if judged:
            chosen, short = _training.chosen_columns(judged, data, counts)
            columns = columns + chosen
        return model.prepare(template, columns, short, largest)

    def _on_one_machine(self, regressor: Any, data: Collections) -> CalibratedRanker:
        """Return a fitted `CalibratedRanker`."""
        shared = {"loss", "decoder", "context", "center", "group_column", "random_state", "n_jobs"}
        ranker = CalibratedRanker(
            _training.unfitted_on_one_machine(regressor),
            **{name: getattr(self, name) for name in shared},
        )
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        ranker.__dict__.update(fitted, grouped_=True)
        # partitions are data frames, and regressors of the libraries read their own categories
        meta, name = data.table.meta, self.group_column
        ranker._schema = Schema(
            meta.shape[1],
            list(getattr(self, "feature_names_in_", ())) or None,
            "pandas",
            group_column=name,
            group_place=0 if name is None else list(meta.columns).index(name),
        )
        return ranker

    def _read(self, X: Any, groups: Any, *, whole: bool = True) -> Collections:
        """Compare collections with those of `fit`; if `whole`, check that no query is split."""
        check_is_fitted(self, "ranker_")
        data = read_collections(X, self.group_column, groups)
        validate_data(self, X=data.table.meta, reset=False, skip_check_array=True)
        if whole:
            data.check_queries()
        return data

    @checks_keywords
    def predict(self, X: Any, groups: Any = None) -> Any:
        """Return the position of each row in its query, 1 = top, as a lazy array.

        Parameters
        ----------
        X, groups
            As in `fit`.

        Returns
        -------
        ranks : dask array of shape (n_documents,)
            The positions, in the order and partitions of X: ``X.assign(position=ranks)`` works.
            Select columns before you assign the ranks. If only a few columns of parquet files are
            read, dask merges partitions and then rejects the array.
        """
        return self._predict_values(self._read(X, groups), "predict", np.int64)

    @available_if(predicts_scores)
    @checks_keywords
    def decision_function(self, X: Any, groups: Any = None) -> Any:
        """Return the predicted scores, larger is better, as a lazy array.

        Parameters
        ----------
        X, groups
            As in `fit`.

        Returns
        -------
        scores : dask array of shape (n_documents,)
            The scores, in the order and partitions of X.
        """
        data = self._read(X, groups, whole=self.ranker_._needs_queries())
        return self._predict_values(data, "decision_function", np.float64)

    def _predict_values(self, data: Collections, method: str, dtype: Any) -> Any:
        """Return the result of a method of `ranker_` for each row, as a dask array.

        A series would be worse: if the divisions of X are unknown, as for parquet files, dask
        joins a column to X by the index, which can have duplicates.
        """

        def values(rows: Rows, ranker: Any) -> pd.Series:
            return pd.Series(getattr(ranker, method)(**rows.given))

        meta = pd.Series(dtype=dtype)
        parts = data.map(values, repeat(delayed(self.ranker_)), empty=meta)
        series = dd.from_delayed(parts, meta=meta, verify_meta=True)
        return series.to_dask_array(lengths=data.chunks)

    @checks_keywords
    def predict_order(self, X: Any, groups: Any = None, k: int | None = None) -> Any:
        """Return the rows of each query, best first, as a lazy data frame.

        Parameters
        ----------
        X, groups
            As in `fit`.
        k : int, default=None
            List at most the first k rows of each query. None lists all rows.

        Returns
        -------
        order : dask data frame of shape (n_listed, 3)
            Columns ``query``, ``position`` (1 = top) and ``row``. The row is its index label if X
            is a data frame, and its row number otherwise.
        """
        check_count(k, "k", or_none=True)
        data = self._read(X, groups)
        index: Any = pd.RangeIndex(0)
        indexes: Any = repeat(None)
        if not data.table.is_array:
            index = data.table.meta.index
        elif data.chunks is None:
            raise ValueError(
                "predict_order returns numbers of rows, but the lengths of the blocks of X are not "
                "known. Call X.compute_chunk_sizes() first."
            )
        else:
            edges = np.cumsum((0, *data.chunks))
            indexes = map(pd.RangeIndex, edges[:-1], edges[1:])
        columns = {"query": pd.Series(dtype=data.dtypes["groups"]), "position": np.empty(0, int)}
        meta = pd.DataFrame({**columns, "row": index})
        order_of = partial(_order_of, column=self.group_column, k=k, dtypes=dict(meta.dtypes))
        parts = data.map(order_of, repeat(delayed(self.ranker_)), indexes, empty=meta)
        return dd.from_delayed(parts, meta=meta, verify_meta=True)

    @checks_keywords
    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Return the mean over queries of the measure of the loss, higher is better.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`. The weight of a query is the mean weight of its rows.

        Returns
        -------
        score : float
            The mean, as in `CalibratedRanker.score`. It is computed immediately.
        """
        data = self._read(X, groups)
        add_labels(data, y, sample_weight)
        parts = data.map(_measured, repeat(delayed(self.ranker_)))
        found = [part for part in dask.compute(parts)[0] if part is not None]
        rows = np.concatenate(found, axis=1) if found else np.ones((3, 0))
        return mean_of_queries(type(self.loss_).__name__, *rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


def _order_of(
    rows: Rows, ranker: Any, index: Any, column: str | None, k: int | None, dtypes: dict[str, Any]
) -> pd.DataFrame:
    """Return the first rows of each query, with their labels in `index` or in the index of X."""
    order = ranker.predict_order(**rows.given, k=k)
    X, places = rows.given["X"], order.rows
    ids = pd.Series(rows.given["groups"] if column is None else X[column]).array[places]
    labels = (X.index if index is None else index)[places]
    position = order.to_frame()["position"]
    return pd.DataFrame({"query": ids, "position": position, "row": labels}).astype(dtypes)


def _measured(rows: Rows, ranker: Any) -> NDArray[np.float64]:
    """Return, for each query of a partition, the measure, the weight and the weight factor."""
    queries, labels, loss = rows.queries, rows.numbers["y"], ranker.loss_
    values = loss.metric(labels, ranker.predict(**rows.given), queries)
    factor = loss.query_weight(labels, queries)
    ones = np.ones(queries.n_queries)
    return np.stack([values, rows.query_weight, ones if factor is None else factor])
