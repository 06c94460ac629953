"""The registry of losses. A name comes in; a loss comes out."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._pairs import PD, PDByScores
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
from sklearn_rankcal.measures._registry import split_cutoff
from sklearn_rankcal.targets._space import Space
from sklearn_rankcal.utils._names import check_parameters, did_you_mean

#: The losses by name; a name with a cutoff, such as ``"ndcg@10"``, sets `k`. The example of
#: `get_loss` is a loop over all of them.
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

#: Names that other libraries use, and the nearest name in `LOSSES`. If every relevant document
#: satisfies the user with certainty, `ERR` is the reciprocal rank of the first relevant document.
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


def get_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """Make a loss object from a name. A loss object is returned unchanged.

    Parameters
    ----------
    loss : str or Loss
        A key of `LOSSES`, or ``"wta"`` (winner takes all), which stands for ``"precision@1"``. If
        the loss has a parameter `k`, the name may end in a cutoff, as in ``"ndcg@10"``.
    **parameters
        Parameters of the loss, such as ``gain`` or ``threshold``, with a name only.

    Returns
    -------
    loss : Loss

    Raises
    ------
    ValueError, TypeError
        If the name, a parameter or the cutoff is unknown, not valid or missing, or if parameters
        are passed with a loss object.

    Examples
    --------
    >>> from sklearn_rankcal.losses import get_loss
    >>> get_loss("recall@20", threshold=2)
    Recall(k=20, threshold=2)

    A ranker for every loss with its default parameters, but `Positional`, which has none. Labels of
    0 and 1 suit them all:

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
                f"Parameters can only be passed with the name of a loss, but loss is {loss!r}. Set "
                "the parameters of this object instead."
            )
        if not isinstance(loss.space, Space):
            raise TypeError(
                f"{type(loss).__name__}.space must be SCORES, PAIRS or SYMMETRIC_PAIRS of "
                f"sklearn_rankcal.targets; got {loss.space!r}."
            )
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
    known = _parameters_of(base)
    check_parameters(f"Loss {loss!r}", parameters, known)
    if base in ("precision", "recall") and cutoff is None and "k" not in parameters:
        raise ValueError(f"loss={loss!r} needs a cutoff, as in '{base}@10'.")
    if cutoff is not None:
        if "k" not in known:
            raise ValueError(f"Loss {base!r} has no cutoff; got {loss!r}.")
        if parameters.get("k", cutoff) != cutoff:
            raise TypeError(
                f"loss={loss!r} gives the cutoff {cutoff}, but k={parameters['k']!r} was passed."
            )
        parameters = {**parameters, "k": cutoff}
    return kind(**parameters)


@cache
def _parameters_of(base: str) -> list[str]:
    return list(inspect.signature(LOSSES[base]).parameters)
