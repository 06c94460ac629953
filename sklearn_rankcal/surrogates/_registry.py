"""The registry of surrogates. A name comes in; a surrogate comes out."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn_rankcal.surrogates._base import Surrogate
from sklearn_rankcal.surrogates._comparisons import (
    DifferenceGraph,
    RankBoost,
    RankNet,
    RankSVM,
    RequiredMargin,
    WeightedComparisons,
)
from sklearn_rankcal.surrogates._listwise import (
    Bregman,
    Cosine,
    DuchiMackeyJordan,
    GeneralizedKullbackLeibler,
    Softmax,
)
from sklearn_rankcal.surrogates._pairwise import (
    PairwiseExponential,
    PairwiseLogistic,
    PairwiseMargin,
    PairwiseSquared,
)
from sklearn_rankcal.surrogates._pointwise import (
    PointwiseExponential,
    PointwiseLogistic,
    PointwiseSmoothHinge,
    PointwiseSquared,
    PointwiseSquaredHinge,
)
from sklearn_rankcal.utils._names import check_parameters, did_you_mean

#: The surrogates by name.
SURROGATES: dict[str, type[Surrogate]] = {
    "pointwise_squared": PointwiseSquared,
    "pointwise_logistic": PointwiseLogistic,
    "pointwise_exponential": PointwiseExponential,
    "pointwise_squared_hinge": PointwiseSquaredHinge,
    "pointwise_smooth_hinge": PointwiseSmoothHinge,
    "pairwise_squared": PairwiseSquared,
    "pairwise_logistic": PairwiseLogistic,
    "pairwise_exponential": PairwiseExponential,
    "pairwise_margin": PairwiseMargin,
    "softmax": Softmax,
    "cosine": Cosine,
    "generalized_kl": GeneralizedKullbackLeibler,
    "bregman": Bregman,
    "duchi_mackey_jordan": DuchiMackeyJordan,
    "difference_graph": DifferenceGraph,
    "weighted_comparisons": WeightedComparisons,
    "required_margin": RequiredMargin,
    "ranksvm": RankSVM,
    "ranknet": RankNet,
    "rankboost": RankBoost,
}

#: Names that others use, and the nearest name in `SURROGATES`.
_OTHER_NAMES = {
    "cross_entropy": "softmax",
    "hinge": "ranksvm",
    "kl": "generalized_kl",
    "lambdarank": "softmax",
    "least_squares": "pointwise_squared",
    "listnet": "softmax",
    "logistic": "pairwise_logistic",
    "poisson": "generalized_kl",
    "rank_xendcg": "softmax",
    "squared": "pointwise_squared",
    "squared_error": "pointwise_squared",
    "svm": "ranksvm",
    "xendcg": "softmax",
    "zhang": "pairwise_margin",
}


def get_surrogate(surrogate: str | Surrogate, **parameters: Any) -> Surrogate:
    """Make a surrogate from a name. A surrogate object is returned unchanged.

    Parameters
    ----------
    surrogate : str or Surrogate
        A key of `SURROGATES`, or an object.
    **parameters
        Parameters of the surrogate, such as ``eta``, with a name only.

    Returns
    -------
    surrogate : Surrogate

    Raises
    ------
    ValueError, TypeError
        If the name or a parameter is unknown, or if parameters are passed with an object.

    Examples
    --------
    >>> from sklearn_rankcal.surrogates import get_surrogate
    >>> get_surrogate("pointwise_logistic", eta=1.0)
    PointwiseLogistic(eta=1.0)
    """
    if isinstance(surrogate, Surrogate):
        if parameters:
            raise TypeError(
                f"Parameters can only be passed with the name of a surrogate, but surrogate is "
                f"{surrogate!r}. Set the parameters of this object instead."
            )
        return surrogate
    if not isinstance(surrogate, str):
        raise TypeError(f"surrogate must be a name or a Surrogate object; got {surrogate!r}.")
    if surrogate not in SURROGATES:
        raise ValueError(
            f"Unknown surrogate {surrogate!r}.{did_you_mean(surrogate, SURROGATES, _OTHER_NAMES)} "
            f"Known: {', '.join(SURROGATES)}."
        )
    kind = SURROGATES[surrogate]
    known = list(inspect.signature(kind).parameters)
    check_parameters(f"Surrogate {surrogate!r}", parameters, known)
    return kind(**parameters)
