"""What losses need to know of rankings of labels: thresholds of ranks, and targets of pairs."""

from __future__ import annotations

from sklearn.base import clone

from sklearn_rankcal.losses import PD, Loss, PDByScores
from sklearn_rankcal.measures import BinaryMeasure
from sklearn_rankcal.measures._base import check_cutoff


def with_threshold(loss: Loss, r: int) -> Loss:
    """Set the threshold of a binary loss on ranks that has none, from its cutoff."""
    if not isinstance(loss.measure, BinaryMeasure) or loss.threshold is not None:
        return loss
    cutoff = getattr(loss, "k", None)
    check_cutoff("k", cutoff)
    kind = type(loss).__name__
    if cutoff is None:
        raise ValueError(
            f"Ranks do not determine which labels are relevant to {kind}. With "
            f"{kind}(threshold={r - 1}), the first label is; threshold=t means labels with "
            "r - rank >= t. With y_type='relevance', y can hold 0 and 1 instead of ranks."
        )
    if cutoff >= r > 1:
        raise ValueError(
            f"With {kind}(k={cutoff}), the first {cutoff} labels are relevant, but there are only "
            f"{r} labels, so that every ranking is equally good. Use a smaller k or a threshold."
        )
    return clone(loss).set_params(threshold=r - cutoff)


def by_pairs(loss: Loss) -> bool:
    """Whether targets are differences of pairs or sums of them, so that pairs can be missing."""
    return isinstance(loss, PD) or (isinstance(loss, PDByScores) and loss.score_function == "borda")
