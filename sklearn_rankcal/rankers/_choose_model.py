"""The model that `CalibratedRanker` fits: the user's own, or the one that suits the data."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_rankcal.losses import PD, Loss, PDByScores
from sklearn_rankcal.models import (
    DistilledModel,
    DocumentModel,
    PairModel,
    StackedModel,
    default_members,
    default_model,
    default_regressor,
    is_model,
)
from sklearn_rankcal.models._column_parameters import refuse_parameters
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.models._folds import suits_forests
from sklearn_rankcal.models._stacked import boosted_members
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._catboost import clone
from sklearn_rankcal.utils._features import category_columns, column_values, numeric_columns
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._wrapped import innermost_estimator

#: Names that the parameter `regressor` takes in the place of an estimator.
NAMES = ("boosting", "distilled", "stacked")
# A student of the stack is the default between these limits. Below, there are not two queries of
# several documents for each fold of the teacher. Above, the fit of a stack takes more than five
# times as long as that of LambdaMART. The user guide has the measurements under "Stacking".
_MIN_QUERIES = 5
_MAX_ROWS = 100_000
# From so many rows and queries on, two boosted members are the default, and one query of seven is
# held out. They rank as well as the student there, and their fit takes a fraction of the time.
_ROWS_TO_HOLD_OUT = 20_000
_FEWEST_TO_HOLD_OUT = 70
# A stack of five folds ranks a little better than one of three, and takes twice as long. A student
# keeps about .001 of NDCG@10 of this gain, which is not worth the time.
_ROWS_OF_FIVE_FOLDS = 20_000
#: Parameters with objectives, and objectives that rank.
_OBJECTIVES = ("objective", "objective_type", "loss_function", "application", "app", "loss")
_RANKS = re.compile(
    r"rank:|lambdarank|(rank_)?xe_?ndcg|YetiRank|LambdaMart|PairLogit|Query|StochasticRank"
)
#: Rankers of other libraries, and the regressors with the same parameters.
_REGRESSORS = {
    ("lightgbm", "LGBMRanker"): "LGBMRegressor",
    ("xgboost", "XGBRanker"): "XGBRegressor",
    ("catboost", "CatBoostRanker"): "CatBoostRegressor",
}


def make_model(
    ranker: Any, loss: Loss, data: TrainingData, held_out: TrainingData | None = None
) -> Any:
    """Return the model that a `CalibratedRanker` fits, without seeds; check `regressor` and
    `context`.
    """
    regressor, space = ranker.regressor, loss.space
    inner = getattr(regressor, "regressor", None) if is_model(regressor) else regressor
    check_is_no_ranker(inner)
    if is_model(regressor):
        if regressor.space != space:
            raise ValueError(
                f"{type(regressor).__name__} predicts {regressor.space}, but "
                f"loss={ranker.loss!r} needs {space}."
            )
        return clone(regressor)
    check_context(None if ranker.context == "auto" else ranker.context)
    named = regressor is None or isinstance(regressor, str)
    if space.is_pairwise and not named:
        refuse_parameters(
            regressor,
            f"loss={ranker.loss!r} fits the regressor to pairs of documents, which have other "
            "columns, and pairs keep no monotone constraint. Pass a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
        )
        return PairModel(clone(regressor), symmetric=space.symmetric)
    context = chosen_context(ranker.context, ranker.grouped_, data.X)
    pays = regressor is None and held_out is None and _pays(ranker, data)
    if pays or (named and regressor in ("distilled", "stacked")):
        members = default_members(
            relevance=isinstance(data.labels, np.ndarray),
            borda=_has_gains(loss),
            forest=_suits_a_forest(data.X),
            context=context,
            center=ranker.center,
            n_rows=data.queries.n_rows,
        )
        five = regressor == "stacked" and data.queries.n_rows <= _ROWS_OF_FIVE_FOLDS
        documents: Any = StackedModel(members, cv=5 if five else 3, n_jobs=ranker.n_jobs)
        if regressor != "stacked":
            documents = DistilledModel(documents, context=context)
    elif regressor is None and held_out is not None and _suits_two(ranker, loss, data, held_out):
        members = boosted_members(data.queries.n_rows, context=context, center=ranker.center)
        documents = StackedModel(members)
    else:
        if named:
            regressor = default_regressor(data.X.shape[0], stops_early=held_out is not None)
        documents = DocumentModel(clone(regressor), center=ranker.center, context=context)
    return default_model(space, documents)


def check_is_no_ranker(regressor: Any) -> None:
    """Raise an error if a regressor, or the last step of a pipeline, is a ranker of any library."""
    last = innermost_estimator(regressor)
    origins = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(last).__mro__]
    known = [_REGRESSORS[origin] for origin in origins if origin in _REGRESSORS]
    objective = _ranking_objective(last)
    if objective and not known:
        raise ValueError(
            f"{type(last).__name__} has the objective {objective!r} of a ranker, but "
            "CalibratedRanker fits a regressor to targets that it computes. Leave the objective "
            "out, and pass loss='ndcg' or another one to the ranker."
        )
    if known or getattr(type(last), "_estimator_type", None) == "ranker":
        name = type(last).__name__
        raise TypeError(
            f"CalibratedRanker fits a regressor to targets that it computes, and {name} is a "
            "ranker. Pass the regressor and not the ranker"
            + (f": {known[0]} has the same parameters of the trees." if known else ".")
        )


def _ranking_objective(regressor: Any) -> str:
    """Return the name of an objective that ranks, of a regressor of another library, or ""."""
    if not hasattr(regressor, "get_params") or isinstance(regressor, type):
        return ""
    given = regressor.get_params(deep=False)
    names = [given.get(name) for name in _OBJECTIVES]
    return next((one for one in names if isinstance(one, str) and _RANKS.match(one)), "")


def chosen_context(context: Any, grouped: bool, X: Any) -> Any:
    """Return the parameter `context` of a model: "auto" becomes None where it cannot be used."""
    if isinstance(context, str) and context == "auto":
        if grouped and sparse.issparse(X):
            warn(
                "X is sparse, and context='auto' adds z-scores to dense tables only. The same "
                "table as a dense array is ranked differently. Pass X.toarray() for z-scores, or "
                "context=None, which ranks both in the same way."
            )
        describable = numeric_columns(X) or category_columns(X)
        return "auto" if grouped and describable else None
    return context


def is_large(ranker: Any, *parts: TrainingData) -> bool:
    """Whether held-out queries choose the number of trees of the default.

    No fixed number is right there: without noise a thousand trees pay, and with few relevant
    documents fewer than a hundred. Held-out queries cost little. The data may be in two parts.
    """
    n_rows = sum(part.queries.n_rows for part in parts)
    n_queries = sum(int(np.count_nonzero(part.queries.sizes > 1)) for part in parts)
    return (
        bool(ranker.grouped_) and n_rows >= _ROWS_TO_HOLD_OUT and n_queries >= _FEWEST_TO_HOLD_OUT
    )


def _suits_two(ranker: Any, loss: Loss, data: TrainingData, held_out: TrainingData) -> bool:
    """Whether two boosted members are the default where queries are held out."""
    scores = loss.space == SCORES and isinstance(data.labels, np.ndarray)
    return scores and _has_gains(loss) and is_large(ranker, data, held_out)


def _has_gains(loss: Loss) -> bool:
    """Whether the targets of a loss are others than net Borda scores, which can be a member."""
    return not isinstance(loss, PD | PDByScores) and loss.takes == "relevance"


def _pays(ranker: Any, data: TrainingData) -> bool:
    """Whether the stack is worth its time for this data."""
    if not isinstance(data.labels, np.ndarray):
        # The only member would be the one that learns the targets: five fits, of which the mean
        # ranks no better than a single fit.
        return False
    # A query of one document says nothing about the weights of the members.
    enough = np.count_nonzero(data.queries.sizes > 1) >= _MIN_QUERIES
    small = data.queries.n_rows < _MAX_ROWS and not is_large(ranker, data)
    return ranker.grouped_ and bool(enough) and small


def _suits_a_forest(X: Any) -> bool:
    """Whether all columns are numbers that a forest can read."""
    columns = numeric_columns(X)
    return len(columns) == X.shape[1] and suits_forests(column_values(X, columns))
