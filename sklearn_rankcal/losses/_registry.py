"""Registries of losses and measures by name, such as "ndcg@10"."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

from sklearn_rankcal.losses._average_precision import (
    MAP,
    AveragePrecision,
    MAPByScores,
    ReciprocalRank,
)
from sklearn_rankcal.losses._base import Loss, Measure
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._pairs import PD, KendallTau, PairwiseDisagreement, PDByScores
from sklearn_rankcal.losses._positional import (
    AUC,
    DCG,
    ERU,
    NDCG,
    Positional,
    Precision,
    Recall,
    Spearman,
)
from sklearn_rankcal.targets import Space
from sklearn_rankcal.utils._messages import check_parameters, did_you_mean

#: The losses by name. A name with a cutoff, such as ``"ndcg@10"``, sets `k`. The example of
#: `get_loss` loops over all losses.
LOSSES: dict[str, type[Loss]] = {
    "precision": Precision,
    "eru": ERU,
    "dcg": DCG,
    "ndcg": NDCG,
    "recall": Recall,
    "auc": AUC,
    "spearman": Spearman,
    "err": ERR,
    "map": MAP,
    "map_by_scores": MAPByScores,
    "pd": PD,
    "pd_by_scores": PDByScores,
    "positional": Positional,
}

#: Names that other libraries use, and the nearest name in `LOSSES`. `ERR` is the reciprocal rank if
#: every relevant document satisfies the user with probability 1.
_NAMES_OF_LOSSES = {
    "ap": "map",
    "average_precision": "map",
    "kendall": "pd",
    "kendall_tau": "pd",
    "lambdarank": "ndcg",
    "mrr": "err",
    "p": "precision",
    "pairwise": "pd",
    "pairwise_disagreement": "pd",
    "reciprocal_rank": "err",
    "roc_auc": "auc",
    "tau": "pd",
}


def get_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """Make a loss object from a name.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`, or ``"wta"`` (winner takes all), another name for ``"precision@1"``. If
        the loss has a parameter `k`, the name can contain a cutoff, as in ``"ndcg@10"``. A loss
        object is returned unchanged.
    **parameters
        Parameters of the loss, such as ``gain`` or ``threshold``. Not allowed with a loss object.

    Returns
    -------
    loss : Loss
        The loss object.

    Examples
    --------
    >>> from sklearn_rankcal.losses import get_loss
    >>> get_loss("recall@20", threshold=2)
    Recall(k=20, threshold=2)

    Make a ranker for every loss with default parameters, except `Positional`, which needs
    parameters. All these losses accept labels of 0 and 1:

    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import LOSSES
    >>> losses = {name: kind() for name, kind in LOSSES.items() if name != "positional"}
    >>> rankers = {name: CalibratedRanker("boosting", loss=loss) for name, loss in losses.items()}
    >>> rankers["precision"].loss.k
    10
    """
    if isinstance(loss, Loss):
        if parameters:
            raise TypeError(
                f"Parameters can only be passed with the name of a loss; got the loss {loss!r}. "
                "Set the parameters of this object instead."
            )
        if not isinstance(loss.space, Space):
            raise TypeError(
                f"{type(loss).__name__}.space must be SCORES, PAIRS or SYMMETRIC_PAIRS of "
                f"sklearn_rankcal.targets; got {loss.space!r}."
            )
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss must be a name or a Loss object; got {loss!r}.")
    name = "precision@1" if loss == "wta" else loss
    base = name.partition("@")[0]
    if base not in LOSSES:
        names = sorted([*LOSSES, "wta"])
        raise ValueError(
            f"Unknown loss {loss!r}.{did_you_mean(loss, names, _NAMES_OF_LOSSES)} "
            f"Known: {', '.join(names)}."
        )
    kind: Any = LOSSES[base]  # mypy thinks that types have no hash
    if name == base and not parameters and not kind.needs_cutoff:
        return kind()
    return _make("Loss", name, kind, parameters, _signature(kind))


def _make(
    what: str, name: str, kind: Any, parameters: dict[str, Any], known: tuple[str, ...]
) -> Any:
    """Make a loss or a measure from its name and parameters; `known` has all its parameters."""
    check_parameters(f"{what} {name!r}", parameters, known)
    base, cutoff = split_cutoff(name)
    if cutoff is not None:
        if "k" not in known:
            raise ValueError(f"{what} {base!r} has no cutoff; got {name!r}.")
        if parameters.get("k", cutoff) != cutoff:
            raise TypeError(
                f"{what} {name!r} contains a cutoff, but k={parameters['k']!r} was passed."
            )
        parameters = {**parameters, "k": cutoff}
    elif kind.needs_cutoff and "k" not in parameters:
        raise ValueError(f"{what} {name!r} needs a cutoff, as in '{base}@10'.")
    return kind(**parameters)


def refuse_loss(regressor: Any) -> None:
    """Raise an error if a user passed the name of a loss as the regressor."""
    if isinstance(regressor, str):
        name = regressor.strip().lower()
        if name.partition("@")[0] in [*LOSSES, "wta"]:
            raise ValueError(
                f"regressor={regressor!r} is the name of a loss. Pass it as loss={name!r}: the "
                "first parameter is the regressor."
            )


def split_cutoff(name: str) -> tuple[str, int | None]:
    """Split ``"ndcg@10"`` into ``("ndcg", 10)``. Without ``@``, the cutoff is None."""
    base, at, cutoff = name.partition("@")
    if not at:
        return base, None
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise ValueError(f"The cutoff in {name!r} must be a whole number >= 1, as in '{base}@10'.")
    return base, int(cutoff)


# ---------------------------------------------------------------- measures, of metrics and scorers

#: The measures by name. A name with a cutoff, such as ``"ndcg@10"``, sets `k`.
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


#: Names that other libraries use, each with the nearest name in `MEASURES`.
_NAMES_OF_MEASURES = {
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
    """Return the class of a measure given its name, and the cutoff in the name."""
    if not isinstance(name, str):
        raise TypeError(f"metric must be a name such as 'ndcg@10'; got {name!r}.")
    base = name.partition("@")[0]
    if base not in MEASURES:
        raise ValueError(
            f"Unknown metric {name!r}.{did_you_mean(name, MEASURES, _NAMES_OF_MEASURES)} "
            f"Known: {', '.join(MEASURES)}."
        )
    return MEASURES[base], split_cutoff(name)[1]


def parameters_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a measure."""
    return tuple(name for name in _signature(kind) if name not in kind._of_targets)


@cache
def _signature(kind: type[Measure]) -> tuple[str, ...]:
    # a ranker makes its loss in every call, and reading a signature takes 50 microseconds
    return tuple(inspect.signature(kind).parameters)


def get_measure(name: str, **parameters: Any) -> Measure:
    """Make a measure from its name.

    Parameters
    ----------
    name : str
        A key of `MEASURES`. If the measure has a parameter `k`, the name can contain a cutoff, as
        in ``"ndcg@10"``.
    **parameters
        Parameters of the measure, such as ``threshold``.

    Returns
    -------
    measure : Measure
        The measure object.

    Examples
    --------
    >>> from sklearn_rankcal.losses import get_measure
    >>> get_measure("precision@5", threshold=2)
    Precision(k=5, threshold=2)
    """
    kind, _ = find_measure(name)
    measure: Measure = _make("Metric", name, kind, parameters, parameters_of(kind))
    return measure


def get_measures(names: Sequence[str], parameters: dict[str, Any]) -> list[Measure]:
    """Make measures from their names. Each parameter is passed to the measures that have it."""
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
    """Return a sentence that lists the parameters of a measure."""
    if not parameters_of(kind):
        return f"{name!r} has no parameters."
    return f"Parameters of {name!r}: {', '.join(parameters_of(kind))}."
