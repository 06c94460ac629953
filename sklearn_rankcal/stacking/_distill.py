"""Replace a fitted ranker with one regressor that learned its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._calibrated import CalibratedRanker
from sklearn_rankcal.rankers._choose_model import check_is_no_ranker, chosen_context
from sklearn_rankcal.rankers._input import read_table
from sklearn_rankcal.rankers._wrapped_predictions import predict_scores
from sklearn_rankcal.stacking._distilled import DistilledModel
from sklearn_rankcal.utils._features import insert_column, used_categories
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._wrapped import innermost_estimator

_UNKNOWN = "no distributions: the teacher does not say what it was fitted to"


@checks_keywords
def distill(
    ranker: Any,
    X: Any,
    groups: ArrayLike | None = None,
    regressor: Any = None,
    *,
    context: Any = "auto",
    n_copies: int | None = None,
    swap: float = 0.3,
    random_state: int = 0,
    verbose: int = 0,
) -> CalibratedRanker:
    """Fit a small, fast ranker that imitates a fitted ranker.

    A regressor, the student, is fitted to the scores of the ranker, the teacher. The result ranks
    like the teacher if the regressor can represent its scores, and is as small and fast as the
    regressor. No labels are needed, so you can add queries without labels to X. Read more in
    :ref:`distilling`.

    Parameters
    ----------
    ranker : estimator
        The teacher: a fitted ranker with scores, a pipeline or search that ends in one, or a ranker
        of another library, such as `LGBMRanker`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        Rows with the columns that the teacher was fitted to.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, in any order. With None, the queries are read from the `group_column`
        of the teacher, if it has one. Otherwise, all rows are one query.
    regressor : estimator, default=None
        The student: a regressor of any library. None means `models.default_student`.
    context : None, "auto", str or list of str, default="auto"
        Context columns of the student, as in `CalibratedRanker`. With None, the student scores one
        row at a time, as most search engines do.
    n_copies : int, default=None
        Number of modified copies of X that the student also learns. None means 1, or more for few
        rows (see `models.DistilledModel`).
    swap : float, default=0.3
        Probability that a cell of a copy gets the value of another row.
    random_state : int, default=0
        Seed for the copies.
    verbose : int, default=0
        If positive, print each step and its time.

    Returns
    -------
    student : CalibratedRanker
        A fitted ranker. ``student.model_.regressor_`` is the fitted regressor, and
        ``student.model_.unexplained_`` is the share of the variance of the teacher's scores that it
        does not explain.

    Raises
    ------
    TypeError
        If the teacher has no scores because its loss is on pairs of documents, or if the student is
        a classifier or a ranker.
    ValueError
        If X does not have the columns of the teacher, or has a category that it was not fitted to.
    NotFittedError
        If the teacher is not fitted.

    See Also
    --------
    sklearn_rankcal.models.DistilledModel : Teacher and student in one `fit`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker, distill
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker().fit(data.X, data.y, groups=data.groups)
    >>> student = distill(ranker, data.X, data.groups, Ridge(), context=None)
    >>> student.model_.regressor_.coef_.shape == (data.X.shape[1],)
    True
    """
    check_is_no_ranker(regressor)
    teacher = innermost_estimator(ranker)
    name = getattr(teacher, "group_column", None)
    loss = getattr(teacher, "loss_", "ndcg")
    student = CalibratedRanker(
        regressor,
        loss=loss if isinstance(loss, Loss) else "ndcg",
        context=context,
        group_column=name,
        random_state=random_state,
        verbose=verbose,
    )
    table, queries = read_table(student, X, groups, reset=True)
    _check_categories(teacher, table)
    student.grouped_ = queries is not None
    if queries is None:
        queries = Queries.single(table.shape[0])

    def scores(rows: Any) -> NDArray[np.float64]:
        if rows is table:
            rows = X
        elif name is not None:
            rows = insert_column(rows, list(X.columns).index(name), X, name)
        return predict_scores(ranker, rows, groups)

    model = DistilledModel(
        None,
        regressor,
        context=chosen_context(context, student.grouped_, table),
        n_copies=n_copies,
        swap=swap,
        random_state=random_state,
        verbose=verbose,
    )
    student.model_ = model.learn(scores, Training(table, None, queries))
    student.loss_ = get_loss(student.loss)
    student.decoder_ = get_decoder("auto", student.loss_.space)
    student.calibrated_over_ = getattr(teacher, "calibrated_over_", _UNKNOWN)
    student.n_queries_, student.n_queries_dropped_ = queries.n_queries, 0
    return student


def _check_categories(teacher: Any, table: Any) -> None:
    """Raise ValueError for categories that the teacher was not fitted to."""
    known = getattr(teacher, "_categories", {})
    for name, categories in used_categories(table).items():
        new = sorted(categories - known.get(name, categories), key=str)
        if new:
            raise ValueError(
                f"Column {name!r} has categories that the teacher was not fitted to, such as "
                f"{new[0]!r}. Remove these rows, or set these entries to missing."
            )
