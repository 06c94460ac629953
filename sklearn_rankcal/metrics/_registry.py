"""METRICS: ranking measures by name, each a function of a `Ranking` and the labels, per query."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.losses import (
    AUC,
    DCG,
    ERR,
    ERU,
    NDCG,
    PD,
    Loss,
    MAPByScores,
    Precision,
    Recall,
    Spearman,
    split_cutoff,
)
from sklearn_rankcal.losses._base import binary_relevance, check_cutoff
from sklearn_rankcal.measures._formulas import Ranking, reciprocal_rank
from sklearn_rankcal.utils._names import did_you_mean

PerQuery = Callable[[Ranking, Any], NDArray[np.float64]]


def _mrr(k: int | None = None, threshold: float | None = None) -> PerQuery:
    check_cutoff("k", k)
    return lambda ranked, relevance: reciprocal_rank(
        ranked, binary_relevance(relevance, threshold), k
    )


def _disagreement(graded: bool = False, normalize: bool = True) -> PerQuery:
    loss = PD("graded" if graded else "binary")

    def per_query(ranked: Ranking, labels: Any) -> NDArray[np.float64]:
        return loss.share_lost(ranked, labels) if normalize else loss.lost(ranked, labels)

    return per_query


def _kendall() -> PerQuery:
    disagreement = _disagreement()
    return lambda ranked, relevance: 1 - 2 * disagreement(ranked, relevance)


def of_loss(loss: Loss) -> PerQuery:
    """The measure of a loss as a function of (ranked, relevance)."""

    def per_query(ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        loss.check(relevance)
        return loss.measure(ranked, relevance)

    return per_query


def _loss_metric(kind: type[Loss]) -> Callable[..., PerQuery]:
    def build(**parameters: Any) -> PerQuery:
        return of_loss(kind(**parameters))

    signature = inspect.signature(kind)
    # the shrinkage of targets changes no measure: a metric that took it would ignore it in silence
    own = [each for name, each in signature.parameters.items() if name != "shrinkage"]
    build.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return build


@dataclass(frozen=True)
class Metric:
    """A named metric: how to build it, the parameter that `@` sets, what labels it takes."""

    build: Callable[..., PerQuery]
    cutoff: str | None = None
    greater_is_better: bool = True
    takes_preferences: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters."""
        return tuple(inspect.signature(self.build).parameters)


METRICS: dict[str, Metric] = {
    "auc": Metric(_loss_metric(AUC)),
    "dcg": Metric(_loss_metric(DCG), "k"),
    "err": Metric(_loss_metric(ERR), "k"),
    "eru": Metric(_loss_metric(ERU)),
    "kendall_tau": Metric(_kendall, takes_preferences=True),
    "map": Metric(_loss_metric(MAPByScores), "k"),
    "mrr": Metric(_mrr, "k"),
    "ndcg": Metric(_loss_metric(NDCG), "k"),
    "pairwise_disagreement": Metric(_disagreement, greater_is_better=False, takes_preferences=True),
    "precision": Metric(_loss_metric(Precision), "q"),
    "recall": Metric(_loss_metric(Recall), "k"),
    "spearman": Metric(_loss_metric(Spearman)),
}


#: Names that are no metrics here, and the nearest that is.
_OTHER_NAMES = {
    "average_precision": "map",
    "ap": "map",
    "kendall": "kendall_tau",
    "map_by_scores": "map",
    "p": "precision",
    "pd": "pairwise_disagreement",
    "pd_by_scores": "pairwise_disagreement",
    "positional": "dcg",
    "reciprocal_rank": "mrr",
    "recip_rank": "mrr",
    "roc_auc": "auc",
    "rr": "mrr",
    "tau": "kendall_tau",
    "wta": "precision@1",
}


def find_metric(name: Any) -> tuple[Metric, str, int | None]:
    """The metric of a name, its name without the cutoff, and the cutoff.

    Raises
    ------
    ValueError
        An unknown name, or a bad cutoff.
    TypeError
        Not a name.
    """
    if not isinstance(name, str):
        raise TypeError(f"metric must be a name such as 'ndcg@10'; got {name!r}.")
    base = name.partition("@")[0]
    if base not in METRICS:
        raise ValueError(
            f"Unknown metric {name!r}.{did_you_mean(name, METRICS, _OTHER_NAMES)} "
            f"Known: {', '.join(METRICS)}."
        )
    return METRICS[base], *split_cutoff(name)


def get_metric(name: str, **parameters: Any) -> tuple[PerQuery, bool]:
    """A metric by name: its per-query function, and whether larger is better.

    Raises
    ------
    ValueError
        An unknown name, or a cutoff where the metric has none (or lacks one it needs).
    TypeError
        Parameters that the metric does not have, or two cutoffs.
    """
    metric, base, cutoff = find_metric(name)
    for parameter in parameters:
        if parameter not in metric.parameters:
            raise TypeError(
                f"Metric {name!r} has no parameter {parameter!r}. {_described(name, metric)}"
            )
    if cutoff is not None:
        if metric.cutoff is None:
            raise ValueError(f"Metric {base!r} has no cutoff; got {name!r}.")
        if parameters.get(metric.cutoff, cutoff) != cutoff:
            raise TypeError(
                f"Metric {name!r} has its cutoff in its name; {metric.cutoff}="
                f"{parameters[metric.cutoff]!r} contradicts it."
            )
        parameters = {**parameters, metric.cutoff: cutoff}
    elif base in ("precision", "recall") and metric.cutoff not in parameters:
        raise ValueError(f"Metric {name!r} needs a cutoff, as in '{base}@10'.")
    return metric.build(**parameters), metric.greater_is_better


def _described(name: str, metric: Metric) -> str:
    if not metric.parameters:
        return f"{name!r} has no parameters."
    return f"Parameters of {name!r}: {', '.join(metric.parameters)}."


def get_metrics(names: Sequence[str], parameters: dict[str, Any]) -> list[tuple[PerQuery, bool]]:
    """Metrics by name, each with those of the parameters that it has.

    Raises
    ------
    ValueError
        As `get_metric`, and no name at all.
    TypeError
        A parameter that none of the metrics has.
    """
    if not len(names):
        raise ValueError("metrics is empty: name at least one, as in metrics=['ndcg@10'].")
    found = [find_metric(name)[0] for name in names]
    for parameter in parameters:
        if not any(parameter in metric.parameters for metric in found):
            having = [name for name, other in METRICS.items() if parameter in other.parameters]
            raise TypeError(
                f"{' and '.join(map(repr, names))} "
                + (
                    f"have no parameter {parameter!r}. "
                    if len(names) > 1
                    else f"has no parameter {parameter!r}. "
                )
                + " ".join(map(_described, names, found))
                + (f" Metrics that have it: {', '.join(having)}." if having else "")
            )
    return [
        get_metric(name, **{key: parameters[key] for key in metric.parameters if key in parameters})
        for name, metric in zip(names, found, strict=True)
    ]


BINARY_METRICS = tuple(name for name in METRICS if "threshold" in METRICS[name].parameters)
