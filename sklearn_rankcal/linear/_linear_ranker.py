"""LinearRanker: labels -> utilities -> linear scores that minimise a surrogate -> ranking."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.linear._conditional_logit import ChoiceSummary, NotIdentified
from sklearn_rankcal.linear._linear_model import SOLVERS, STEP_SIZES, LinearModel
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.rankers._advice import LARGEST_GRADE, warn_of_amounts
from sklearn_rankcal.rankers._fit import fit, read_rows
from sklearn_rankcal.rankers._input import TableNeeds, read_labelled
from sklearn_rankcal.rankers._query_ranker import FOREIGN_WITHOUT_VALIDATION, QueryRanker
from sklearn_rankcal.surrogates import Softmax, Surrogate, get_surrogate
from sklearn_rankcal.utils._messages import check_number, checks_keywords
from sklearn_rankcal.utils._numbers import Floats, check_unit
from sklearn_rankcal.utils._sklearn_compat import Interval, StrOptions, _fit_context, available_if


def _is_stochastic(ranker: LinearRanker) -> bool:
    if ranker.solver != "sgd":
        raise AttributeError(
            f"partial_fit needs solver='sgd'; this LinearRanker has solver={ranker.solver!r}."
        )
    return True


class LinearRanker(QueryRanker):
    """Rank by linear scores that minimise a convex surrogate of the loss.

    The scores X w + b minimise the sum over queries of w_q psi(v_q, X_q w + b), plus alpha / 2
    ||w||^2. Here psi is the surrogate, v_q are the utilities that the loss assigns to the labels of
    query q, and w_q is the mean weight of its rows.

    With enough data, the rankings become optimal for the loss under two conditions: the surrogate
    is order preserving, and linear scores can minimise its expected value in each query (theorem
    3.2 of Calauzènes et al., 2013, in :doc:`/theory`).

    Parameters
    ----------
    surrogate : str or Surrogate, default="softmax"
        What to minimise: a name in `surrogates.SURROGATES`, or an object such as
        ``PointwiseMargin(eta=2)``. ``"ranksvm"``, ``"ranknet"`` and ``Softmax("own")`` (linear
        ListNet) are the usual linear rankers. They are not calibrated.
    loss : str or Loss, default="ndcg"
        The loss that defines the utilities, such as ``"ndcg@10"``, ``"dcg"``, ``"err"`` or
        ``"map_by_scores"``, but not ``"pd"`` or ``"map"``. If the labels are preferences,
        ``"pd_by_scores"`` converts them to utilities, whereas surrogates such as ``"ranknet"`` and
        ``"difference_graph"`` use them directly.
    alpha : float, default=1.0
        Weight of the penalty on the coefficients, which are in the units of X. The penalty matters
        less with more queries, because the other term is a sum over queries. 0 is conditional logit
        (see Notes), only for ``"softmax"`` with up to 1,000 columns.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        L-BFGS on all queries, or the composite stochastic gradient method of [1]_. For
        ``"softmax"`` with alpha=0 or up to 100 columns, ``"lbfgs"`` uses Newton's method.
    max_iter : int, default=None
        Maximum number of iterations of ``"lbfgs"`` (None means 1,000), or number of passes of
        ``"sgd"`` over the queries (None means 10).
    tol : float, default=1e-4
        Tolerance of L-BFGS. It stops when no entry of the gradient is larger than `tol` times the
        length of the gradient at w = 0, measured in the scaled coordinates (see Notes).
    step_size : {"sqrt", "inverse"}, default="sqrt"
        Size of step t of ``"sgd"``, where c is `largest_step`:

        - ``"sqrt"``: c / sqrt(t). The result is the mean of all iterates.
        - ``"inverse"``: 1 / (mu t + 1 / c), where mu is the strong convexity of the penalty. The
          result is the mean of the iterates with weights t + 1 / (mu c).
    largest_step : float, default=None
        The constant c of the step sizes. If None, use the power of 4 that gives the smallest
        objective on up to 200 queries.
    batch_size : int, default=1
        Number of queries per step of ``"sgd"``. With several thousand columns, more than one query
        per step saves time.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids. It is not used as a feature.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the last `fit`, unless w = 0 is better.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the queries in `fit` with ``solver="sgd"``.
    n_jobs : int, default=None
        Number of threads that share the queries with ``solver="lbfgs"``. None means 1, or the value
        of the active `joblib.parallel_config`. Results agree up to rounding for any value.
    verbose : int, default=0
        If 1, `fit` and `predict` print each step with its time, and `fit` prints every tenth
        iteration or every pass. If 2 or more, `fit` prints every iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (`n_features_in_`,)
        The coefficients w. The coefficient of `group_column` is 0.
    intercept_ : float
        The intercept b, which is not penalised. It is 0 if adding a constant to all scores leaves
        the surrogate unchanged.
    covariance_ : ndarray of shape (`n_features_in_`, `n_features_in_`)
        The covariance of the coefficients, for ``alpha=0`` (see Notes).
    n_iter_ : int
        Number of iterations or passes. Each call of `partial_fit` adds 1.
    surrogate_, loss_
        The surrogate and the loss, with data-dependent parameters filled in.
    model_ : LinearModel
        The fitted model.
    calibrated_over_ : str
        The distributions of the labels for which the rankings become optimal for the loss. If the
        surrogate is not order preserving, this text says why.
    decoder_, grouped_, n_queries_, n_queries_dropped_, n_features_in_, feature_names_in_
        As in `CalibratedRanker`.

    See Also
    --------
    CalibratedRanker : Least squares with any regressor.
    sklearn_rankcal.surrogates : The surrogates.

    Notes
    -----
    Both solvers work in scaled coordinates, where the second derivatives at w = 0 are about 1.
    Neither the units of the columns nor (for up to 512 columns) their correlations slow them down.
    A step of ``"sgd"`` is equation (25) of [1]_ in these coordinates.

    **Conditional logit.** With ``"softmax"`` and ``alpha=0``, the fit is the conditional or
    multinomial logit of McFadden [2]_, like clogit and mlogit. Each query is a choice, y is 1 for
    its chosen row, and the probabilities are proportional to exp(X w). Attributes of a person need
    a column for each alternative but one. Columns whose coefficients are infinite (separation) or
    not unique raise a ValueError with their names.

    `summary` has standard errors from the information or, with `clusters`, from the sandwich
    formula with the correction CR2 of [3]_ and Student's distribution. The log-likelihood sums the
    logarithms of the probabilities of chosen rows: several in a query are independent choices, and
    need ``loss="dcg"``. Only ratios of weights count.

    ``"cosine"`` starts from the least squares solution, and descends without a penalty to a local
    minimum. Other non-convex surrogates start from w = 0 and keep the penalty. The hinges of
    ``"ranksvm"`` are not smooth, and L-BFGS can stop a little above the minimum.
    ``WeightedComparisons("squared_hinge", "binary")`` is smooth.

    References
    ----------
    .. [1] J. C. Duchi, L. Mackey and M. I. Jordan (2013). The asymptotics of ranking algorithms.
       Annals of Statistics 41, 2292-2323. Section 6.1.
    .. [2] D. McFadden (1974). Conditional logit analysis of qualitative choice behavior. Frontiers
       in Econometrics, 105-142.
    .. [3] R. M. Bell and D. F. McCaffrey (2002). Bias reduction in standard errors for linear
       regression with multi-stage samples. Survey Methodology 28, 169-181.

    Examples
    --------
    >>> from sklearn_rankcal import LinearRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = LinearRanker("pairwise_logistic").fit(data.X, data.y, groups=data.groups)
    >>> bool(ranker.score(data.X, data.y, groups=data.groups) > 0.8)
    True
    >>> LinearRanker("ranknet").fit(data.X, data.y, groups=data.groups).calibrated_over_[:20]
    'not order preserving'

    Conditional logit of twelve choices between a train and a bus, by the price of each:

    >>> train, bus = [3, 2, 5, 4, 3, 6] * 2, [2, 4, 3, 4, 6, 2] * 2  # prices
    >>> by_train = [1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1]
    >>> X = [[price, 1] for price in train] + [[price, 0] for price in bus]
    >>> y, groups = by_train + [1 - chosen for chosen in by_train], [*range(12), *range(12)]
    >>> print(LinearRanker("softmax", alpha=0).fit(X, y, groups=groups).summary())
    Conditional logit of 12 choices
    log-likelihood -6.311, of equal shares -8.318
    McFadden's R2 0.2413, AIC 16.62, BIC 17.59
    standard errors from the information, intervals of 95 %
             coef  std_error          z    p_value        low       high
    x0    -0.5666     0.3528     -1.606     0.1082     -1.258     0.1248
    x1     0.6557     0.7394     0.8868     0.3752    -0.7934      2.105
    """

    _weighs_queries = True
    _learns_targets = False
    # Metadata routing passes groups to this method without a set_partial_fit_request call.
    __metadata_request__partial_fit = {"groups": True}

    decoder = "auto"
    regressor = None
    validation_queries = None
    _parameter_constraints: dict[str, list[Any]] = {
        "surrogate": [str, Surrogate],
        "loss": [str, Loss],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "step_size": [StrOptions(set(STEP_SIZES))],
        "largest_step": [None, Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "group_column": [None, str],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        surrogate: str | Surrogate = "softmax",
        *,
        loss: str | Loss = "ndcg",
        alpha: float = 1.0,
        solver: str = "lbfgs",
        max_iter: int | None = None,
        tol: float = 1e-4,
        step_size: str = "sqrt",
        largest_step: float | None = None,
        batch_size: int = 1,
        group_column: str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.largest_step = largest_step
        self.batch_size = batch_size
        self.group_column = group_column
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords(foreign=FOREIGN_WITHOUT_VALIDATION)
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit the coefficients to the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair. All columns must be numeric and finite.
        y, groups
            As in `CalibratedRanker.fit`.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row. The weight of a query is the mean of the nonzero
            weights of its rows. The largest weight must be between 1e-12 and 1e12.
        clusters : array-like of shape (n_documents,), default=None
            For standard errors with ``alpha=0``: who chose, as an id for each row. Several choices
            of a person are not independent. All rows of a query must have the same id.

        Returns
        -------
        self : LinearRanker
            The fitted ranker.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations are too few.
        UserWarning
            If the labels are preferences, and the surrogate ignores ties or unequal weights.
        """
        try:
            fit(self, X, y, groups, sample_weight, clusters=clusters)
        except NotIdentified as error:
            names = [name for name in getattr(X, "columns", ()) if name != self.group_column]
            raise NotIdentified(error.columns, error.why, names) from None
        return self._keep_fit()

    @available_if(_is_stochastic)
    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords
    def partial_fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Make one pass of the stochastic gradient method over a batch of whole queries.

        Only with ``solver="sgd"``.
        Steps and averages continue from earlier calls of `partial_fit` or from `fit`. The first
        call fixes the coordinates, `largest_step`, `loss_`, `surrogate_` and the penalty. It should
        have many more rows than columns.

        The penalty `alpha` applies to the number of queries in the first call. To find the same
        solution as `fit` on all batches, divide `alpha` by the number of batches.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`. A call must contain all rows of a query: equal ids in different calls are
            different queries.

        Returns
        -------
        self : LinearRanker
            The updated ranker.

        Examples
        --------
        >>> from sklearn_rankcal import LinearRanker
        >>> from sklearn_rankcal.datasets import make_ranking
        >>> ranker = LinearRanker(solver="sgd", alpha=0.5, random_state=0)
        >>> for seed in range(2):
        ...     data = make_ranking(n_queries=60, random_state=seed)
        ...     ranker = ranker.partial_fit(data.X, data.y, groups=data.groups)
        >>> ranker.n_iter_, ranker.n_queries_
        (2, 120)
        """
        model: Any = getattr(self, "model_", None)
        if getattr(model, "_state", None) is None:
            loss, first = get_loss(self.loss), True
            decoder = get_decoder(self.decoder, loss.space)
            schema, rows, _, grouped = read_rows(self, loss, X, y, groups, sample_weight)
            data = rows.judged()
            loss = loss.resolve(data.labels)
            if isinstance(data.labels, np.ndarray) and data.labels.max() > LARGEST_GRADE:
                warn_of_amounts(loss)
            model, n_queries, n_dropped = self._make_model(), 0, 0
        else:
            self._fitted_queries, first = None, False  # equal ids of two calls are two queries
            table, labels, queries = read_labelled(self, X, y, groups)
            weight = check_weight(sample_weight, queries.n_rows)
            rows = Training(table, None, queries, weight, labels)
            data, loss = rows.judged(), self.loss_
            if getattr(loss, "exact_under_rules", False):  # check it on the labels seen so far
                loss.exact_under_rules = loss.resolve(data.labels).exact_under_rules
            loss.check(data.labels)
            # Work on a copy: a call that fails must leave the state unchanged.
            model, n_queries, n_dropped = deepcopy(model), self.n_queries_, self.n_queries_dropped_
        data = data.without_zero_weights().without_undefined_queries(loss)
        n_queries += rows.queries.n_queries
        n_dropped += rows.queries.n_queries - data.queries.n_queries
        if (factor := loss.row_weight(data.labels, data.queries)) is not None:
            data = data.weighted_by(factor).without_zero_weights()
        model.partial_fit(replace(data, targets=self._make_targets(loss, data)))
        if first:
            schema.keep(self)
            self.decoder_, self.grouped_, self._fitted_queries = decoder, grouped, None
        self.model_, self.loss_ = model, loss
        self.n_queries_, self.n_queries_dropped_ = n_queries, n_dropped
        return self._keep_fit()

    def _make_model(self) -> LinearModel:
        names = set(LinearModel().get_params())
        model = LinearModel(**{k: v for k, v in self.get_params(deep=False).items() if k in names})
        if self.warm_start and hasattr(self, "model_"):
            model.coef_, model.intercept_ = self.model_.coef_, self.model_.intercept_
        return model

    @property
    def _scores_are(self) -> str | None:
        return "logarithms" if isinstance(get_surrogate(self.surrogate), Softmax) else None

    def _table_needs(self, loss: Loss) -> TableNeeds:
        return TableNeeds(type(self).__name__)

    def _prepare(
        self, loss: Loss, data: Training, held_out: Training | None, grouped: bool
    ) -> tuple[LinearModel, Training]:
        return self._make_model(), replace(data, targets=self._make_targets(loss, data))

    def _make_targets(self, loss: Loss, data: Training) -> Any:
        """Return the utilities."""
        surrogate = get_surrogate(self.surrogate)
        draws = loss.draws(data.labels) if self.solver == "sgd" else None
        if draws is None:
            targets = surrogate.targets(loss, data.labels, data.queries)
            if isinstance(targets, Preferences):
                surrogate.warn_of_unused(targets)
        else:
            surrogate.check_loss(loss)
            targets = draws.values
            surrogate.check(targets)
        sizes = targets.weight if isinstance(targets, Preferences) else np.abs(targets)
        check_unit(float(sizes.max(initial=0.0)))
        return targets if draws is None else draws

    def _keep_fit(self) -> Self:
        surrogate = get_surrogate(self.surrogate)
        self.calibrated_over_ = surrogate.theorem
        if surrogate.order_preserving:
            self.calibrated_over_ = (
                f"{self.loss_.calibrated_over}; the surrogate is {surrogate.theorem}"
            )
        self.n_iter_ = self.model_.n_iter_
        self.surrogate_ = self.model_.surrogate_
        return self

    # ---------------------------------------------------------------- the fitted coefficients

    @property
    def intercept_(self) -> float:
        """The constant added to all scores."""
        check_is_fitted(self)
        return self.model_.intercept_

    @property
    def covariance_(self) -> Floats:
        """The covariance of the coefficients."""
        return self._with_group_column(self._with_group_column(self._evidence().covariance).T)

    def summary(self, confidence_level: float = 0.95) -> ChoiceSummary:
        """Return the coefficients with standard errors, and measures of the fit.

        Raise AttributeError if the fit has no standard errors.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        summary : ChoiceSummary
            ``print`` shows it, and ``to_frame()`` converts it to a data frame.
        """
        check_number(confidence_level, "confidence_level", "(0, 1)")
        found, names = self._evidence(), self.get_feature_names_out()
        n_silent = found.n_silent + self.n_queries_dropped_
        return replace(found, columns=names, n_silent=n_silent, confidence_level=confidence_level)

    def _evidence(self) -> ChoiceSummary:
        check_is_fitted(self)
        if self.model_._evidence is None:
            raise AttributeError(
                f"There are no standard errors. Use alpha=0 in the place of {self.alpha!r}, "
                "because a penalty moves the coefficients by an unknown amount."
                if self.alpha
                else "There are no standard errors. They need convergence, and labels that count "
                "choices: 1 for one row of each query (groups have the choice, not the person), or "
                "the number of choices of each row with loss=DCG(gain='linear')."
            )
        return self.model_._evidence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
