"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.losses._registry import refuse_loss
from sklearn_rankcal.models import DocumentModel, Model, Training
from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.rankers._choose_model import NAMES, calibrated_over, is_large, make_model
from sklearn_rankcal.rankers._fit import ValidationArguments, fit
from sklearn_rankcal.rankers._input import TableNeeds
from sklearn_rankcal.rankers._query_ranker import FOREIGN, QueryRanker
from sklearn_rankcal.utils._messages import checks_keywords
from sklearn_rankcal.utils._numbers import check_unit, mean_one
from sklearn_rankcal.utils._sklearn_compat import HasMethods, Interval, StrOptions, _fit_context


class CalibratedRanker(QueryRanker):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    ``CalibratedRanker().fit(X, y, groups=query_ids)`` ranks for NDCG with boosted trees.

    `fit` computes targets from the labels and fits the regressor to them. `predict` converts the
    predictions to a ranking. With enough data, this ranking is the best possible one for the loss,
    if the regressor can represent the expected targets (theorem 3 of Ramaswamy et al., 2013, and
    theorem 3.2 of Calauzènes et al., 2013, in :doc:`/theory`). Read more in :doc:`/guide/models`.

    Parameters
    ----------
    regressor : estimator, model, "boosting", "stacked" or None, default=None
        - None: several histogram gradient boosters, whose number and size of trees are chosen on
          three folds of the queries (:ref:`defaults`).
        - ``"boosting"``: a single booster, in about half the time.
        - ``"stacked"``: five folds, and a forest in addition (:ref:`stacking`). `fit` takes about
          twice as long, and `predict` ten times as long.
        - An object: a regressor, a classifier of the relevance grades, or one of `models`.
    loss : str or Loss, default="ndcg"
        The loss to minimise: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, ``"pd_by_scores"``, or an object such as ``NDCG(k=10, gain="linear")``
        (`losses`). For ``"map"`` and ``"pd"``, the regressor is fitted to pairs of documents.
    decoder : str or decoder, default="auto"
        How predictions become a ranking: ``"sort"`` for scores, ``"exact"`` for pairs, or another
        one of `decoders`, by name or as an object. ``"auto"`` is exact if that is cheap.
    context : "auto", None, str or list of str, default="auto"
        Extra columns that compare a document with the rest of its query: ``"zscore"``,
        ``"difference"`` (from the mean), ``"rank"``, ``"share"`` (of the rows of the query with the
        same category), or a list of these. ``"auto"`` adds z-scores for numeric columns and shares
        for categories where they help (:ref:`defaults`).
    center : bool, default=True
        Whether to subtract from each target the mean of its query. This changes no ranking.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids, which is not a feature. No other
        way passes queries to `cross_val_predict` and ``search.predict(frame)``.
    validation_queries : float, default=None
        Share of the queries that `fit` holds out to choose the number of boosting iterations.
    n_iter_no_change : int, default=50
        With validation queries, stop after this number of iterations without an improvement, and
        drop these (:ref:`validation_queries`). Not for queries that the default model holds out.
    random_state : int, RandomState instance or None, default=None
        Seed for validation queries and the regressor. With None, the regressor keeps its own seed.
    n_jobs : int, default=None
        Number of jobs to fit folds and, for losses on pairs, to decode queries.
    verbose : int, default=0
        With 1, print each step and its time. The regressor gets ``verbose - 1`` if that is above 0.

    Attributes
    ----------
    model_, loss_, decoder_
        The fitted model, the loss, with its data-dependent parameters set, and the decoder.
        ``model_.regressor_`` is the fitted regressor, if there is one.
    calibrated_over_ : str
        The label distributions over which the fitted ranker is calibrated for the loss, or what
        prevents calibration. Regressors of unknown libraries are assumed to estimate means.
    grouped_, n_queries_, n_queries_dropped_
        Whether `fit` received query ids, the number of queries in X, and the number of queries that
        were dropped because of zero weight or an undefined loss.
    n_iter_, validation_scores_, validation_queries_
        Number of iterations that were kept, measure on the validation queries after each iteration
        (one final value for a stack), and their ids. Only with validation queries.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if they are strings, with `group_column`.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker(loss="ndcg@10").fit(data.X, data.y, groups=data.groups)
    >>> ranks = ranker.predict(data.X, groups=data.groups)
    >>> ranks[ranker.predict_order(data.X, groups=data.groups, k=3).rows[:3]].tolist()
    [1, 2, 3]
    """

    # Metadata routing passes these arguments to `fit` without a set_fit_request call.
    __metadata_request__fit = {"X_val": True, "y_val": True, "groups_val": True}
    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, StrOptions(set(NAMES)), HasMethods(["fit", "predict"])],
        "loss": [str, Loss],
        "decoder": [str, HasMethods(["decode"])],
        "context": [None, str, list, tuple],
        "center": ["boolean"],
        "group_column": [None, str],
        "validation_queries": [None, Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss: str | Loss = "ndcg",
        decoder: Any = "auto",
        context: Any = "auto",
        center: bool = True,
        group_column: str | None = None,
        validation_queries: float | None = None,
        n_iter_no_change: int = 50,
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
        self.validation_queries = validation_queries
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _validate_params(self) -> None:
        if isinstance(self.regressor, str):
            refuse_loss(self.regressor)
        super()._validate_params()

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords(foreign=FOREIGN)
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the regressor to the targets of the loss.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair. Regressors of this package convert sparse X to dense.
        y : array-like of shape (n_documents,)
            Relevance grades, larger is better, or what `relevance_labels` or `preference_labels`
            returns.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, in any order. With None, all rows are one query, with a warning.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row in the regression.
        X_val, y_val, groups_val, sample_weight_val : default=None
            Other queries, in the same form, for validation (:ref:`validation_queries`).

        Returns
        -------
        self : CalibratedRanker
            The fitted ranker.

        Raises
        ------
        ValueError, TypeError
            If the data are invalid, or if the regressor is a ranker or cannot stop early.
        """
        validation = ValidationArguments(X_val, y_val, groups_val, sample_weight_val)
        fit(self, X, y, groups, sample_weight, validation)
        return self

    @property
    def calibrated_over_(self) -> str:
        """The label distributions over which the fitted ranker is calibrated for the loss."""
        check_is_fitted(self)
        return calibrated_over(self.loss_, self.decoder_, self.model_)

    # ---------------------------------------------------------------- what `fit` asks

    def _table_needs(self, loss: Loss) -> TableNeeds | None:
        regressor = self.regressor
        if regressor is None or isinstance(regressor, str):
            pairwise = loss.space.is_pairwise
            return TableNeeds("the default regressor", takes_categories=not pairwise, dense=True)
        model = isinstance(regressor, Model)
        if regressor.needs_dense if model else loss.space.is_pairwise:
            takes_categories = model and regressor.takes_categories
            return TableNeeds(type(regressor).__name__, takes_categories, dense=True)
        return None

    def _holds_out(self, data: Training, grouped: bool) -> bool:
        return grouped and self.regressor in (None, "boosting") and is_large(data)

    def _prepare(
        self, loss: Loss, data: Training, held_out: Training | None, grouped: bool
    ) -> tuple[Model, Training]:
        named = self.regressor is None or isinstance(self.regressor, str)
        if named and data.weight is not None:
            # The penalty of a named regressor has a fixed size, so scale the weights to mean 1.
            data = replace(data, weight=mean_one(data.weight))
        model = make_model(self, loss, data, held_out, grouped)
        data = data.learning(loss)
        pairwise = loss.space.is_pairwise
        check_unit(data.targets.largest() if pairwise else float(np.abs(data.targets).max()))
        return model, data

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            loss = get_loss(self.loss)
        except (TypeError, ValueError):
            return tags  # a bad loss is reported by fit; tags must not raise
        model = self.regressor
        if not isinstance(model, Model):
            named = model is None or isinstance(model, str)
            model = DocumentModel() if named else DocumentModel(model, context=self.context)
            if loss.space.is_pairwise:
                model = PairwiseModel()
        tags.input_tags = get_tags(model).input_tags
        return tags
