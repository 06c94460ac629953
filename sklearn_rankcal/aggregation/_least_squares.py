"""`LeastSquares`: scores whose differences fit the observed margins of pairs best."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.aggregation._graphs import ComparedPairs, ComparisonGraph
from sklearn_rankcal.aggregation._linear_systems import solve_laplacian
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.utils._parameters import check_choice, check_flag, check_number
from sklearn_rankcal.utils._typing import Floats


def _difference(pairs: ComparedPairs, smoothing: float) -> Floats:
    return pairs.net / pairs.total


def _log_odds(pairs: ComparedPairs, smoothing: float) -> Floats:
    return np.log(pairs.wins + smoothing) - np.log(pairs.losses + smoothing)


def _probit(pairs: ComparedPairs, smoothing: float) -> Floats:
    # The smaller share is accurate where the larger one would be rounded to 1.
    smaller = np.minimum(pairs.wins, pairs.losses) + smoothing
    distance = -ndtri(smaller / (pairs.total + 2 * smoothing))
    return np.copysign(distance, pairs.wins - pairs.losses)


#: The functions that return the margin of the first item of each pair over the second.
MARGINS = {"difference": _difference, "log_odds": _log_odds, "probit": _probit}


class LeastSquares(ComparisonStructure):
    """Thurstone-Mosteller least squares: scores whose differences fit the margins of pairs best.

    Parameters
    ----------
    margin : {"difference", "log_odds", "probit"}, default="log_odds"
        The margin A_ij of item i over item j, from the total weights w_ij and w_ji with which each
        was preferred to the other:

        - ``"difference"``: (w_ij - w_ji) / (w_ij + w_ji);
        - ``"log_odds"``: log((w_ij + c) / (w_ji + c)), as in the Bradley-Terry-Luce model;
        - ``"probit"``: the normal quantile of (w_ij + c) / (w_ij + w_ji + 2 c), as in Thurstone's
          model.
    smoothing : float, default=0.5
        The number c > 0. It is not used by ``"difference"``.
    weighted : bool, default=False
        Whether the square of a pair is weighted by w_ij + w_ji. Otherwise all pairs that were
        compared have the same weight.

    Notes
    -----
    The scores minimise the sum over the compared pairs of (A_ij - (s_i - s_j))^2, equation (22) of
    Duchi et al., and are centred at 0 on each connected component of the comparisons. The margins
    depend on how often a pair is compared through c only. As judgements become more, the scores
    therefore recover the order of a Bradley-Terry-Luce or Thurstone model with the margin of this
    model, however unequally often pairs are compared, as long as the comparisons connect all items.
    For other margins this is only true if all pairs are compared.

    References
    ----------
    Duchi et al. (2013), section 5.1; Mosteller (1951), Remarks on the method of paired comparisons.

    Examples
    --------
    Items a and c were never compared; their scores follow from b:

    >>> from sklearn_rankcal.aggregation import LeastSquares
    >>> from sklearn_rankcal.aggregation._judgements import Judgements
    >>> judgements = Judgements.from_pairs([("a", "b")] * 2 + [("b", "a"), ("a", "b"), ("b", "c")])
    >>> LeastSquares("difference").scores(judgements).round(6).tolist()
    [0.666667, 0.166667, -0.833333]
    """

    def __init__(
        self, margin: str = "log_odds", smoothing: float = 0.5, weighted: bool = False
    ) -> None:
        self.margin = margin
        self.smoothing = smoothing
        self.weighted = weighted

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        """Whether the margin of a pair that one item always wins grows with the comparisons."""
        return self.margin != "difference"

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_choice(self.margin, "margin", MARGINS)
        check_number(self.smoothing, "smoothing")
        check_flag(self.weighted, "weighted")

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        graph = ComparisonGraph.from_preferences(preferences)
        if not graph.n_nodes:
            return np.zeros(preferences.n_rows)
        pairs = graph.pairs
        weight = pairs.total if self.weighted else np.ones(len(pairs.first))
        margin = MARGINS[self.margin](pairs, self.smoothing)
        rhs = pairs.sum_skew(weight * margin, graph.n_nodes)
        return graph.to_rows(solve_laplacian(graph, weight, rhs), preferences.n_rows)
