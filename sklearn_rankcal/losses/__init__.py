"""Ranking losses: each knows its targets, its measure, its decoder and its theorem.

`LOSSES` maps names to classes; `get_loss` reads names such as ``"ndcg@10"``.
"""

from __future__ import annotations

import inspect
from typing import Any

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import BinaryLoss, Loss, NormalizedLoss
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

#: Names that are no losses here, and the nearest that is. The reciprocal rank of the first relevant
#: document is the cascade of `ERR` whose documents satisfy for sure.
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
    "BinaryLoss",
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


def split_cutoff(name: str) -> tuple[str, int | None]:
    """``"ndcg@10"`` to ``("ndcg", 10)``; no ``@``: None.

    Raises
    ------
    ValueError
        What follows the ``@`` is not a whole number >= 1.
    """
    base, at, cutoff = name.partition("@")
    if not at:
        return base, None
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise ValueError(f"The cutoff in {name!r} must be a whole number >= 1, as in '{base}@10'.")
    return base, int(cutoff)


def get_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """A loss object from a name, or the object itself.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`, with a cutoff after ``@`` where the loss has one, or ``"wta"`` (winner
        takes all, which is ``"precision@1"``).
    **parameters
        Parameters of the loss, such as ``gain`` or ``threshold``.

    Returns
    -------
    loss : Loss

    Raises
    ------
    ValueError
        An unknown name or a bad cutoff.
    TypeError
        Neither a string nor a `Loss`, or parameters the loss does not have.

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
    name = "q" if base == "precision" else "k"
    if base in ("precision", "recall") and cutoff is None and name not in parameters:
        raise ValueError(f"loss={loss!r} needs a cutoff, as in '{base}@10'.")
    if cutoff is not None:
        if name not in kind().get_params():
            raise ValueError(f"Loss {base!r} has no cutoff; got {loss!r}.")
        if parameters.get(name, cutoff) != cutoff:
            raise TypeError(
                f"Loss {loss!r} has its cutoff in its name; {name}={parameters[name]!r} "
                "contradicts it."
            )
        parameters = {**parameters, name: cutoff}
    return kind(**parameters)
