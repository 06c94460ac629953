"""Losses: each names the parts of the line that fit together, and the theorem that says so.

labels -> **targets** -> model -> prediction -> **decoder** -> ranking -> **measure** -> metric

Labels come in, and the targets that are calibrated for the measure come out. A loss also has the
measure itself and the space of its targets, which determines the default decoder. `LOSSES` maps
names to classes, and `get_loss` reads names such as ``"ndcg@10"``.
"""

from __future__ import annotations

import inspect
from typing import Any

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._pairs import PD, PDByScores
from sklearn_rankcal.losses._positional import (
    AUC,
    DCG,
    ERU,
    NDCG,
    Positional,
    PositionalLoss,
    Precision,
    Recall,
    Spearman,
)
from sklearn_rankcal.measures import split_cutoff
from sklearn_rankcal.utils._names import did_you_mean

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

#: Names that other libraries use, and the nearest name in `LOSSES`. The reciprocal rank of the
#: first relevant document is `ERR` where every relevant document satisfies with certainty.
_OTHER_NAMES = {
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

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "ERU",
    "LOSSES",
    "MAP",
    "NDCG",
    "PD",
    "Loss",
    "MAPByScores",
    "NormalizedLoss",
    "PDByScores",
    "Positional",
    "PositionalLoss",
    "Precision",
    "Recall",
    "Spearman",
    "get_loss",
]


def get_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """A loss object from a name, or the object itself.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`, or ``"wta"`` (winner takes all), which stands for ``"precision@1"``. If
        the loss has a parameter `k`, a cutoff may follow after ``@``.
    **parameters
        Parameters of the loss, such as ``gain`` or ``threshold``.

    Returns
    -------
    loss : Loss

    Raises
    ------
    ValueError
        If the name is unknown or the cutoff is not a whole number >= 1.
    TypeError
        If `loss` is neither a string nor a `Loss`, or if it lacks one of the parameters.

    Examples
    --------
    >>> from sklearn_rankcal.losses import get_loss
    >>> get_loss("ndcg@10")
    NDCG(k=10)
    >>> get_loss("recall@20", threshold=2)
    Recall(k=20, threshold=2)
    """
    if isinstance(loss, Loss):
        if parameters:
            raise TypeError("Parameters go with a loss name; set them on the loss object instead.")
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss must be a name or a Loss object; got {loss!r}.")
    base = "precision" if loss == "wta" else loss.partition("@")[0]
    if base not in LOSSES:
        names = sorted([*LOSSES, "wta"])
        raise ValueError(
            f"Unknown loss {loss!r}.{did_you_mean(loss, names, _OTHER_NAMES)} "
            f"Known: {', '.join(names)}."
        )
    _, cutoff = split_cutoff("precision@1" if loss == "wta" else loss)
    kind = LOSSES[base]
    known = tuple(inspect.signature(kind).parameters)
    for parameter in parameters:
        if parameter not in known:
            raise TypeError(
                f"Loss {loss!r} has no parameter {parameter!r}. "
                + (f"Its parameters: {', '.join(known)}." if known else "It has no parameters.")
            )
    if base in ("precision", "recall") and cutoff is None and "k" not in parameters:
        raise ValueError(f"loss={loss!r} needs a cutoff, as in '{base}@10'.")
    if cutoff is not None:
        if "k" not in kind().get_params():
            raise ValueError(f"Loss {base!r} has no cutoff; got {loss!r}.")
        if parameters.get("k", cutoff) != cutoff:
            raise TypeError(
                f"Loss {loss!r} has its cutoff in its name; k={parameters['k']!r} contradicts it."
            )
        parameters = {**parameters, "k": cutoff}
    return kind(**parameters)
