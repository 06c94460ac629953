"""`StackedModel`: a combination of several models by stacking."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed

from sklearn_rankcal.models._boosting_cv import BoostingCV
from sklearn_rankcal.models._document import (
    DocumentModel,
    as_counts,
    learns_counts,
)
from sklearn_rankcal.models._folds import (
    LARGEST,
    check_cv,
    divide_queries,
    fits_at_once,
    split_queries,
    suits_forests,
    without_sparse_columns,
)
from sklearn_rankcal.models._member_weights import (
    LABELS,
    POISSON,
    POISSON_LABELS,
    nonnegative_weights,
    own_targets,
)
from sklearn_rankcal.models._model import Model
from sklearn_rankcal.models._training import (
    Training,
    Validation,
    poisson_deviance,
    squared_error,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._features import column_values, is_dataframe
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._threads import ROWS_FOR_THREADS
from sklearn_rankcal.utils._typing import Floats

Members = Sequence[tuple[str, Any, Any]]
# For more rows, limit the leaves of the default forest, whose trees would otherwise be most of the
# memory of a stack. The stack ranks equally well.
_ROWS_OF_FULL_TREES = 15_000
_MAX_LEAVES = 1000


class ClippedExtraTrees(ExtraTreesRegressor):
    """Extremely randomised trees that support infinity and numbers beyond float32.

    Numbers above 1e30 count as 1e30, and numbers below -1e30 as -1e30. Tables may be arrays or data
    frames of numbers.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ClippedExtraTrees:
        """Fit the trees."""
        return super().fit(_clipped(X), y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Predict the mean of the trees. Few rows skip scikit-learn's pool of threads."""
        X = self._validate_X_predict(_clipped(X))
        if X.shape[0] >= ROWS_FOR_THREADS:
            return super().predict(X)
        total = np.zeros(X.shape[0])
        for tree in self.estimators_:
            total += tree.tree_.predict(X)[:, 0]
        return total / len(self.estimators_)


def _clipped(X: Any) -> Any:
    """Return the numbers of X clipped to the limits. NaN stays NaN."""
    values = column_values(X, list(X.columns)) if is_dataframe(X) else X
    return values if suits_forests(values) else np.clip(values, -LARGEST, LARGEST)


class StackedModel(Model, _BaseComposition):
    """Combine the scores of several models, with weights learned on held-out queries.

    Each member has its own targets, regressor, context columns and centring. The queries are
    divided into `cv` folds, and each member is fitted `cv` times, each time without one fold.
    Non-negative least squares of the held-out scores on the targets of the ranker's own loss gives
    the weights of the members [1]_. For a new document, the score of a member is the mean over its
    `cv` models.

    Parameters
    ----------
    members : list of (name, loss, model) tuples, default=None
        The members. `loss` is what the member learns: None for the targets of the ranker's own
        loss, ``"labels"`` for the labels, or the name of a loss or a `Loss` for its targets.
        `model` is a `DocumentModel`. None means `default_members`.
    cv : int, default=5
        Number of folds of the queries, at least 2.
    alpha : float, default=30.0
        Strength of the ridge penalty that shrinks the weights towards equal weights of the
        standardised members. It is divided by the number of queries with several documents.
    n_jobs : int, default=None
        Number of fits to run in parallel, in threads. None means the number of a
        `joblib.parallel_config`, if there is one. Otherwise, it means one per processor (or
        ``OMP_NUM_THREADS``) for fewer than 20,000 rows, and 1 for more.
    verbose : int, default=0
        If positive, `fit` prints the time of each fit.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each member. The prediction of the stack is the sum over members of the weight
        times the score of the member minus its mean over the query.
    shares_ : dict of str to float
        Share of each member in the stack: the weights for scores scaled to the same spread within
        queries, divided by their sum.
    members_ : dict of str to list of models
        The `cv` fitted models of each member (one with validation queries). Empty if the weight is
        0.
    fold_of_query_ : ndarray of shape (n_queries,)
        Fold of each training query. It depends on the contents of the queries. Not defined with
        validation queries.

    Notes
    -----
    If one member converges to the conditional expectation of the targets, centred or not, the stack
    is consistent for the loss, whatever the other members are. A member that ranks perfectly but
    with other scores is not enough (:doc:`/theory` has an example).

    The cost is about cv - 1 fits of each member, and cv predictions of each member.

    References
    ----------
    .. [1] L. Breiman (1996). Stacked regressions. Machine Learning 24, 49-64.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DocumentModel, StackedModel
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> linear = DocumentModel(Ridge(), context="zscore")
    >>> stack = StackedModel([("targets", None, linear), ("labels", "labels", linear)])
    >>> ranker = CalibratedRanker(stack, loss="ndcg").fit(data.X, data.y, groups=data.groups)
    >>> list(ranker.model_.weights_)
    ['targets', 'labels']
    """

    needs_queries = True  # scores are centred in each query
    stops_early = True

    def __init__(
        self,
        members: Members | None = None,
        *,
        cv: int = 5,
        alpha: float = 30.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.members = members
        self.cv = cv
        self.alpha = alpha
        self.n_jobs = n_jobs
        self.verbose = verbose

    # used for nested parameters such as ``forest__regressor__max_depth``
    @property
    def _named_members(self) -> list[tuple[str, Any]]:
        try:
            return [(name, model) for name, _, model in self.members or ()]
        except (TypeError, ValueError):
            return []  # reported by fit; get_params must not raise

    @_named_members.setter
    def _named_members(self, pairs: list[tuple[str, Any]]) -> None:
        losses = {name: loss for name, loss, _ in self.members or ()}
        self.members = [(name, losses[name], model) for name, model in pairs]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of the stack.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members and their parameters.

        Returns
        -------
        params : dict
            Parameter names and values.
        """
        return self._get_params("_named_members", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack or of a member (``<name>__<parameter>``).

        Parameters
        ----------
        **params : dict
            Parameter names and values.

        Returns
        -------
        self : StackedModel
            The stack.
        """
        self._set_params("_named_members", **params)
        return self

    def fit(self, training: Training) -> Self:
        """Fit the members and their weights.

        Parameters
        ----------
        training : Training
            Documents, targets and queries, and labels if a member has its own loss. Weights are
            scaled to the same mean in each fit. With validation queries, each member is fitted once
            instead of `cv` times. The validation queries then choose the number of iterations of
            each boosted member, by the error of its own targets, and the weights.

        Returns
        -------
        self : StackedModel
            The fitted model.

        Raises
        ------
        ValueError
            If there are fewer queries than folds, if `members` is invalid, or if a member predicts
            NaN or infinity.
        """
        n_rows = training.queries.n_rows
        members = self._check_members(n_rows)
        training = replace(training, X=without_sparse_columns(training.X), graded_targets=False)
        learned = [replace(training, targets=own_targets(loss, training)) for _, loss, _ in members]
        self.__dict__.pop("fold_of_query_", None)
        if training.validation is not None:
            self._fit_once(members, learned, training.validation)
            return self
        self.fold_of_query_ = divide_queries(self, training)
        held_out = np.empty((n_rows, len(members)))
        each: list[list[Any]] = [[] for _ in members]
        # Step 1: members that choose their size by folds fit all folds themselves.
        several = [
            number
            for number, (_, _, model) in enumerate(members)
            if not isinstance(model, BoostingCV)
        ]
        for number, ((name, _, model), own) in enumerate(zip(members, learned, strict=True)):
            if number in several:
                continue
            fitted, started = clone(model), time.perf_counter()
            if fitted.n_jobs is None:
                fitted.set_params(n_jobs=self.n_jobs)
            with _naming_member(name):
                fitted.fit(own, self.fold_of_query_)
            held_out[:, number], each[number] = fitted.pop_held_out(), [fitted]
            self._report(name, started)

        # Step 2: fit the remaining members once without each fold.
        def fit_without(number: int, fold: int) -> tuple[Any, Floats, Any]:
            started = time.perf_counter()
            name, _, model = members[number]
            part = split_queries(learned[number], self.fold_of_query_ == fold)
            model = _with_other_seeds(clone(model), fold)
            fitted, scores = _fit_member(name, model, part.inside, part.outside)
            self._report(f"{name}, fold {fold + 1} of {self.cv}", started)
            return fitted, scores, part.held

        places = [(number, fold) for number in several for fold in range(self.cv)]
        fits = Parallel(n_jobs=fits_at_once(self.n_jobs, n_rows), prefer="threads")(
            delayed(fit_without)(*place) for place in places
        )
        for (number, _), (fitted, scores, rows) in zip(places, fits, strict=True):
            held_out[rows, number] = scores
            each[number].append(fitted)
        self._combine(members, each, held_out, training)
        return self

    def _fit_once(self, members: Members, learned: list[Training], validation: Validation) -> None:
        """Fit each member to all queries. Validation queries choose iterations and weights."""
        known = validation.held_out
        others = known.queries
        held_out = np.empty((others.n_rows, len(members)))
        each, n_iter = [], 0
        for number, ((name, loss, model), own) in enumerate(zip(members, learned, strict=True)):
            started = time.perf_counter()
            wanted = replace(known, targets=own_targets(loss, known))
            error = squared_error(wanted)
            if learns_counts(getattr(model, "regressor", None)):
                error = poisson_deviance(as_counts(wanted.targets, others), known.weight)
            stop = replace(validation, evaluate=error, steady=None, held_out=wanted)
            own = replace(own, validation=stop if model.stops_early else None)
            fitted, held_out[:, number] = _fit_member(name, clone(model), own, wanted)
            self._report(
                f"{name}: {counted(stop.n_iter, 'iteration')}" if stop.n_iter else name, started
            )
            n_iter += stop.n_iter
            each.append([fitted])
        self._combine(members, each, held_out, known)
        validation.record(self.predict(known.X, others))
        validation.n_iter = n_iter

    def _combine(
        self, members: Members, each: list[list[Any]], held_out: Floats, known: Training
    ) -> None:
        """Set the weights, and keep the fitted models of the members."""
        names = [name for name, _, _ in members]
        self.weights_, self.shares_ = nonnegative_weights(names, held_out, known, self.alpha)
        # members of weight 0 are not needed for predictions
        pairs = zip(names, each, strict=True)
        self.members_ = {name: some if self.weights_[name] else [] for name, some in pairs}

    def _check_members(self, n_rows: int) -> Members:
        check_cv(self.cv)
        check_number(self.alpha, "alpha", "[0, inf)")
        members = default_members(n_rows=n_rows) if self.members is None else self.members
        wanted = "members must be a list of (name, loss, model) tuples with different names"
        if not isinstance(members, list | tuple) or not members:
            raise ValueError(f"{wanted}; got {members!r}.")
        for member in members:
            if not isinstance(member, tuple) or len(member) != 3 or not isinstance(member[0], str):
                raise ValueError(f"{wanted}; got the member {member!r}.")
            name, _, model = member
            if not isinstance(model, Model) or model.space != SCORES:
                raise ValueError(
                    f"The model of the member {name!r} must predict scores, as a DocumentModel "
                    f"does; got {model!r}. Put a regressor into DocumentModel(regressor)."
                )
        names = [name for name, _, _ in members]
        if len(set(names)) < len(names):
            raise ValueError(f"{wanted}; got the names {names}.")
        self._validate_names(names)
        return members

    def _report(self, what: str, started: float) -> None:
        if self.verbose > 0:
            print(f"[StackedModel] {what}: {time.perf_counter() - started:.1f} s")

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document: the weighted sum of the centred members."""
        X = without_sparse_columns(X)
        total = np.zeros(queries.n_rows)
        for name, models in self.members_.items():
            for model in models:
                total += self.weights_[name] / len(models) * model.predict(X, queries)
        return queries.center(total)

    @property
    def learns_targets(self) -> bool:  # type: ignore[override]
        """Whether a member learns the targets of the ranker's own loss."""
        return self.members is None or any(loss is None for _, loss, _ in self.members)

    def own_importances(self) -> Floats:
        """Return `feature_importances_`."""
        return self.feature_importances_

    def own_coefficients(self) -> Floats:
        """Raise AttributeError, because a stack has no coefficients."""
        raise AttributeError(
            "A stack has no coef_. The models of its members are in model_.members_."
        )

    def why_no_table(self) -> str:
        """Return the end of an error message: each member has its own table."""
        return (
            f"is a stack of {len(self.members_)} models in model_.members_, each with its own "
            "table. distill replaces it with one regressor"
        )

    @property
    def feature_importances_(self) -> Floats:
        """Importances per column of X: the mean over the members, weighted by `shares_`.

        The importances of each regressor are first divided by their sum. Raises AttributeError if a
        member of positive weight has a regressor without importances.
        """
        total: Any = 0.0
        for name, models in self.members_.items():
            for model in models:
                own = model.own_importances()
                total = total + self.shares_[name] * own / (own.sum() or 1.0)
        return total / (total.sum() or 1.0)


def _fit_member(name: str, model: Any, inside: Training, outside: Training) -> tuple[Any, Floats]:
    """Fit a member to the training queries; return it and its scores of the held-out queries."""
    with _naming_member(name):
        model.fit(inside)
        scores = model.predict(outside.X, outside.queries)
    if not np.isfinite(scores).all():
        raise ValueError(f"The member {name!r} of the stack predicts NaN or infinity.")
    return model, scores


@contextmanager
def _naming_member(name: str) -> Iterator[None]:
    """Add the name of the member to errors."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This happened in the member {name!r} of the stack.")
        raise


def default_members(
    *,
    relevance: bool = True,
    borda: bool = True,
    few_relevant: bool = False,
    forest: bool = True,
    context: Any = "auto",
    center: bool = True,
    n_rows: int | None = None,
) -> list[tuple[str, Any, Any]]:
    """Get the default members of `StackedModel`.

    There are up to four, in this order: boosting (`BoostingCV`) for the targets of the ranker's own
    loss, for net Borda scores, and for the labels (from the columns of X without context columns),
    and a forest for the labels. For measurements, see :ref:`bench-lambdamart`.

    Parameters
    ----------
    relevance : bool, default=True
        Whether labels are relevance grades. If not, the last two members are omitted.
    borda : bool, default=True
        Whether to include the member for net Borda scores. For pairwise disagreement, it would be
        the same as the first.
    few_relevant : bool, default=False
        Whether few documents are relevant. Two members that learn the targets and the labels by
        their Poisson deviance then replace the third member.
    forest : bool, default=True
        Whether to include the forest. It needs numeric columns. For it, numbers beyond 1e30 count
        as 1e30.
    context : None, str, list of str or "auto", default="auto"
        Context columns of the members that learn targets.
    center : bool, default=True
        Whether the first two members learn centred targets.
    n_rows : int, default=None
        Number of training rows. For more than 15,000, trees of the forest have at most 1000 leaves.
        None means no limit.

    Returns
    -------
    members : list of (name, loss, model) tuples
        The members.

    Examples
    --------
    >>> from sklearn_rankcal.models import default_members
    >>> [name for name, loss, model in default_members()]
    ['targets', 'borda', 'labels', 'forest']
    """

    def boosting(*losses: Any) -> BoostingCV:
        return BoostingCV(losses, context=context, center=center)

    members: list[tuple[str, Any, Any]] = [("targets", None, boosting(None))]
    if borda:
        members.append(("borda", None, boosting("pd_by_scores")))
    if relevance:
        learned = (POISSON, POISSON_LABELS) if few_relevant else (LABELS,)
        members += [(name, None, boosting(name)) for name in learned]
    if relevance and forest:
        limit = n_rows is not None and n_rows > _ROWS_OF_FULL_TREES
        trees = ClippedExtraTrees(
            20,
            min_samples_leaf=5,
            max_features=0.2,
            max_leaf_nodes=_MAX_LEAVES if limit else None,
            random_state=0,
        )
        members.append(("forest", LABELS, DocumentModel(trees, center=False)))
    return members


def _with_other_seeds(model: Any, number: int) -> Any:
    """Add a number to each integer ``random_state``, so that folds differ."""
    for name, value in model.get_params().items():
        if name.split("__")[-1] == "random_state" and isinstance(value, int | np.integer):
            model.set_params(**{name: (int(value) + number) % 2**32})
    return model
