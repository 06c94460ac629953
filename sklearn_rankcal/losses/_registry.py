"""Registries of losses and measures by name, such as "ndcg@10"."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np

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
    Choice,
    ChoiceLogLoss,
    Positional,
    Precision,
    Recall,
    Spearman,
)
from sklearn_rankcal.targets import Space
from sklearn_rankcal.utils._messages import check_parameters, look_up

#: The losses by name. A name with a cutoff, such as ``"ndcg@10"``, sets `k`.
LOSSES: dict[str, type[Loss]] = {
    "precision": Precision,
    "eru": ERU,
    "dcg": DCG,
    "ndcg": NDCG,
    "recall": Recall,
    "auc": AUC,
    "spearman": Spearman,
    "err": ERR,
    "choice": Choice,
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
    """
    if isinstance(loss, str):
        if loss in LOSSES and not parameters and not LOSSES[loss].needs_cutoff:
            return LOSSES[loss]()
        loss = "precision@1" if loss == "wta" else loss
    kind = look_up("loss", loss, LOSSES, Loss, parameters, _NAMES_OF_LOSSES)
    if isinstance(kind, Loss):
        if not isinstance(kind.space, Space):
            raise TypeError(
                f"{type(kind).__name__}.space must be SCORES, PAIRS or SYMMETRIC_PAIRS of "
                f"sklearn_rankcal.targets; got {kind.space!r}."
            )
        return kind
    return make_named("Loss", str(loss), kind, parameters, signature_of(kind))


def make_named(
    what: str, name: str, kind: Any, parameters: dict[str, Any], known: tuple[str, ...]
) -> Any:
    """Make an object of a class from its name and parameters; `known` has all its parameters."""
    check_parameters(f"{what} {name!r}", parameters, known)
    base, at, cutoff = name.partition("@")
    if at:
        if not cutoff.isdecimal() or int(cutoff) < 1:
            raise ValueError(
                f"The cutoff in {name!r} must be a whole number >= 1, as in '{base}@10'."
            )
        if "k" not in known:
            raise ValueError(f"{what} {base!r} has no cutoff; got {name!r}.")
        if parameters.get("k", int(cutoff)) != int(cutoff):
            raise TypeError(
                f"{what} {name!r} contains a cutoff, but k={parameters['k']!r} was passed."
            )
        parameters = {**parameters, "k": int(cutoff)}
    elif getattr(kind, "needs_cutoff", False) and "k" not in parameters:
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


#: Measures of choices, which are not among those of all rankings in `MEASURES`.
_KNOWN = MEASURES | {"choice": Choice, "choice_log_loss": ChoiceLogLoss}
#: Names that other libraries use, each with the nearest name in `MEASURES`.
_NAMES_OF_MEASURES = {
    "average_precision": "map",
    "ap": "map",
    "kendall": "kendall_tau",
    "log_loss": "choice_log_loss",
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


def settable_parameters(metric: Any) -> tuple[str, ...]:
    """Return the parameters that `get_measure` takes with a metric: none with an object."""
    kind = look_up("metric", metric, _KNOWN, Measure, {}, _NAMES_OF_MEASURES)
    if isinstance(kind, Measure):
        return ()
    return tuple(name for name in signature_of(kind) if name not in kind._of_targets)


@cache
def signature_of(kind: Any) -> tuple[str, ...]:
    # a ranker makes its loss in every call, and reading a signature takes 50 microseconds
    return tuple(inspect.signature(kind).parameters)


def get_measure(name: str | Measure, **parameters: Any) -> Measure:
    """Make a measure from its name.

    Parameters
    ----------
    name : str or Measure
        A key of `MEASURES`, or ``"choice_log_loss"``. If the measure has a parameter `k`, the name
        can contain a cutoff, as in ``"ndcg@10"``. A measure, also a loss, is returned unchanged.
    **parameters
        Parameters of the measure, such as ``threshold``. Not allowed with a measure.

    Returns
    -------
    measure : Measure
        The measure object. Tables and plots show it as ``str(measure)``.

    Examples
    --------
    >>> from sklearn_rankcal.losses import get_measure
    >>> get_measure("precision@5", threshold=2)
    Precision(k=5, threshold=2)
    """
    kind = look_up("metric", name, _KNOWN, Measure, parameters, _NAMES_OF_MEASURES)
    if isinstance(kind, Measure):
        return kind
    measure: Measure = make_named("Metric", str(name), kind, parameters, settable_parameters(name))
    return measure


def get_measures(metrics: Any, parameters: dict[str, Any], **defaults: Any) -> dict[str, Measure]:
    """Make measures from one metric or several: names, and measures, which keep their parameters.

    Each parameter is passed to the named measures that have it, of which there must be one unless
    it is a default. The keys of the result are the names in tables: ``str(metric)``.
    """
    several = [metrics] if isinstance(metrics, str) or not np.iterable(metrics) else list(metrics)
    if not several:
        raise ValueError("metrics is empty. Name at least one metric, as in metrics=['ndcg@10'].")
    known = {str(metric): settable_parameters(metric) for metric in several}
    for parameter in parameters:
        if not any(parameter in names for names in known.values()):
            having = [name for name in MEASURES if parameter in settable_parameters(name)]
            verb = "have" if len(known) > 1 else "has"
            raise TypeError(
                f"{' and '.join(map(repr, known))} {verb} no parameter {parameter!r}."
                + (f" Metrics that have it: {', '.join(having)}." if having else "")
            )
    given = {**defaults, **parameters}
    return {
        str(metric): get_measure(
            metric, **{key: given[key] for key in known[str(metric)] if key in given}
        )
        for metric in several
    }
