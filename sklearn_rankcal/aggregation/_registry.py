"""The dictionary `STRUCTURES`: from names to classes of structures."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._clicks import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
)
from sklearn_rankcal.aggregation._counting import Borda, BudgetedBorda, Copeland
from sklearn_rankcal.aggregation._eigenvectors import PrincipalEigenvector, RankCentrality
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._least_squares import LeastSquares
from sklearn_rankcal.aggregation._log_odds import LogOdds
from sklearn_rankcal.aggregation._plackett_luce import PlackettLuce
from sklearn_rankcal.utils._names import did_you_mean

#: The structures by the names that `aggregate` and `AggregatedLoss` take.
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

#: Names that others use, and the nearest name in `STRUCTURES`.
_OTHER_NAMES = {
    "bradley_terry": "btl",
    "bradley_terry_luce": "btl",
    "bt": "btl",
    "ctr": "click_through_rate",
    "elo": "btl",
    "hodgerank": "least_squares",
    "ilsr": "btl",
    "ips": "inverse_propensity",
    "luce": "plackett_luce",
    "mean_adjacency": "borda",
    "mle": "btl",
    "mosteller": "least_squares",
    "pagerank": "rank_centrality",
    "pl": "plackett_luce",
    "saaty": "principal_eigenvector",
    "thurstone": "least_squares",
    "thurstone_mosteller": "least_squares",
    "win_rate": "budgeted_borda",
}


def get_structure(structure: str | Structure, **parameters: Any) -> Structure:
    """Make a structure from a name. An object with a ``scores`` method is returned unchanged.

    Parameters
    ----------
    structure : str or Structure
        A key of `STRUCTURES`, or an object.
    **parameters
        Parameters of the structure, such as ``smoothing``. They can only be passed with a name.

    Returns
    -------
    structure : Structure

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If `structure` is neither a string nor an object with a ``scores`` method, if the structure
        does not have one of the parameters, or if parameters are passed with an object.

    Examples
    --------
    >>> from sklearn_rankcal.aggregation import get_structure
    >>> get_structure("log_odds", smoothing=1.0)
    LogOdds(smoothing=1.0)
    """
    if not isinstance(structure, str):
        if isinstance(structure, type) or not hasattr(structure, "scores"):
            raise TypeError(f"structure must be a name or have a scores method; got {structure!r}.")
        if parameters:
            raise TypeError(
                f"Parameters can only be passed with the name of a structure, but structure is "
                f"{structure!r}. Set the parameters of this object instead."
            )
        return structure
    if structure not in STRUCTURES:
        raise unknown_name(structure, "structure", STRUCTURES)
    kind = STRUCTURES[structure]
    known = list(inspect.signature(kind).parameters)
    for name in parameters:
        if name not in known:
            raise TypeError(
                f"Structure {structure!r} has no parameter {name!r}. "
                + (f"Its parameters: {', '.join(known)}." if known else "It has no parameters.")
            )
    return kind(**parameters)


def get_method(method: str | Structure) -> Structure:
    """Do what `get_structure` does for a method of `aggregate`, with errors in its words."""
    if isinstance(method, str) and method not in STRUCTURES:
        known = [name for name, kind in STRUCTURES.items() if kind.takes != "clicks"]
        raise unknown_name(method, "method", known)
    if not isinstance(method, str) and (isinstance(method, type) or not hasattr(method, "scores")):
        raise TypeError(f"method must be a name or have a scores method; got {method!r}.")
    return get_structure(method)


def unknown_name(name: str, word: str, known: Iterable[str]) -> ValueError:
    """Return the error for an unknown structure, which the user calls by `word`."""
    hint = did_you_mean(name, known, _OTHER_NAMES)
    return ValueError(f"Unknown {word} {name!r}.{hint} Known: {', '.join(known)}.")
