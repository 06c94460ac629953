"""The registry of decoders, by space of the predictions and name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.decoders import _decode_average_precision, _decode_preferences
from sklearn_rankcal.decoders._decode_scores import Sort
from sklearn_rankcal.decoders._pair_decoders import (
    AveragePrecisionDecoder,
    MatrixDecoder,
    PreferenceDecoder,
)
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._space import get_space
from sklearn_rankcal.utils._names import did_you_mean

#: Functions that create a decoder, by space of the predictions and name. Methods for pairs come
#: from METHODS of _decode_preferences.py and _decode_average_precision.py: add new methods there.
DECODERS: dict[tuple[str, str], Callable[..., BaseEstimator]] = {
    (SCORES, "sort"): Sort,
    **{
        (PAIRS, method): partial(PreferenceDecoder, method)
        for method in _decode_preferences.METHODS
    },
    **{
        (SYMMETRIC_PAIRS, method): partial(AveragePrecisionDecoder, method)
        for method in _decode_average_precision.METHODS
    },
}


def sorts_scores(decoder: object) -> bool:
    """Whether a decoder is known to sort if predictions are scores or differences of scores.

    False for subclasses, which may override any step.
    """
    return type(decoder) in (Sort, PreferenceDecoder)


def get_decoder(decoder: str | BaseEstimator, space: str) -> BaseEstimator:
    """Get a decoder by name, or check a decoder object.

    Parameters
    ----------
    decoder : str or object with a ``decode`` method
        ``"auto"`` is the default decoder of the space.
    space : str
        Space of the predictions of the loss, such as ``"pairs"``.

    Returns
    -------
    decoder : estimator
        A new decoder, or the object that was passed.

    Raises
    ------
    ValueError
        If the name, the space or a parameter is unknown, or if the decoder is for another space.
    TypeError
        If `decoder` is neither a string nor an object with a ``decode`` method.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import get_decoder
    >>> get_decoder("greedy_dag", "pairs")
    PreferenceDecoder(method='greedy_dag')
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
    if isinstance(decoder, MatrixDecoder):
        # raise for bad parameters before a long fit, without drawing a seed
        clone(decoder).set_params(random_state=0)._options()
    return decoder
