"""`BradleyTerry`: maximum likelihood in the Bradley-Terry-Luce model."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.aggregation._base import ComparisonStructure, Structure
from sklearn_rankcal.aggregation._contest_boards import fit_boards
from sklearn_rankcal.aggregation._contests import has_covariates
from sklearn_rankcal.aggregation._graphs import ComparisonGraph
from sklearn_rankcal.aggregation._linear_systems import solve_laplacian
from sklearn_rankcal.aggregation._newton import minimize, warn_not_converged
from sklearn_rankcal.aggregation._vote_models import BLOCK, TIES, LogisticTerms, logistic_terms
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._parameters import check_choice, check_count, check_flag, check_number
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The ridge penalty of ``penalty="auto"`` if the likelihood has no maximum.
AUTO_PENALTY = 0.1


class MaximumLikelihood(Structure):
    """Base class of structures that are fitted by Newton's method, as `BradleyTerry`."""

    unbounded = True

    def __init__(
        self, penalty: float | str = "auto", tol: float = 1e-6, max_iter: int = 100
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        """The smallest difference of two scores, far above the error of Newton's method."""
        return max(1e-9, 1e-3 * self.tol)

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        if self.penalty != "auto" or not isinstance(self.penalty, str):
            check_number(self.penalty, "penalty", "[0, inf)", also="'auto' or")
        check_number(self.tol, "tol")
        check_count(self.max_iter, "max_iter")

    def _penalties(self, strong: Bools) -> Floats:
        """Return the penalty of each component, given whether it is strongly connected."""
        if isinstance(self.penalty, str):
            return np.where(strong, 0.0, AUTO_PENALTY)
        return np.full(len(strong), float(self.penalty))

    def _minimize(self, objective: Any, rows: Ints, queries: Queries) -> Floats:
        """Return the centred scores of the nodes, which have these rows."""
        found = minimize(objective, self.tol, self.max_iter)
        name = type(self).__name__
        warn_not_converged(name, found.unfinished, rows, objective.parts, queries, self.max_iter)
        return objective.parts.center(found.x)

    def _fit_comparisons(self, preferences: Preferences) -> Floats:
        graph = ComparisonGraph.from_preferences(preferences)
        if not graph.n_nodes:
            return np.zeros(preferences.n_rows)
        objective = _ComparisonLikelihood(graph, self._penalties(graph.strongly_connected()))
        scores = self._minimize(objective, graph.rows, preferences.queries)
        return graph.to_rows(scores, preferences.n_rows)


class BradleyTerry(MaximumLikelihood, ComparisonStructure):
    """Maximum likelihood in the Bradley-Terry-Luce model of comparisons.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        The factor a >= 0 of the ridge penalty (a / 2) sum of s_i^2, which is a normal prior with
        variance 1 / a. ``"auto"`` means 0 for each connected component of the comparisons with a
        finite maximum of the likelihood, and 0.1 for each other component.
    tol : float, default=1e-6
        The iterations end when no score changes by more than `tol` in a step. The remaining error
        is far smaller, because Newton's method converges quadratically.
    max_iter : int, default=100
        Maximum number of Newton steps.
    ties : {"half", "davidson", "rao_kupper"}, default="half"
        The model of ties. ``"half"`` counts a tie as half a win for each item. ``"davidson"``
        (Davidson, 1970, which Newman's algorithm fits too) and ``"rao_kupper"`` (Rao and Kupper,
        1967) give ties a probability with a fitted parameter.
    own_effects : bool, default=True
        Whether each item has its own effect, in addition to the effect of its `item_features`. If
        True, features need a `penalty` > 0.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough, for example with ``penalty=0`` if the likelihood has no
        maximum.

    Notes
    -----
    In the model, item i is preferred to item j with probability 1 / (1 + exp(s_j - s_i)). The
    likelihood of a connected component has a maximum if and only if chains of wins lead from every
    item to every other item (Ford, 1957). Scores of each component are centred at 0. If the
    comparisons connect all items, the scores converge to the scores of the model as the number of
    judgements grows, even if some pairs are compared more often than others.

    With covariates, a position or item features in the judgements (`Judgements.from_votes`), the
    log-odds of the first item i are s_i - s_j + x . b. The scores refer to x = 0, and each query
    has its own coefficients b. In Davidson's model, the probability of a tie is proportional to
    exp(t + (s_i + s_j) / 2) and the probability of a win to exp(s_i). In Rao and Kupper's model,
    the probability of a win is 1 / (1 + exp(t + s_j - s_i)). A step of these fits takes
    O(n_items^3) time plus O(1) time per vote.

    References
    ----------
    Bradley and Terry (1952), Rank analysis of incomplete block designs, Biometrika 39.

    Davidson (1970), On extending the Bradley-Terry model to accommodate ties, JASA 65.

    Rao and Kupper (1967), Ties in paired-comparison experiments, JASA 62.

    Ford (1957), Solution of a ranking problem from binary comparisons, Amer. Math. Monthly 64(8).

    Examples
    --------
    >>> from sklearn_rankcal.aggregation import BradleyTerry
    >>> from sklearn_rankcal.aggregation._judgements import Judgements
    >>> judgements = Judgements.from_pairs([("a", "b")] * 3 + [("b", "a")])
    >>> BradleyTerry().scores(judgements).round(4).tolist()  # half of log(3), and minus that
    [0.5493, -0.5493]

    If an item wins all comparisons, the penalty keeps its score finite:

    >>> BradleyTerry().scores(Judgements.from_pairs([("a", "b")] * 2)).round(4).tolist()
    [1.3235, -1.3235]
    """

    uses_covariates = True

    def __init__(
        self,
        penalty: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        ties: str = "half",
        own_effects: bool = True,
    ) -> None:
        super().__init__(penalty, tol, max_iter)
        self.ties = ties
        self.own_effects = own_effects

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        super().check()
        check_choice(self.ties, "ties", TIES)
        check_flag(self.own_effects, "own_effects")

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item; larger is better.

        Parameters
        ----------
        judgements : Judgements
            The judgements of all queries.

        Returns
        -------
        scores : ndarray of shape (n_items,)
        """
        self.check()
        if self._takes_sums(judgements):
            return self._scores(judgements.preferences(), judgements.per_query)
        scores = np.zeros(judgements.queries.n_rows)
        for board in fit_boards(judgements, self):
            scores[board.rows] = board.scores
        return scores

    def _takes_sums(self, judgements: Any) -> bool:
        return self.ties == "half" and self.own_effects and not has_covariates(judgements)

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        return self._fit_comparisons(preferences)


class _ComparisonLikelihood:
    """The penalised negative log-likelihood of each component."""

    def __init__(self, graph: ComparisonGraph, penalty: Floats) -> None:
        self.graph = graph
        self.parts = graph.parts
        self.penalty = penalty
        self.ridge = graph.parts.repeat(penalty)

    def evaluate(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        graph, pairs = self.graph, self.graph.pairs
        terms = LogisticTerms(*np.empty((4, len(pairs.first))))
        # The temporary arrays of a block fit in the cache. This is several times faster.
        for start in range(0, len(pairs.first), BLOCK):
            block = slice(start, start + BLOCK)
            lead = x[pairs.first[block]] - x[pairs.second[block]]
            found = logistic_terms(lead, pairs.wins[block], pairs.losses[block])
            for column, values in zip(terms, found, strict=True):
                column[block] = values
        value = graph.sum_pairs(terms.value) + self.penalty / 2 * self.parts.sum(x * x)
        gradient = pairs.sum_skew(terms.slope, graph.n_nodes) + self.ridge * x
        unit = pairs.sum_over(terms.size, terms.size, graph.n_nodes) + self.ridge * np.abs(x)
        return value, gradient, unit, terms.bend

    def solve(self, curvature: Floats, rhs: Floats, tolerance: Floats) -> Floats:
        # Curvature that underflows would make the system singular.
        weight = np.maximum(curvature, 1e-12 * self.graph.pairs.total)
        found = solve_laplacian(self.graph, weight, rhs, self.ridge, tolerance)
        return self.parts.center(found)

    def take(self, parts: Bools) -> tuple[_ComparisonLikelihood, Ints]:
        graph, nodes = self.graph.take(parts)
        return _ComparisonLikelihood(graph, self.penalty[parts]), nodes
