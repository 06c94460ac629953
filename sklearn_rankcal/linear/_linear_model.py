"""Linear scores that minimise a surrogate by L-BFGS or a stochastic gradient method."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_rankcal.linear._linear_objective import (
    Coordinates,
    LinearObjective,
    Point,
    QueryBatches,
    descend,
    find_origin,
    linear_table,
    row_scores,
)
from sklearn_rankcal.linear._stochastic import STEP_SIZES, StochasticGradient, choose_largest_step
from sklearn_rankcal.models import Model, Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import PointwiseSquared, Surrogate, get_surrogate
from sklearn_rankcal.targets import RedrawnTargets
from sklearn_rankcal.utils import _messages
from sklearn_rankcal.utils._numbers import Floats, Ints, check_weight_range

#: The solvers, with the default maximum number of iterations or passes of each.
SOLVERS = {"lbfgs": 1000, "sgd": 10}


class LinearModel(Model):
    """Fit scores X w + b that minimise a surrogate of the targets, with an L2 penalty on w.

    The objective is the sum over queries of w_q psi(v_q, X_q w + b), plus alpha / 2 ||w||^2. Here
    psi is the surrogate, v_q are the targets of query q, and w_q is the mean weight of its rows.

    Parameters
    ----------
    surrogate, alpha, solver, max_iter, tol, step_size, largest_step
        As in `LinearRanker`.
    batch_size, warm_start, random_state, n_jobs, verbose
        As in `LinearRanker`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients w.
    intercept_ : float
        The intercept b. It is 0 if the surrogate is shift invariant.
    n_iter_ : int
        Number of iterations of L-BFGS, or number of passes over the queries.
    surrogate_ : Surrogate
        The surrogate, with data-dependent parameters filled in.

    See Also
    --------
    sklearn_rankcal.LinearRanker : The ranker that fits this model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.linear import LinearModel
    >>> from sklearn_rankcal.models import Training
    >>> from sklearn_rankcal.queries import Queries
    >>> X, targets = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> training = Training(X, targets, Queries.single(3))
    >>> model = LinearModel("pairwise_squared", alpha=1e-6).fit(training)
    >>> model.coef_.round(3).tolist(), model.intercept_
    ([1.0], 0.0)
    """

    has_table = True
    _weighs_queries = True
    _state: StochasticGradient | None

    def __init__(
        self,
        surrogate: str | Surrogate = "softmax",
        alpha: float = 1.0,
        *,
        solver: str = "lbfgs",
        max_iter: int | None = None,
        tol: float = 1e-4,
        step_size: str = "sqrt",
        largest_step: float | None = None,
        batch_size: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.largest_step = largest_step
        self.batch_size = batch_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def learns_targets(self) -> bool:  # type: ignore[override]
        """Whether the scores sort documents by their expected targets, given enough data."""
        return get_surrogate(self.surrogate).order_preserving

    def fit(self, training: Training) -> Self:
        """Fit the coefficients to a table of finite numbers, which can be sparse.

        The targets are an array, Preferences or RedrawnTargets: the output of `Surrogate.targets`,
        or other targets accepted by the surrogate. With `RedrawnTargets`, ``solver="sgd"`` draws
        new targets for each step.
        """
        surrogate, data = self._read(training)
        solve = self._fit_sgd if self.solver == "sgd" else self._fit_lbfgs
        solve(data, surrogate, self._last_fit(data))
        return self

    def partial_fit(self, training: Training) -> Self:
        """Make one pass of the stochastic gradient method over some queries.

        Parameters
        ----------
        training : Training
            As in `fit`.

        Returns
        -------
        self : LinearModel
            The updated model.
        """
        if self.solver != "sgd":
            raise ValueError(f"partial_fit needs solver='sgd'; got {self.solver!r}.")
        surrogate, data = self._read(training)
        state = getattr(self, "_state", None)
        order = np.arange(data.n_queries)
        if state is None:
            objective = LinearObjective(data, surrogate, self.alpha, self.n_jobs)
            state = self._make_state(data, surrogate, *find_origin(objective, self.alpha), order)
            self.n_iter_ = 0
        elif data.n_features != len(state.coordinates.squares):
            raise ValueError(
                f"X has {data.n_features} columns, but earlier calls had "
                f"{len(state.coordinates.squares)}."
            )
        else:
            # Parameters that depend on data, such as eta, are those of the first call.
            state.surrogate.check(_values(training.targets))
        self._pass(state, data, order)
        self._keep_state(state)
        return self

    def own_coefficients(self) -> Floats:
        """Return `coef_`."""
        return self.coef_

    def _table(self, X: Any, queries: Queries) -> tuple[Any, None]:
        """Return the columns that have coefficients, like models with context columns do."""
        return X, None

    def table_names(self, names: list[str]) -> list[str]:
        """Select the names of these columns from the names of the columns of X."""
        return names

    def _read(self, training: Training) -> tuple[Surrogate, QueryBatches]:
        """Check the parameters, and return the surrogate for the targets, and the data."""
        surrogate = get_surrogate(self.surrogate).resolve(_values(training.targets))
        _messages.check_number(self.alpha, "alpha")
        _messages.check_number(self.tol, "tol")
        if self.largest_step is not None:
            _messages.check_number(self.largest_step, "largest_step")
        _messages.check_count(self.max_iter, "max_iter", or_none=True)
        _messages.check_count(self.batch_size, "batch_size")
        _messages.check_flag(self.warm_start, "warm_start")
        _messages.check_choice(self.solver, "solver", SOLVERS)
        _messages.check_choice(self.step_size, "step_size", STEP_SIZES)
        if training.weight is not None:
            check_weight_range(training.weight, type(self).__name__)
        table = linear_table(training.X)
        return surrogate, QueryBatches(table, training.targets, training.queries, training.weight)

    def _last_fit(self, data: QueryBatches) -> Point | None:
        """Return the coefficients and intercept of a warm start, or None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if len(self.coef_) != data.n_features:
            raise ValueError(
                f"warm_start=True: the last fit had {len(self.coef_)} columns, and X has "
                f"{data.n_features}. Set warm_start=False to start anew."
            )
        return self.coef_, self.intercept_

    def _fit_lbfgs(self, data: QueryBatches, surrogate: Surrogate, given: Point | None) -> None:
        # If the scale of the scores does not matter, shrinking them would remove the penalty.
        penalty = 0.0 if surrogate.scale_invariant else self.alpha
        objective = LinearObjective(data, surrogate, penalty, self.n_jobs)
        origin = self._least_squares(data) if surrogate.scale_invariant else None
        origin, coordinates = find_origin(objective, self.alpha, origin)
        (self.coef_, self.intercept_), minimum = descend(
            objective,
            origin,
            coordinates,
            _start(objective, origin, given),
            tol=self.tol,
            max_iter=self._max_iter,
            progress=self._print_iteration,
        )
        self.n_iter_ = minimum.nit
        self.surrogate_ = surrogate
        self._state = None
        if not minimum.success:
            _messages.warn(
                f"L-BFGS stopped after {minimum.nit} iterations before it converged "
                f"({minimum.message}). Increase max_iter={self._max_iter} or tol={self.tol!r}. "
                "Columns with a few very large values can be the reason; their logarithms or "
                "quantiles then need fewer iterations.",
                ConvergenceWarning,
            )

    def _least_squares(self, data: QueryBatches) -> Point:
        """Fit penalised least squares, the starting point of scale-invariant surrogates."""
        squared = LinearObjective(data, PointwiseSquared(), self.alpha, self.n_jobs)
        start, coordinates = find_origin(squared, self.alpha)
        return descend(squared, start, coordinates, start, tol=self.tol, max_iter=self._max_iter)[0]

    def _fit_sgd(self, data: QueryBatches, surrogate: Surrogate, given: Point | None) -> None:
        if surrogate.scale_invariant:
            raise ValueError(
                f"solver='sgd' needs a surrogate that depends on the scale of the scores; "
                f"{type(surrogate).__name__} does not. Use solver='lbfgs'."
            )
        random = check_random_state(self.random_state)
        objective = LinearObjective(data, surrogate, self.alpha, self.n_jobs)
        origin, coordinates = find_origin(objective, self.alpha)
        point = _start(objective, origin, given)
        start = objective.evaluate(*point).value
        order = random.permutation(data.n_queries)
        state = self._make_state(data, surrogate, point, coordinates, order)
        self.n_iter_ = 0
        for number in range(self._max_iter):
            self._pass(state, data, order if number == 0 else random.permutation(data.n_queries))
        state.refuse_divergence(objective, start)
        self._keep_state(state)

    def _make_state(
        self,
        data: QueryBatches,
        surrogate: Surrogate,
        start: Point,
        coordinates: Coordinates,
        order: Ints,
    ) -> StochasticGradient:
        make = partial(
            StochasticGradient, surrogate, coordinates, data, self.alpha, self.step_size, start
        )
        step = self.largest_step
        if step is None:
            step = choose_largest_step(data, order, self.alpha, self.batch_size, make)
            if self.verbose:
                print(f"[{type(self).__name__}] largest step {step:g}", flush=True)
        return make(step)

    def _pass(self, state: StochasticGradient, data: QueryBatches, order: Ints) -> None:
        state.pass_over(data, order, self.batch_size, redraw=data.redraws)
        self.n_iter_ += 1
        if self.verbose:
            print(f"[{type(self).__name__}] pass {self.n_iter_}: {state.n_steps} steps", flush=True)

    def _keep_state(self, state: StochasticGradient) -> None:
        self._state = state
        self.coef_, self.intercept_ = state.result()
        self.surrogate_ = state.surrogate

    @property
    def _max_iter(self) -> int:
        return SOLVERS[self.solver] if self.max_iter is None else int(self.max_iter)

    def _print_iteration(self, number: int, value: float, slope: float) -> None:
        if self.verbose and (number % 10 == 0 or self.verbose > 1):
            print(
                f"[{type(self).__name__}] iteration {number}: objective {value:.6g}, largest "
                f"scaled slope {slope:.2g}, tol {self.tol:g}",
                flush=True,
            )

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, of shape (n_documents,), ignoring queries."""
        return row_scores(linear_table(X), self.coef_) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _values(targets: Any) -> Any:
    return targets.values if isinstance(targets, RedrawnTargets) else targets


def _start(objective: LinearObjective, origin: Point, last: Point | None) -> Point:
    """Return the point of a warm start if it is at least as good as the origin."""
    if last is None or objective.evaluate(*last).value > objective.evaluate(*origin).value:
        return origin
    return last
