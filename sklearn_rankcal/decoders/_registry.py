"""The registry of decoders. A space of predictions and a name come in; a decoder comes out."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from sklearn_rankcal.decoders._decode_scores import Sort
from sklearn_rankcal.decoders._pair_decoders import (
    AutoAveragePrecision,
    AutoPreferences,
    Borda,
    Copeland,
    DiagonalSort,
    ExactAveragePrecision,
    ExactPreferences,
    GreedyDAG,
    InsertionSort,
    LocalSearchAveragePrecision,
    LocalSearchPreferences,
)
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._space import get_space
from sklearn_rankcal.utils._names import did_you_mean

#: The decoders by the space of the predictions that they take and their name.
DECODERS: dict[tuple[str, str], type[BaseEstimator]] = {
    (SCORES, "sort"): Sort,
    (PAIRS, "auto"): AutoPreferences,
    (PAIRS, "borda"): Borda,
    (PAIRS, "copeland"): Copeland,
    (PAIRS, "exact"): ExactPreferences,
    (PAIRS, "greedy_dag"): GreedyDAG,
    (PAIRS, "local_search"): LocalSearchPreferences,
    (PAIRS, "sort"): InsertionSort,
    (SYMMETRIC_PAIRS, "auto"): AutoAveragePrecision,
    (SYMMETRIC_PAIRS, "diagonal"): DiagonalSort,
    (SYMMETRIC_PAIRS, "exact"): ExactAveragePrecision,
    (SYMMETRIC_PAIRS, "local_search"): LocalSearchAveragePrecision,
}


def sorts_scores(decoder: object) -> bool:
    """Whether a decoder is known to sort, if its predictions are scores or their differences.

    A subclass may override any step, and is not known to do so.
    """
    kinds = [kind for (space, _), kind in DECODERS.items() if space in (SCORES, PAIRS)]
    return type(decoder) in kinds


def get_decoder(decoder: str | BaseEstimator, space: str) -> BaseEstimator:
    """Return the decoder of a name, or check and return a decoder object.

    Parameters
    ----------
    decoder : str or object with a ``decode`` method
        The name ``"auto"`` stands for the default decoder of the space.
    space : str
        Space of the surrogate predictions of the loss, such as ``"pairs"``.

    Returns
    -------
    decoder : estimator

    Raises
    ------
    ValueError
        If the name or the space is unknown, or if the decoder is for another space.
    TypeError
        If `decoder` is neither a string nor an object with a ``decode`` method.
    """
    known_space = get_space(space)
    if isinstance(decoder, str):
        name = known_space.default_decoder if decoder == "auto" else decoder
        if (space, name) not in DECODERS:
            fitting = sorted({"auto", *(known for kind, known in DECODERS if kind == space)})
            raise ValueError(
                f"Unknown decoder {decoder!r} for a loss on {space}."
                f"{did_you_mean(decoder, fitting)} Known: {', '.join(fitting)}."
            )
        return DECODERS[space, name]()
    if not hasattr(decoder, "decode"):
        raise TypeError(f"decoder must be a name or have a decode method; got {decoder!r}.")
    if getattr(decoder, "space", space) != space:
        raise ValueError(
            f"{type(decoder).__name__} decodes {decoder.space}, but the loss predicts {space}."
        )
    return decoder
