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

#: The ridge penalty of ``penalty="auto"`` where the likelihood has no maximum.
AUTO_PENALTY = 0.1


class MaximumLikelihood(Structure):
    """Base class of structures that Newton's method fits; `BradleyTerry` has the parameters."""

    unbounded = True

    def __init__(
        self, penalty: float | str = "auto", tol: float = 1e-6, max_iter: int = 100
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        """What separates two scores: far more than the error that Newton's method leaves."""
        return max(1e-9, 1e-3 * self.tol)

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        if self.penalty != "auto" or not isinstance(self.penalty, str):
            check_number(self.penalty, "penalty", "[0, inf)", also="'auto' or")
        check_number(self.tol, "tol")
        check_count(self.max_iter, "max_iter")

    def _penalties(self, strong: Bools) -> Floats:
        """Return the penalty of each component, given which are strongly connected."""
        if isinstance(self.penalty, str):
            return np.where(strong, 0.0, AUTO_PENALTY)
        return np.full(len(strong), float(self.penalty))

    def _minimize(self, objective: Any, rows: Ints, queries: Queries) -> Floats:
        """Return the centred scores of the nodes, which are these rows."""
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
        The number a >= 0 of the ridge penalty (a / 2) sum of s_i^2, a normal prior of the scores
        with the variance 1 / a. With ``"auto"`` it is 0 for each connected component of the
        comparisons whose likelihood has a maximum, and 0.1 for each other one.
    tol : float, default=1e-6
        The iterations end when a step changes no score by more than `tol`. The error that is left
        is far smaller, because Newton's method converges quadratically.
    max_iter : int, default=100
        The largest number of Newton steps.
    ties : {"half", "davidson", "rao_kupper"}, default="half"
        What a tie is. ``"half"``: half a win for each. The others give ties a probability, with a
        parameter that is fitted: Davidson (1970), whose model Newman's algorithm fits too, or Rao
        and Kupper (1967).
    own_effects : bool, default=True
        Whether each item has a score of its own beside what `item_features` predict. With True,
        features need a `penalty` > 0.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough, for example because the likelihood has no maximum and
        ``penalty=0``.

    Notes
    -----
    In the model, item i is preferred to item j with probability 1 / (1 + exp(s_j - s_i)). The
    likelihood of a connected component has a maximum if and only if, for every two items i and j, a
    chain of items leads from i to j in which each was preferred to the next at least once (Ford).
    Scores of each component are centred at 0. As judgements become more, they converge to those of
    the model, however unequally often pairs are compared, as long as the comparisons connect all
    items.

    With covariates, a position or item features in the judgements (`Judgements.from_votes`), the
    log-odds of the first item i are s_i - s_j + x . b, and the scores are those at x = 0. Each
    query has coefficients b of its own. Davidson's probability of a tie is proportional to exp(t +
    (s_i + s_j) / 2), and that of a win to exp(s_i); Rao and Kupper's probability of a win is 1 / (1
    + exp(t + s_j - s_i)). Such fits take O(n_items^3) time for a step, beside the votes.

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

    If an item has won all its comparisons, the penalty keeps its score finite:

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
        """Compute one score per item; larger is better."""
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
        # The temporary arrays of a block fit in the cache, which makes this several times faster.
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
