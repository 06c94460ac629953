"""Warnings about data from which nothing can be learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._positional import LINEAR_GAIN
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._predict import predicted_pairs, sufficient_scores
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._row_hashes import hash_rows

#: Larger labels are probably amounts. The largest grade of LightGBM is 30, of XGBoost 31.
LARGEST_GRADE = 31
_ROWS_TO_TRY = 2000


def warn_if_rows_are_queries(queries: Queries) -> None:
    """Warn if every query has a single row."""
    if queries.n_queries > 1 and queries.sizes.max() == 1:
        warn(
            f"Each of the {counted(queries.n_queries, 'row')} is a query of its own, so there is "
            "nothing to rank. The parameter groups has the query id of each row, not the row "
            "number."
        )


def warn_if_nothing_was_learned(ranker: Any, data: Training) -> None:
    """Warn if the fitted ranker ties all documents of each training query, and say why."""
    several = data.queries.sizes > 1
    if not several.any():
        return  # see warn_if_rows_are_queries
    nothing = f"{type(ranker).__name__} has learned nothing"
    labels = data.labels
    if isinstance(labels, np.ndarray) and data.queries.have_equal(labels):
        n_queries = data.queries.n_queries
        copied = n_queries > 1 and len(np.unique(labels)) == n_queries
        warn(
            f"{nothing}, because all documents of {'each' if n_queries > 1 else 'the'} query have "
            "the same label. "
            + (
                "Did you pass the labels as groups? groups must have the query id of each row."
                if copied
                else "Every ranking of them is equally good."
            )
        )
        return
    # smallest queries first: a ranker that ties them has seldom learned anything
    sizes = data.queries.sizes
    few = np.zeros(len(sizes), dtype=bool)
    by_size = np.argsort(np.where(several, sizes, sizes.max() + 1), kind="stable")
    few[by_size[np.cumsum(sizes[by_size]) <= _ROWS_TO_TRY]] = True
    few &= several
    if few.any() and not _ties_all(ranker, data.take_queries(few)):
        return
    # do not predict all pairs of large queries
    if ranker.loss_.space.is_pairwise:
        if not few.any():
            return
    elif not few.all() and not _ties_all(ranker, data):
        return
    if data.queries.have_equal(hash_rows(data.X, np.arange(data.X.shape[0]))):
        why = "no column of X has different values in a query"
    else:
        model = type(getattr(ranker.model_, "regressor_", ranker.model_)).__name__
        why = (
            f"{model} predicts the same for all documents of a query. For trees, the smallest "
            f"number of rows per leaf may be too large for {data.X.shape[0]:,} rows "
            "(min_child_samples of LightGBM and min_samples_leaf of histogram boosting are 20 by "
            "default). For linear models, the penalty may be too large"
        )
    warn(f"{nothing}: {why}. Documents are ranked by a hash of the features, or by row.")


def _ties_all(ranker: Any, data: Training) -> bool:
    """Return whether the predictions leave all documents of each query tied."""
    try:
        scores = sufficient_scores(ranker, data.X, data.queries)
        if scores is not None:
            return data.queries.have_equal(scores)
        preferences = ranker.loss_.space == PAIRS
        for _, _, u in predicted_pairs(ranker, data.X, data.queries):
            if u.any() and (preferences or not is_largest(u).all()):
                return False
    except Exception:
        return False  # a regressor that cannot predict raises in predict, not in fit
    return True


def warn_if_labels_are_amounts(loss: Loss, labels: Any) -> None:
    """Warn if the gain is 2**y - 1 and a label y is above `LARGEST_GRADE`."""
    if loss.takes_judgements or isinstance(labels, Preferences):
        return
    gain = getattr(loss, "gain", None)
    if isinstance(gain, str) and gain == "exp2" and labels.max() > LARGEST_GRADE:
        warn(
            f"A label is above {LARGEST_GRADE}. With the gain 2**y - 1, only the largest labels of "
            f"a query matter. Are the labels amounts? {LINEAR_GAIN}",
        )


def warn_if_split_cuts_queries(regressor: Any, queries: Queries) -> None:
    """Warn if the regressor, or one inside it, holds out rows for its own early stopping."""
    if queries.n_queries == 1 or not hasattr(regressor, "get_params"):
        return
    for part in (regressor, *regressor.get_params().values()):
        if not hasattr(part, "get_params") or isinstance(part, type):
            continue
        parameters = part.get_params(deep=False)
        # None: early stopping uses the training rows
        if parameters.get("validation_fraction") is None:
            continue
        stops = parameters.get("early_stopping", parameters.get("n_iter_no_change") is not None)
        if stops == "auto":  # histogram boosting of scikit-learn
            stops = queries.n_rows > 10_000
        if isinstance(stops, bool | np.bool_) and stops:
            warn(
                f"{type(part).__name__} stops early on rows that it holds out itself. This splits "
                "queries between training and validation, and does not use the measure of the "
                "loss. Turn it off, for example with early_stopping=False. To hold out whole "
                "queries for boosted regressors, use validation_queries of CalibratedRanker.",
            )
            return
