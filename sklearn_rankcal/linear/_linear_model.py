"""Linear scores that minimise a surrogate, by Newton's method, L-BFGS or stochastic gradients."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_rankcal.linear._conditional_logit import (
    FREE_COLUMNS,
    NEWTON_COLUMNS,
    ChoiceSummary,
    find_evidence,
    newton,
)
from sklearn_rankcal.linear._linear_objective import (
    Coordinates,
    LinearObjective,
    Point,
    QueryBatches,
    batch_gradient,
    descend,
    find_origin,
    linear_table,
    row_scores,
)
from sklearn_rankcal.models import Model, Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import PointwiseSquared, Softmax, Surrogate, get_surrogate
from sklearn_rankcal.targets import RedrawnTargets
from sklearn_rankcal.utils import _messages
from sklearn_rankcal.utils._numbers import Floats, Ints, check_weight_range, exceeds

#: The solvers, with the default maximum number of iterations or passes of each.
SOLVERS = {"lbfgs": 1000, "sgd": 10}
#: For each rule, the step size and the averaging weight of an iterate, as functions of the step
#: number t >= 1, the largest step c, and the strong convexity mu of the penalty.
STEP_SIZES: dict[str, Any] = {
    "sqrt": (lambda t, c, mu: c / np.sqrt(t), lambda t, c, mu: 1.0),
    "inverse": (lambda t, c, mu: 1.0 / (mu * t + 1.0 / c), lambda t, c, mu: t + 1.0 / (mu * c)),
}
#: The largest step is chosen on this many queries, with this many passes per trial. A single pass
#: does not reveal steps that diverge later.
_TRIAL_QUERIES, _TRIAL_PASSES = 200, 5
#: About how many queries get new targets at once. Structures are faster on many queries.
_DRAWN_TOGETHER = 256
#: Ratio of successive trial values of the largest step, and the maximum number of trials.
_FACTOR, _TRIALS = 4.0, 12


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
    _evidence: ChoiceSummary | None

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
        self._evidence = None
        if self.alpha == 0 and self.n_iter_ < self._max_iter:
            objective = LinearObjective(data, surrogate, 0.0, self.n_jobs)
            self._evidence = find_evidence(objective, self.coef_, training.clusters)
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
        _messages.check_number(self.alpha, "alpha", "[0, inf)")
        newton = isinstance(surrogate, Softmax) and self.solver == "lbfgs"
        if self.alpha == 0 and not (newton and training.X.shape[1] <= FREE_COLUMNS):
            raise ValueError("alpha=0 needs 'softmax', 'lbfgs' and at most 1,000 columns.")
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
        origin, coordinates = find_origin(objective, self.alpha or 1.0, origin)
        start, limits = _start(objective, origin, given), (self._max_iter, self._print_iteration)
        few = self.alpha == 0 or data.n_features <= NEWTON_COLUMNS
        if isinstance(surrogate, Softmax) and few:
            found, minimum = newton(objective, start, *limits)
        else:
            found, minimum = descend(objective, origin, coordinates, start, self.tol, *limits)
        self.coef_, self.intercept_ = found
        self.n_iter_ = minimum.nit
        self.surrogate_ = surrogate
        self._state = None
        if not minimum.success:
            _messages.warn(
                f"The solver stopped after {minimum.nit} iterations before it converged "
                f"({minimum.message}). Increase max_iter={self._max_iter} or tol={self.tol!r}. "
                "Columns with a few very large values can be the reason; their logarithms or "
                "quantiles then need fewer iterations.",
                ConvergenceWarning,
            )

    def _least_squares(self, data: QueryBatches) -> Point:
        """Fit penalised least squares, the starting point of scale-invariant surrogates."""
        squared = LinearObjective(data, PointwiseSquared(), self.alpha, self.n_jobs)
        start, coordinates = find_origin(squared, self.alpha)
        return descend(squared, start, coordinates, start, self.tol, self._max_iter)[0]

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
        # NaN, or an average that is much worse than the start
        if not objective.evaluate(*state.result()).value <= start + abs(start):
            raise state.diverged()
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
        self._state, self._evidence = state, None
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


# ---------------------------------------------------------------- stochastic gradients


class Diverged(ValueError):
    """The stochastic gradient method diverged."""


class StochasticGradient:
    """The state of the method: iterate, average and number of steps.

    The objective is the mean over queries of w_q psi_q / (mean of the w_q), plus
    lambda / 2 ||w||^2. A step minimises the sum of three terms: the tangent of the surrogate at the
    queries of the step, the penalty, and the squared distance from the iterate divided by twice the
    step size (Duchi et al., 2013, equation 25). The distance is sqrt((w - w')' H (w - w')), where H
    approximates the second derivatives of the objective. This makes the method independent of the
    units and correlations of the columns. The state is stored in `Coordinates`, where H and the
    penalty are diagonal.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        coordinates: Coordinates,
        data: QueryBatches,
        alpha: float,
        rule: str,
        start: Point,
        largest_step: float,
    ) -> None:
        self.surrogate = surrogate
        self.rule = rule
        self.largest_step = largest_step
        self.coordinates = coordinates
        # The objective is a mean: its H is the H of the sum, divided by the total weight.
        self.factor = float(data.weight.sum())
        self.mean_weight = self.factor / data.n_queries
        self.x = coordinates.coordinates(*start)
        # lambda in each coordinate; lambda ||w||^2 >= mu times the squared length in H
        self.shrinkage = np.zeros(len(self.x))
        self.shrinkage[: data.n_features] = alpha * coordinates.squares
        self.convexity = float(self.shrinkage[: data.n_features].min())
        self.n_steps = 0
        self.mass = 0.0  # the sum of the weights of the average
        self.mean_x = self.x.copy()

    def result(self) -> tuple[Floats, float]:
        """Return the averaged coefficients and intercept."""
        return self.coordinates.point(self.mean_x)

    def diverged(self) -> Diverged:
        """Return the error for a method that diverges."""
        return Diverged(
            f"The stochastic gradient method diverged, after {self.n_steps} steps of at most "
            f"{self.largest_step:g}. Pass a smaller largest_step, or use solver='lbfgs'."
        )

    def pass_over(
        self, data: QueryBatches, order: Ints, batch_size: int, redraw: bool = False
    ) -> None:
        """Make steps on the queries in this order, `batch_size` queries at a time.

        If `redraw`, draw new targets of a query before its step.
        """
        together = batch_size * max(1, _DRAWN_TOGETHER // batch_size)
        for first in range(0, len(order), batch_size):
            if redraw and first % together == 0:
                data.redraw(order[first : first + together])
            self._step(data, order[first : first + batch_size])

    def _step(self, data: QueryBatches, numbers: Ints) -> None:
        batch = data.take(numbers)
        point = self.coordinates.point(self.x)
        _, of_coef, of_shift = batch_gradient(data, self.surrogate, batch, *point)
        self.n_steps += 1
        size_of, weight_of = STEP_SIZES[self.rule]
        size = size_of(self.n_steps, self.largest_step, self.convexity)
        factor = size * self.factor / (self.mean_weight * len(numbers))
        with np.errstate(over="ignore", invalid="ignore"):
            self.x -= factor * self.coordinates.gradient(of_coef, of_shift)
            self.x /= 1.0 + size * self.shrinkage
            if not np.isfinite(self.x @ self.x):
                raise self.diverged()
        weight = weight_of(self.n_steps, self.largest_step, self.convexity)
        self.mass += weight
        self.mean_x += weight / self.mass * (self.x - self.mean_x)


def choose_largest_step(
    data: QueryBatches, order: Ints, alpha: float, batch_size: int, make: Any
) -> float:
    """Try largest steps on the first 200 queries, and return the one with the smallest objective.

    The objective is computed for the averaged coefficients after some passes. `make` makes a
    `StochasticGradient` from the largest step, a power of 4.
    """
    tried = order[: max(_TRIAL_QUERIES, batch_size)]
    batches = [data.take(tried[first : first + 20]) for first in range(0, len(tried), 20)]

    def value_after(step: float) -> float:
        state = make(step)
        try:
            for _ in range(_TRIAL_PASSES):
                state.pass_over(data, tried, batch_size)
        except Diverged:
            return np.inf
        coef, intercept = state.result()
        total = sum(
            batch_gradient(data, state.surrogate, batch, coef, intercept)[0] for batch in batches
        )
        own = alpha / 2 * float(coef @ coef) * len(tried) / data.n_queries
        return total + own if np.isfinite(total + own) else np.inf

    # The value first falls and then rises with the step.
    step, best = 1.0, value_after(1.0)
    for _ in range(_TRIALS):
        if np.isfinite(best):
            break
        step /= _FACTOR
        best = value_after(step)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        for _ in range(_TRIALS):
            value = value_after(step * factor)
            if not exceeds(best, value, abs(value)):
                break
            step, best = step * factor, value
    return step
