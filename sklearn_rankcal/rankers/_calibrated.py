"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.rankers._choose_model import (
    NAMES,
    is_large,
    is_named,
    make_model,
    model_to_ask,
)
from sklearn_rankcal.rankers._fit import fit_model, read_training
from sklearn_rankcal.rankers._query_ranker import QueryRanker
from sklearn_rankcal.rankers._statement import calibrated_over
from sklearn_rankcal.utils._features import check_no_text, dense_table
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._scales import check_unit, mean_one
from sklearn_rankcal.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
)


class CalibratedRanker(QueryRanker):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    ``CalibratedRanker().fit(X, y, groups=query_ids)`` needs no parameter. It ranks for NDCG by
    boosted trees, whose number and size are chosen on held-out queries. `predict` returns
    positions, where 1 is the top of a query.

    Targets are computed from the labels, the regressor is fitted to them, and its predictions are
    decoded into a ranking. With enough data it is the best possible one for the loss, if the
    regressor can express the expected targets [1]_ [2]_.

    Parameters
    ----------
    regressor : estimator, model, "boosting", "stacked" or None, default=None
        - None: histogram boosting that learns the targets of the loss, net Borda scores and the
          labels, with the number and size of trees chosen by three folds of the queries, and by
          the Poisson deviance if at most one document in five is relevant. The weighted sum is one
          booster (`models.BoostingCV`). From 20,000 rows, 2,000 relevant ones
          and 70 queries on, one query of seven is held out in the place of folds. With fewer than
          five queries, or validation queries, it is `models.default_regressor`.
        - ``"boosting"``: the same for the targets of the loss alone, in about half the time.
        - ``"stacked"``: the same with five folds, and a forest (`models.StackedModel`). `fit`
          takes about twice as long, and `predict` ten times.
        - An object: a regressor, a classifier of the levels of relevance, or one of `models`.
    loss : str or Loss, default="ndcg"
        ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``, ``"recall@20"``, ``"wta"``,
        ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``, ``"map_by_scores"``, ``"pd_by_scores"``, an
        object such as ``NDCG(k=10, gain="linear")`` (`losses`), or ``"map"`` or ``"pd"``, for which
        the regressor is fitted to pairs of documents.
    decoder : str or decoder, default="auto"
        How predictions become a ranking: ``"sort"`` for scores, ``"auto"`` (exact where that is
        cheap), ``"exact"`` or another one of `decoders` for pairs, by name or as an object.
    context : "auto", None, str or list of str, default="auto"
        Columns for the regressor that compare a document with its query: ``"zscore"``,
        ``"difference"`` (from the mean), ``"rank"``, for columns of categories ``"share"`` (of the
        query's rows with the same category), or a list of these. ``"auto"`` adds z-scores of the
        numeric columns whose level or spread differs between queries (of all, if queries have fewer
        than ten documents), or differences if one of these has a monotone constraint, which
        z-scores would break (:ref:`column-parameters`), and shares of the categories of frames.
    center : bool, default=True
        Whether to subtract from each target the mean of its query, which changes no ranking.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids, which the regressor does not see.
        Only so can `cross_val_predict` and ``search.predict(frame)`` get the queries.
    validation_queries : float, default=None
        Share of the queries by which `fit` chooses the number of iterations of boosted regressors.
    n_iter_no_change : int, default=50
        With validation queries, training stops after this many iterations in which neither the mean
        of the measure nor the squared error of the targets improved, and the iterations before
        these are kept (:ref:`validation_queries`). The default has a patience of its own for the
        queries that it holds out.
    random_state : int, RandomState instance or None, default=None
        Seed of validation queries and of the regressor, which keeps its own if this is None.
    n_jobs : int, default=None
        How many folds are fitted, and queries decoded with losses on pairs, at the same time.
    verbose : int, default=0
        With 1, every step is printed with its time. Larger numbers, less 1, go to the regressor.

    Attributes
    ----------
    model_ : model
        The fitted model. ``model_.regressor_`` is the fitted regressor, where there is one.
    loss_, decoder_
        The loss, with parameters left to the data filled in, and the decoder.
    calibrated_over_ : str
        The distributions of the labels over which the fitted model is calibrated for the loss, or
        which part breaks it: a decoder that is not exact, or a regressor of medians, for example.
        Regressors of other libraries are trusted to estimate means.
    grouped_ : bool
        Whether `fit` knew the queries.
    n_queries_, n_queries_dropped_ : int
        Numbers of queries in X, and of those without weight or on which the loss is undefined.
    n_iter_, validation_scores_, validation_queries_
        With validation queries: the number of iterations that were kept (of all members), the
        measure after each iteration (of a stack, in the end), and the ids of the queries.

    References
    ----------
    .. [1] Ramaswamy, Agarwal and Tewari (2013). Convex calibrated surrogates for low-rank loss
       matrices with applications to subset ranking losses. NIPS. Theorem 3.
    .. [2] Calauzènes, Usunier and Gallinari (2013). Calibration and regret bounds for
       order-preserving surrogate losses in learning to rank. Machine Learning. Theorem 3.2.

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

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords
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
        """Fit the regressor on the loss's targets, and return the ranker.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair. A regressor of this package takes sparse X as dense.
        y : array-like of shape (n_documents,)
            Relevance, larger is better, or the array of `relevance_labels` or `preference_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, in any order. None is one query, with a warning.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row in the regression.
        X_val, y_val, groups_val, sample_weight_val
            Validation queries, none of which is in X, in the same form (:ref:`validation_queries`).

        Raises
        ------
        ValueError, TypeError
            If data are not as described, or the regressor is a ranker, or cannot stop early.
        """
        validation = (X_val, y_val, groups_val, sample_weight_val)
        data, held_out = read_training(self, X, y, groups, sample_weight, validation)
        if is_named(self.regressor) and data.weight is not None:
            # Its penalty has a fixed size. Weights of mean 1 let only their ratios count.
            data = replace(data, weight=mean_one(data.weight))
        model = make_model(self, self.loss_, data, held_out)
        data = data.learning(self.loss_)
        pairwise = self.loss_.space.is_pairwise
        check_unit(data.targets.largest() if pairwise else float(np.abs(data.targets).max()))
        fit_model(self, model, data, held_out)
        self.calibrated_over_ = calibrated_over(self.loss_, self.decoder_, self.model_)
        return self

    # ---------------------------------------------------------------- what the model can take

    def _check_table(self, table: Any) -> Any:
        model = model_to_ask(self)
        if not model.needs_dense:
            return table
        named = is_named(self.regressor)
        who = "the default regressor" if named else type(self.regressor).__name__
        has_ids = self.group_column is not None
        check_no_text(table, who, takes_categories=model.takes_categories, has_ids=has_ids)
        return dense_table(table)

    def _needs_held_out(self, data: Training) -> bool:
        return self.regressor in (None, "boosting") and is_large(self, data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            get_loss(self.loss)
        except (TypeError, ValueError):
            return tags  # a bad loss is reported by fit; tags must not raise
        tags.input_tags = get_tags(model_to_ask(self)).input_tags
        return tags
