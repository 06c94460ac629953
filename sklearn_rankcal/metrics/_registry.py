"""METRICS: ranking measures by name, each a function of a `Ranked` and the labels, per query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._ranked import Ranked, reciprocal_rank
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

PerQuery = Callable[[Ranked, Any], NDArray[np.float64]]


def _mrr(k: int | None = None, threshold: float | None = None) -> PerQuery:
    check_cutoff("k", k)
    return lambda ranked, relevance: reciprocal_rank(
        ranked, binary_relevance(relevance, threshold), k
    )


def _disagreement(graded: bool = False, normalize: bool = True) -> PerQuery:
    loss = PD("graded" if graded else "binary")

    def per_query(ranked: Ranked, labels: Any) -> NDArray[np.float64]:
        return loss.share_lost(ranked, labels) if normalize else loss.lost(ranked, labels)

    return per_query


def _kendall() -> PerQuery:
    disagreement = _disagreement()
    return lambda ranked, relevance: 1 - 2 * disagreement(ranked, relevance)


def of_loss(loss: Loss) -> PerQuery:
    """The measure of a loss as a function of (ranked, relevance)."""

    def per_query(ranked: Ranked, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        loss.check(relevance)
        return loss.measure(ranked, relevance)

    return per_query


def _loss_metric(kind: type[Loss]) -> Callable[..., PerQuery]:
    return lambda **parameters: of_loss(kind(**parameters))


@dataclass(frozen=True)
class Metric:
    """A named metric: how to build it, the parameter that `@` sets, what labels it takes."""

    build: Callable[..., PerQuery]
    cutoff: str | None = None
    greater_is_better: bool = True
    takes_preferences: bool = False


METRICS: dict[str, Metric] = {
    "auc": Metric(_loss_metric(AUC)),
    "dcg": Metric(_loss_metric(DCG), "k"),
    "err": Metric(_loss_metric(ERR), "k"),
    "eru": Metric(_loss_metric(ERU)),
    "kendall_tau": Metric(_kendall, takes_preferences=True),
    "map": Metric(_loss_metric(MAPByScores), "k"),
    "mrr": Metric(_mrr, "k"),
    "ndcg": Metric(_loss_metric(NDCG), "k"),
    "pairwise_disagreement": Metric(
        _disagreement, greater_is_better=False, takes_preferences=True
    ),
    "precision": Metric(_loss_metric(Precision), "q"),
    "recall": Metric(_loss_metric(Recall), "k"),
    "spearman": Metric(_loss_metric(Spearman)),
}


def get_metric(name: str, **parameters: Any) -> tuple[PerQuery, bool]:
    """A metric by name: its per-query function, and whether larger is better.

    Raises
    ------
    ValueError
        An unknown name, or a cutoff where the metric has none (or lacks one it needs).
    TypeError
        Parameters that the metric does not have.
    """
    if not isinstance(name, str):
        raise TypeError(f"metric must be a name such as 'ndcg@10'; got {name!r}.")
    base, cutoff = split_cutoff(name)
    if base not in METRICS:
        raise ValueError(f"Unknown metric {name!r}. Known: {', '.join(METRICS)}.")
    metric = METRICS[base]
    if cutoff is not None:
        if metric.cutoff is None:
            raise ValueError(f"Metric {base!r} has no cutoff; got {name!r}.")
        parameters = {metric.cutoff: cutoff, **parameters}
    elif base in ("precision", "recall") and metric.cutoff not in parameters:
        raise ValueError(f"Metric {name!r} needs a cutoff, as in '{base}@10'.")
    return metric.build(**parameters), metric.greater_is_better


BINARY_METRICS = ("auc", "map", "mrr", "precision", "recall")
