"""Choose the model that `CalibratedRanker` fits, and say over what it is calibrated."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from sklearn_rankcal import models
from sklearn_rankcal.decoders import AveragePrecisionDecoder, PreferenceDecoder, Sort
from sklearn_rankcal.losses import PD, Loss, PDByScores
from sklearn_rankcal.models._column_parameters import refuse_parameters
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.models._held_out import suits_forests
from sklearn_rankcal.models._member_weights import FOREST, LABELS, POISSON, POISSON_LABELS
from sklearn_rankcal.utils._estimators import clone, innermost_estimator
from sklearn_rankcal.utils._features import category_columns, column_values, numeric_columns
from sklearn_rankcal.utils._messages import warn

#: Names that `regressor` can be instead of an estimator.
NAMES = ("boosting", "stacked")
# fewest queries with several documents for folds
_MIN_QUERIES = 5
# For more data, one query in seven is held out instead of folds, in a third of the time. There must
# be enough relevant documents: one purchase per page of offers is little information.
_ROWS_TO_HOLD_OUT = 20_000
_RELEVANT_TO_HOLD_OUT = 2_000
_FEWEST_TO_HOLD_OUT = 70
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
    named = regressor is None or isinstance(regressor, str)
    if not named:
        check_is_no_ranker(regressor)
    if space.is_pairwise and not named:
        refuse_parameters(
            regressor,
            f"loss={ranker.loss!r} fits the regressor to pairs of documents, which have other "
            "columns, and pairs keep no monotone constraint. Pass a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
        )
        return models.PairModel(clone(regressor), symmetric=space.symmetric)
    context = chosen_context(ranker.context, grouped, data.X)
    if not named:
        return models.DocumentModel(clone(regressor), center=ranker.center, context=context)
    relevance = isinstance(data.labels, np.ndarray)
    # scores inside a model of pairs must be in the unit of the targets, not logarithms
    few_relevant = relevance and not space.is_pairwise and _few_are_relevant(data)
    stacked = regressor == "stacked"
    enough = grouped and has_folds(data) if held_out is None else held_out.by_targets
    documents: Any
    if stacked or enough:
        losses: tuple[Any, ...] = (POISSON,) if few_relevant else (None,)
        if regressor != "boosting":
            losses = (None,)
            if relevance:
                borda = ("pd_by_scores",) if _has_gains(loss) else ()
                labels = (POISSON, POISSON_LABELS) if few_relevant else (LABELS,)
                forest = (FOREST,) if stacked and _suits_a_forest(data.X) else ()
                losses = (None, *borda, *labels, *forest)
        documents = models.BoostingCV(
            losses,
            center=ranker.center,
            context=context,
            cv=5 if stacked and data.queries.n_rows <= _ROWS_OF_FIVE_FOLDS else 3,
            n_jobs=ranker.n_jobs,
        )
    else:
        regressor = models.default_regressor(data.X.shape[0], stops_early=held_out is not None)
        documents = models.DocumentModel(regressor, center=ranker.center, context=context)
    if space.is_pairwise:
        return (models.ResidualProductModel if space.symmetric else models.ResidualPairModel)(
            documents
        )
    return documents


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


def has_folds(data: models.Training) -> bool:
    """Whether there are enough queries to choose the size of boosting."""
    return bool(np.count_nonzero(data.queries.sizes > 1) >= _MIN_QUERIES)


def is_large(data: models.Training) -> bool:
    """Whether one query in seven is enough to choose the size of boosting."""
    queries = data.queries
    if queries.n_rows < _ROWS_TO_HOLD_OUT:
        return False
    n_relevant = _n_relevant(data) if isinstance(data.labels, np.ndarray) else queries.n_rows
    n_queries = np.count_nonzero(queries.sizes > 1)
    return bool(n_queries >= _FEWEST_TO_HOLD_OUT and n_relevant >= _RELEVANT_TO_HOLD_OUT)


def _few_are_relevant(data: models.Training) -> bool:
    """Whether few documents, but not none, are relevant, as for purchases, clicks and choices.

    The Poisson deviance then ranks better than the squared error.
    """
    return 0 < _n_relevant(data) <= _SHARE_OF_FEW * data.queries.n_rows


def _n_relevant(data: models.Training) -> int:
    """Return the number of documents with more than the smallest label of their query."""
    labels, queries = data.labels, data.queries
    return int(np.count_nonzero(labels > queries.broadcast(queries.min(labels))))


def _has_gains(loss: Loss) -> bool:
    """Whether net Borda scores differ from the targets of the loss."""
    return not isinstance(loss, PD | PDByScores) and not loss.takes_judgements


def _suits_a_forest(X: Any) -> bool:
    """Whether all columns are numbers that a forest supports."""
    columns = numeric_columns(X)
    return len(columns) == X.shape[1] and suits_forests(column_values(X, columns))


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
