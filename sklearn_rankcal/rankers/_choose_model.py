"""Choose the model that `CalibratedRanker` fits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_rankcal import models
from sklearn_rankcal.losses import PD, Loss, PDByScores, get_loss
from sklearn_rankcal.models._column_parameters import refuse_parameters
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.models._folds import suits_forests
from sklearn_rankcal.models._member_weights import FOREST, LABELS, POISSON, POISSON_LABELS
from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._features import category_columns, column_values, numeric_columns
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._wrapped import innermost_estimator

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


def make_model(
    ranker: Any, loss: Loss, data: models.Training, held_out: models.Training | None = None
) -> Any:
    """Check `regressor` and `context`, and return the model to fit, without seeds."""
    regressor, space = ranker.regressor, loss.space
    inner = getattr(regressor, "regressor", None) if models.is_model(regressor) else regressor
    check_is_no_ranker(inner)
    if models.is_model(regressor):
        if regressor.space != space:
            raise ValueError(
                f"{type(regressor).__name__} predicts {regressor.space}, but "
                f"loss={ranker.loss!r} needs {space}."
            )
        return clone(regressor)
    check_context(None if ranker.context == "auto" else ranker.context)
    named = is_named(regressor)
    if space.is_pairwise and not named:
        refuse_parameters(
            regressor,
            f"loss={ranker.loss!r} fits the regressor to pairs of documents, which have other "
            "columns, and pairs keep no monotone constraint. Pass a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
        )
        return models.PairModel(clone(regressor), symmetric=space.symmetric)
    context = chosen_context(ranker.context, ranker.grouped_, data.X)
    relevance = isinstance(data.labels, np.ndarray)
    # scores inside a model of pairs must be in the unit of the targets, not logarithms
    few_relevant = relevance and not space.is_pairwise and _few_are_relevant(data)
    stacked = isinstance(regressor, str) and regressor == "stacked"
    enough = has_folds(ranker, data) if held_out is None else held_out.by_targets
    documents: Any
    if stacked or (named and enough):
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
        if named:
            regressor = models.default_regressor(data.X.shape[0], stops_early=held_out is not None)
        documents = models.DocumentModel(clone(regressor), center=ranker.center, context=context)
    return models.default_model(space, documents)


def is_named(regressor: Any) -> bool:
    """Whether `regressor` is None or a name."""
    return regressor is None or isinstance(regressor, str)


def model_to_ask(ranker: Any) -> models.Model:
    """Return a model that knows which tables the ranker supports, before seeing data."""
    regressor = ranker.regressor
    if models.is_model(regressor):
        return regressor
    if get_loss(ranker.loss).space.is_pairwise:
        return PairwiseModel()
    if is_named(regressor):
        return models.DocumentModel()
    return models.DocumentModel(regressor, context=ranker.context)


def check_is_no_ranker(regressor: Any) -> None:
    """Raise an error if a regressor, or the last step of a pipeline, is a ranker of any library."""
    last = innermost_estimator(regressor)
    origins = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(last).__mro__]
    known = [_REGRESSORS[origin] for origin in origins if origin in _REGRESSORS]
    objective = _ranking_objective(last)
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


def _ranking_objective(regressor: Any) -> str:
    """Return the ranking objective of a regressor of another library, or ""."""
    if not hasattr(regressor, "get_params") or isinstance(regressor, type):
        return ""
    given = regressor.get_params(deep=False)
    names = [given.get(name) for name in _OBJECTIVES]
    return next((one for one in names if isinstance(one, str) and _RANKS.match(one)), "")


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


def has_folds(ranker: Any, data: models.Training) -> bool:
    """Whether there are enough queries to choose the size of boosting."""
    n_informative = np.count_nonzero(data.queries.sizes > 1)
    return bool(ranker.grouped_ and n_informative >= _MIN_QUERIES)


def is_large(ranker: Any, data: models.Training) -> bool:
    """Whether one query in seven is enough to choose the size of boosting."""
    queries = data.queries
    if not ranker.grouped_ or queries.n_rows < _ROWS_TO_HOLD_OUT:
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
