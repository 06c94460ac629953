"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking.

The class is followed by the choice of the model that it fits, and by the sentences that say over
which label distributions it is calibrated.
"""

from __future__ import annotations

import re
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal import models
from sklearn_rankcal.decoders import AveragePrecisionDecoder, PreferenceDecoder, Sort
from sklearn_rankcal.losses import PD, Choice, Loss, PDByScores, get_loss
from sklearn_rankcal.losses._registry import refuse_loss
from sklearn_rankcal.models._column_parameters import refuse_parameters
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.models._held_out import suits_forests
from sklearn_rankcal.models._member_weights import FOREST, LABELS, LINEAR, POISSON, POISSON_LABELS
from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.rankers._fit import ValidationArguments, fit
from sklearn_rankcal.rankers._input import TableNeeds
from sklearn_rankcal.rankers._query_ranker import FOREIGN, QueryRanker
from sklearn_rankcal.utils._estimators import clone, innermost_estimator
from sklearn_rankcal.utils._features import category_columns, column_values, numeric_columns
from sklearn_rankcal.utils._messages import check_methods, checks_keywords, counted, warn
from sklearn_rankcal.utils._numbers import check_unit, mean_one
from sklearn_rankcal.utils._sklearn_compat import HasMethods, Interval, StrOptions, _fit_context


class CalibratedRanker(QueryRanker):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    ``CalibratedRanker().fit(X, y, groups=query_ids)`` needs no parameter. It ranks for NDCG with
    boosted trees.

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
          twice as long, and `predict` 5 to 8 times as long.
        - An object: a regressor, a classifier of the relevance grades, or one of `models`.
    loss : str or Loss, default="ndcg"
        The loss to minimise: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, ``"pd_by_scores"``, ``"choice"`` (:ref:`choices`), or an object such as
        ``NDCG(k=10, gain="linear")`` (`losses`). For ``"map"`` and ``"pd"``, the regressor is
        fitted to pairs of documents.
    decoder : str or decoder, default="auto"
        How predictions become a ranking: ``"sort"`` for scores, ``"exact"`` for pairs, or another
        one of `decoders`, by name or as an object. ``"auto"`` is exact if that is cheap.
    context : "auto", None, str or list of str, default="auto"
        Extra columns that compare a document with the rest of its query: ``"zscore"``,
        ``"difference"`` (from the mean), ``"rank"``, ``"share"`` (of the rows of the query with the
        same category), or a list of these. ``"auto"`` adds z-scores (differences in short
        queries) for numeric columns and shares for categories, where they help (:ref:`defaults`).
    center : bool, default=True
        Whether to subtract from each target the mean of its query. This changes no ranking.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids, which is not a feature. No other
        way passes queries to `cross_val_predict` and ``search.predict(frame)``.
    validation_queries : float, default=None
        Share of the queries that `fit` holds out to choose the number of boosting iterations.
    n_iter_no_change : int, default=50
        With validation queries, stop after this number of iterations without an improvement, and
        drop these (:ref:`validation_queries`).
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
        were dropped: without a judged row or a positive weight, or with an undefined loss.
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
        "regressor": [None, StrOptions({"boosting", "stacked"}), HasMethods(["fit", "predict"])],
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
        elif isinstance(self.regressor, type):
            check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
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
            returns. NaN marks rows that nobody judged (:ref:`unjudged`).
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
            return TableNeeds("the default regressor", takes_categories=True, dense=True)
        model = isinstance(regressor, models.Model)
        if regressor.needs_dense if model else loss.space.is_pairwise:
            takes_categories = model and regressor.takes_categories
            return TableNeeds(type(regressor).__name__, takes_categories, dense=True)
        return None

    def _prepare(
        self, loss: Loss, data: models.Training, held_out: models.Training | None, grouped: bool
    ) -> tuple[models.Model, models.Training]:
        fixed = self.regressor is None or isinstance(self.regressor, str | models.BoostingCV)
        if fixed and data.weight is not None:
            # The penalty of these regressors has a fixed size, so scale the weights to mean 1.
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
        if not isinstance(model, models.Model):
            if model is None or isinstance(model, str):
                model = models.DocumentModel()
            elif loss.space.is_pairwise:
                model = PairwiseModel()
            else:
                model = models.DocumentModel(model, context=self.context)
        tags.input_tags = get_tags(model).input_tags
        return tags


# -------------------------------------------------------------------- the model

# fewest queries with several documents that choose the size of boosting in folds
_MIN_QUERIES = 5
# Up to this share of relevant documents, logarithms of targets rank better, or equally well. With
# half of the documents relevant, they rank a little worse.
_SHARE_OF_FEW = 0.2
_ROWS_OF_FIVE_FOLDS = 20_000  # a stack of five folds takes twice as long as one of three
#: Parameters with objectives, and objectives of rankers.
_OBJECTIVES = ("objective", "objective_type", "loss_function", "application", "app", "loss")
_RANKS = re.compile(
    r"rank:|lambdarank|(rank_)?xe_?ndcg|YetiRank|LambdaMart|PairLogit|Query|StochasticRank"
)
#: Rankers of other libraries, and regressors with the same parameters.
_REGRESSORS = {
    ("lightgbm", "LGBMRanker"): "LGBMRegressor",
    ("xgboost", "XGBRanker"): "XGBRegressor",
    ("catboost", "CatBoostRanker"): "CatBoostRegressor",
}


def make_model(
    ranker: Any,
    loss: Loss,
    data: models.Training,
    held_out: models.Training | None,
    grouped: bool,
) -> Any:
    """Check `regressor` and `context`, and return the model to fit, without seeds."""
    regressor, space = ranker.regressor, loss.space
    if isinstance(regressor, models.Model):
        check_is_no_ranker(getattr(regressor, "regressor", None))
        if regressor.space != space:
            raise ValueError(
                f"{type(regressor).__name__} predicts {regressor.space}, but "
                f"loss={ranker.loss!r} needs {space}."
            )
        return clone(regressor)
    check_context(None if ranker.context == "auto" else ranker.context)
    if regressor is None or isinstance(regressor, str):
        return _named_model(ranker, loss, data, held_out, grouped)
    check_is_no_ranker(regressor)
    if space.is_pairwise:
        refuse_parameters(
            regressor,
            f"loss={ranker.loss!r} fits the regressor to pairs of documents, which have other "
            "columns, and pairs keep no monotone constraint. Pass a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
        )
        return models.PairModel(clone(regressor), symmetric=space.symmetric)
    context = chosen_context(ranker.context, grouped, data.X)
    center = ranker.center and not isinstance(loss, Choice)  # shares are not negative
    return models.DocumentModel(clone(regressor), center=center, context=context)


def _named_model(
    ranker: Any,
    loss: Loss,
    data: models.Training,
    held_out: models.Training | None,
    grouped: bool,
) -> Any:
    """Return the model of None, "boosting" or "stacked"."""
    n_rows, stacked = data.queries.n_rows, ranker.regressor == "stacked"
    context = chosen_context(ranker.context, grouped, data.X)
    several = int(np.count_nonzero(data.queries.sizes > 1))
    chooses = isinstance(loss, Choice)
    if chooses and context == "auto":  # people compare, and look for the cheapest, for example
        context = ["difference", "rank"] * bool(numeric_columns(data.X))
        context += ["share"] * bool(category_columns(data.X))
    enough = grouped and several >= _MIN_QUERIES and (held_out is None or chooses)
    documents: Any
    if stacked or enough:
        documents = models.BoostingCV(
            _losses_of_members(ranker.regressor, loss, data),
            center=ranker.center,
            context=context,
            cv=5 if stacked and n_rows <= _ROWS_OF_FIVE_FOLDS else 3,
            n_jobs=ranker.n_jobs,
        )
    else:
        regressor = models.default_regressor(n_rows, stops_early=held_out is not None)
        if chooses:
            regressor.set_params(loss="poisson")
        equal = isinstance(data.labels, np.ndarray) and not _n_relevant(data)
        if grouped and held_out is None and not equal:  # another warning is about equal labels
            warn(
                f"{counted(several, 'query')} of several documents cannot choose the size of the "
                f"default regressor ({_MIN_QUERIES} can), so it has {regressor.max_iter} trees of "
                f"{regressor.max_leaf_nodes} leaves. X_val, y_val and groups_val choose how many."
            )
        documents = models.DocumentModel(regressor, center=ranker.center, context=context)
    if not loss.space.is_pairwise:
        return documents
    symmetric = loss.space.symmetric
    return (models.ResidualProductModel if symmetric else models.ResidualPairModel)(documents)


def _losses_of_members(regressor: Any, loss: Loss, data: models.Training) -> tuple[Any, ...]:
    """Return `losses` of `BoostingCV` for a named regressor."""
    if not isinstance(data.labels, np.ndarray):
        return (None,)
    if isinstance(loss, Choice):
        if regressor == "stacked":
            raise ValueError("regressor='stacked' estimates no choice probabilities. Use None.")
        return (LINEAR, POISSON) if regressor == "boosting" else (LINEAR, POISSON, POISSON_LABELS)
    # If few documents are relevant, as for purchases, clicks and choices, the Poisson deviance
    # ranks better than the squared error. Its scores are logarithms, but scores inside a model of
    # pairs must be in the unit of the targets.
    most = _SHARE_OF_FEW * data.queries.n_rows
    few_relevant = not loss.space.is_pairwise and 0 < _n_relevant(data) <= most
    if regressor == "boosting":
        return (POISSON,) if few_relevant else (None,)
    are_targets = isinstance(loss, PD | PDByScores) or loss.takes_judgements
    borda = () if are_targets else ("pd_by_scores",)
    labels = (POISSON, POISSON_LABELS) if few_relevant else (LABELS,)
    columns = numeric_columns(data.X) if regressor == "stacked" else []
    only_numbers = 0 < len(columns) == data.X.shape[1]
    suits = only_numbers and suits_forests(column_values(data.X, columns))
    return (None, *borda, *labels, *((FOREST,) if suits else ()))


def check_is_no_ranker(regressor: Any) -> None:
    """Raise an error if a regressor, or the last step of a pipeline, is a ranker of any library."""
    last = innermost_estimator(regressor)
    origins = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(last).__mro__]
    known = [_REGRESSORS[origin] for origin in origins if origin in _REGRESSORS]
    objective = None
    if hasattr(last, "get_params") and not isinstance(last, type):
        given = last.get_params(deep=False)
        names = [given[name] for name in _OBJECTIVES if isinstance(given.get(name), str)]
        objective = ([name for name in names if _RANKS.match(name)] or [None])[0]
    if objective and not known:
        raise ValueError(
            f"{type(last).__name__} has the ranking objective {objective!r}, but "
            "CalibratedRanker fits a regressor to targets that it computes. Remove the objective, "
            "and choose the loss of the ranker instead, such as loss='ndcg'."
        )
    if known or getattr(type(last), "_estimator_type", None) == "ranker":
        name = type(last).__name__
        raise TypeError(
            f"CalibratedRanker fits a regressor to targets that it computes, but {name} is a "
            "ranker. Pass a regressor instead"
            + (f": {known[0]} has the same parameters for trees." if known else ".")
        )


def chosen_context(context: Any, grouped: bool, X: Any) -> Any:
    """Return `context` for a model: "auto" becomes None if it cannot be used."""
    if isinstance(context, str) and context == "auto":
        if grouped and sparse.issparse(X):
            warn(
                "X is sparse, and context='auto' adds z-scores to dense tables only. The same "
                "table as a dense array would be ranked differently. Pass X.toarray() for "
                "z-scores, or context=None to rank both in the same way."
            )
        describable = numeric_columns(X) or category_columns(X)
        return "auto" if grouped and describable else None
    return context


def _n_relevant(data: models.Training) -> int:
    """Return the number of documents with more than the smallest label of their query."""
    labels, queries = data.labels, data.queries
    return int(np.count_nonzero(labels > queries.broadcast(queries.min(labels))))


# -------------------------------------------------------------------- what it is calibrated over

NOT_LEARNED = (
    "no distributions: neither the model nor a member of it learns the targets of the loss"
)
_NO_CYCLE = "the distributions whose expected preferences have no cycle"
_LOCAL = "no distributions in general: a local search can miss the best ranking of the predictions"
#: Sentence for each decoder class and method. "{}" is the sentence of the loss.
_DECODED = {
    (Sort, None): "{}",
    (PreferenceDecoder, "exact"): "{}",
    (PreferenceDecoder, "auto"): (
        "{}, which decoder='auto' does unless more than 16 documents form cycles"
    ),
    (PreferenceDecoder, "local_search"): _LOCAL,
    (PreferenceDecoder, "greedy_dag"): (
        f"{_NO_CYCLE} (Ramaswamy et al., 2013, theorem 7), by decoder='greedy_dag'"
    ),
    (PreferenceDecoder, "copeland"): (
        f"{_NO_CYCLE} and no tie, as decoder='copeland' is exact only there"
    ),
    (PreferenceDecoder, "sort"): f"{_NO_CYCLE} and no tie, as decoder='sort' is exact only there",
    (PreferenceDecoder, "borda"): (
        "no distributions in general: decoder='borda' is not exact, even without cycles"
    ),
    (AveragePrecisionDecoder, "exact"): "{}",
    (AveragePrecisionDecoder, "auto"): "{}, which decoder='auto' does for up to 16 documents",
    (AveragePrecisionDecoder, "local_search"): _LOCAL,
    (AveragePrecisionDecoder, "diagonal"): (
        "the distributions of P_reinforce (Ramaswamy et al., 2013, theorem 4), by "
        "decoder='diagonal'"
    ),
}

#: Parameters that name the loss of a regressor, and values for which the conditional mean minimises
#: the expected loss. Other values estimate medians, quantiles or the like.
_LOSS_PARAMETERS = ("loss", "criterion", "objective", "loss_function")
_OF_MEANS = {
    "binary:logistic", "count:poisson", "cross_entropy", "deprecated", "friedman_mse", "gamma",
    "l2", "l2_root", "mean_squared_error", "mse", "poisson", "reg:gamma", "reg:linear",
    "reg:logistic", "reg:squarederror", "reg:tweedie", "regression", "regression_l2", "rmse",
    "root_mean_squared_error", "squared_error", "tweedie", "xentropy",
}  # fmt: skip
#: Regressors of scikit-learn that never estimate means.
_NOT_OF_MEANS = {
    "AdaBoostRegressor", "HuberRegressor", "LinearSVR", "NuSVR", "PassiveAggressiveRegressor",
    "QuantileRegressor", "RANSACRegressor", "SVR", "TheilSenRegressor",
}  # fmt: skip
#: Transformers of targets that preserve means.
_AFFINE = ("NoneType", "MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
_LIBRARIES = ("sklearn", "lightgbm", "xgboost", "catboost")


def calibrated_over(loss: Loss, decoder: Any, model: models.Model) -> str:
    """Return the distributions over which a combination is calibrated, or what prevents it.

    The theorem of a loss assumes that predictions estimate the expected targets, and that rankings
    are optimal for the predictions. A regressor of medians, for example, violates the first
    assumption, and a decoder that is not exact violates the second.
    """
    if hasattr(model, "calibrated_over"):
        return str(model.calibrated_over)  # a student of another ranker
    if not model.learns_targets:
        return NOT_LEARNED  # a stack whose members all have other targets
    for part in model.learners():
        if wrong := _estimates_no_mean(part):
            return f"no distributions in general: {wrong} does not estimate expected targets"
    known = _DECODED.get((type(decoder), getattr(decoder, "method", None)))
    sentence = getattr(decoder, "calibrated_over", known)
    if sentence is None:
        return f"{loss.calibrated_over}, if {type(decoder).__name__} finds the best ranking"
    shrunken = getattr(loss, "_as_shrunken", str)
    return sentence.format(loss.calibrated_over) if "{}" in sentence else shrunken(sentence)


def _estimates_no_mean(regressor: Any) -> str:
    """Return the name of a regressor that does not estimate conditional means, else ""."""
    kind = type(regressor)
    if is_classifier(regressor):
        return ""
    names = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in kind.__mro__}
    if names & {f"sklearn.{name}" for name in _NOT_OF_MEANS}:
        return kind.__name__
    parameters = regressor.get_params(deep=False) if hasattr(regressor, "get_params") else {}
    if "sklearn.TransformedTargetRegressor" in names:
        shape = type(parameters["transformer"]).__name__
        changed = parameters["func"] is not None or shape not in _AFFINE
        return f"{kind.__name__} with changed targets" if changed else ""
    if not names & {f"{library}.{kind.__name__}" for library in _LIBRARIES}:
        return ""  # losses of unknown libraries are trusted
    for name in _LOSS_PARAMETERS:
        value = parameters.get(name)
        # CatBoost appends parameters after a colon: "Tweedie:variance_power=1.5"
        if isinstance(value, str) and value.lower().partition(":var")[0] not in _OF_MEANS:
            return f"{kind.__name__}({name}={value!r})"
    return ""
