"""The dictionary `STRUCTURES` of names and classes of structures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._click_structures import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
)
from sklearn_rankcal.aggregation._closed_forms import (
    Borda,
    BudgetedBorda,
    Copeland,
    LeastSquares,
    LogOdds,
)
from sklearn_rankcal.aggregation._eigenvectors import PrincipalEigenvector, RankCentrality
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._plackett_luce import PlackettLuce
from sklearn_rankcal.utils._names import did_you_mean

#: The structures by name, for `aggregate` and `AggregatedLoss`.
STRUCTURES: dict[str, type[Structure]] = {
    "borda": Borda,
    "budgeted_borda": BudgetedBorda,
    "copeland": Copeland,
    "least_squares": LeastSquares,
    "log_odds": LogOdds,
    "btl": BradleyTerry,
    "plackett_luce": PlackettLuce,
    "principal_eigenvector": PrincipalEigenvector,
    "rank_centrality": RankCentrality,
    "cascade": CascadeSatisfaction,
    "inverse_propensity": InversePropensity,
    "click_through_rate": ClickThroughRate,
    "kemeny": Kemeny,
}

#: Other common names, and the nearest name in `STRUCTURES`.
_OTHER_NAMES = {
    "bradley_terry": "btl",
    "bradley_terry_luce": "btl",
    "bt": "btl",
    "ctr": "click_through_rate",
    "elo": "btl",
    "hodgerank": "least_squares",
    "ips": "inverse_propensity",
    "pagerank": "rank_centrality",
    "saaty": "principal_eigenvector",
    "thurstone": "least_squares",
    "win_rate": "budgeted_borda",
}


def get_structure(structure: str | Structure) -> Structure:
    """Make a structure from a name.

    Parameters
    ----------
    structure : str or Structure
        A key of `STRUCTURES`, or an object with a ``scores`` method.

    Returns
    -------
    structure : Structure
        A new structure, or the object unchanged.

    Raises
    ------
    ValueError or TypeError
        If the name is unknown, or if `structure` is neither a name nor has a ``scores`` method.

    Examples
    --------
    >>> from sklearn_rankcal.aggregation import get_structure
    >>> get_structure("log_odds")
    LogOdds()
    """
    return make_structure(structure, "structure", STRUCTURES)


def make_structure(structure: Any, word: str, known: Iterable[str]) -> Structure:
    """Do the same as `get_structure`, with error messages of the caller."""
    if isinstance(structure, str):
        if structure in STRUCTURES:
            return STRUCTURES[structure]()
        hint = did_you_mean(structure, known, _OTHER_NAMES)
        raise ValueError(f"Unknown {word} {structure!r}.{hint} Known: {', '.join(known)}.")
    if isinstance(structure, type) or not hasattr(structure, "scores"):
        raise TypeError(f"{word} must be a name or have a scores method; got {structure!r}.")
    return structure


def read_model(judgements: Any, method: Any, level: Any) -> tuple[BradleyTerry, float]:
    """Return the checked model for votes of one query, and the confidence level."""
    structure = make_structure(method, "method", ["btl"])
    structure.check()
    if not isinstance(structure, BradleyTerry) or not structure.own_effects:
        raise ValueError(f"method must be BradleyTerry with own_effects=True; got {structure!r}.")
    if not isinstance(judgements, Judgements) or judgements.queries.n_queries > 1:
        raise ValueError("judgements must be Judgements of one query, made without groups=.")
    if not 0 < float(level) < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {level!r}.")
    return structure, float(level)
