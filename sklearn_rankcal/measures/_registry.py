"""The registry of measures. A name such as "ndcg@10" comes in; a measure comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sklearn_rankcal.measures._base import Measure
from sklearn_rankcal.measures._cascade import ERR
from sklearn_rankcal.measures._pairs import KendallTau, PairwiseDisagreement
from sklearn_rankcal.measures._positional import AUC, DCG, ERU, NDCG, Precision, Recall, Spearman
from sklearn_rankcal.measures._relevant_places import AveragePrecision, ReciprocalRank
from sklearn_rankcal.utils._names import check_parameters, did_you_mean

#: The measures by name; a name with a cutoff, such as ``"ndcg@10"``, sets `k`.
MEASURES: dict[str, type[Measure]] = {
    "auc": AUC,
    "dcg": DCG,
    "err": ERR,
    "eru": ERU,
    "kendall_tau": KendallTau,
    "map": AveragePrecision,
    "mrr": ReciprocalRank,
    "ndcg": NDCG,
    "pairwise_disagreement": PairwiseDisagreement,
    "precision": Precision,
    "recall": Recall,
    "spearman": Spearman,
}
#: Measures whose value would not depend on the ranking without a cutoff.
NEED_CUTOFF = ("precision", "recall")


def split_cutoff(name: str) -> tuple[str, int | None]:
    """Split ``"ndcg@10"`` into ``("ndcg", 10)``. The cutoff is None if the name has no ``@``."""
    base, at, cutoff = name.partition("@")
    if not at:
        return base, None
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise ValueError(f"The cutoff in {name!r} must be a whole number >= 1, as in '{base}@10'.")
    return base, int(cutoff)


#: Names that other libraries use, each with the nearest name in `MEASURES`.
OTHER_NAMES = {
    "average_precision": "map",
    "ap": "map",
    "kendall": "kendall_tau",
    "map_by_scores": "map",
    "p": "precision",
    "pd": "pairwise_disagreement",
    "pd_by_scores": "pairwise_disagreement",
    "positional": "dcg",
    "r": "recall",
    "reciprocal_rank": "mrr",
    "recip_rank": "mrr",
    "roc_auc": "auc",
    "rr": "mrr",
    "tau": "kendall_tau",
    "wta": "precision@1",
}


def find_measure(name: Any) -> tuple[type[Measure], int | None]:
    """The class of the measure that a name stands for, and the cutoff in the name."""
    if not isinstance(name, str):
        raise TypeError(f"metric must be a name such as 'ndcg@10'; got {name!r}.")
    base = name.partition("@")[0]
    if base not in MEASURES:
        raise ValueError(
            f"Unknown metric {name!r}.{did_you_mean(name, MEASURES, OTHER_NAMES)} "
            f"Known: {', '.join(MEASURES)}."
        )
    return MEASURES[base], split_cutoff(name)[1]


def parameters_of(kind: type[Measure]) -> tuple[str, ...]:
    """Names of the parameters of a measure."""
    return tuple(field.name for field in fields(kind))


def get_measure(name: str, **parameters: Any) -> Measure:
    """Make a measure from its name.

    Parameters
    ----------
    name : str
        A key of `MEASURES`. If the measure has a parameter `k`, a cutoff may follow after ``@``.
    **parameters
        Parameters of the measure, such as ``threshold``.

    Returns
    -------
    measure : Measure

    Raises
    ------
    ValueError, TypeError
        If the name, a cutoff or a parameter is unknown, not valid or missing.

    Examples
    --------
    >>> from sklearn_rankcal.measures import get_measure
    >>> get_measure("precision@5", threshold=2)
    Precision(threshold=2, k=5)
    """
    kind, cutoff = find_measure(name)
    base, known = name.partition("@")[0], parameters_of(kind)
    check_parameters(f"Metric {name!r}", parameters, known)
    if cutoff is not None:
        if "k" not in known:
            raise ValueError(f"Metric {base!r} has no cutoff; got {name!r}.")
        if parameters.get("k", cutoff) != cutoff:
            raise TypeError(
                f"Metric {name!r} has its cutoff in its name; k={parameters['k']!r} contradicts it."
            )
        parameters = {**parameters, "k": cutoff}
    elif base in NEED_CUTOFF and "k" not in parameters:
        raise ValueError(f"Metric {name!r} needs a cutoff, as in '{base}@10'.")
    return kind(**parameters)


def get_measures(names: Sequence[str], parameters: dict[str, Any]) -> list[Measure]:
    """Make measures from their names. Each parameter is passed to those measures that have it."""
    if not len(names):
        raise ValueError("metrics is empty. Name at least one metric, as in metrics=['ndcg@10'].")
    kinds = [find_measure(name)[0] for name in names]
    for parameter in parameters:
        if not any(parameter in parameters_of(kind) for kind in kinds):
            having = [name for name, kind in MEASURES.items() if parameter in parameters_of(kind)]
            verb = "have" if len(names) > 1 else "has"
            raise TypeError(
                f"{' and '.join(map(repr, names))} {verb} no parameter {parameter!r}. "
                + " ".join(map(_described, names, kinds))
                + (f" Metrics that have it: {', '.join(having)}." if having else "")
            )
    return [
        get_measure(
            name, **{key: parameters[key] for key in parameters_of(kind) if key in parameters}
        )
        for name, kind in zip(names, kinds, strict=True)
    ]


def _described(name: str, kind: type[Measure]) -> str:
    """A sentence that lists the parameters of a measure."""
    if not parameters_of(kind):
        return f"{name!r} has no parameters."
    return f"Parameters of {name!r}: {', '.join(parameters_of(kind))}."
