"""The registry of all decoders by space and name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.decoders._batches import MatrixDecoder
from sklearn_rankcal.decoders._decode_average_precision import AveragePrecisionDecoder
from sklearn_rankcal.decoders._decode_preferences import PreferenceDecoder
from sklearn_rankcal.decoders._decode_scores import Sort
from sklearn_rankcal.targets import SCORES, Space
from sklearn_rankcal.utils._messages import did_you_mean

#: Functions that create a decoder, by space of the predictions and name. Methods for pairs come
#: from METHODS of _decode_preferences.py and _decode_average_precision.py: add new methods there.
DECODERS: dict[tuple[str, str], Callable[..., BaseEstimator]] = {(SCORES, "sort"): Sort} | {
    (kind.space, method): partial(kind, method)
    for kind in (PreferenceDecoder, AveragePrecisionDecoder)
    for method in kind._methods
}


def sorts_scores(decoder: object) -> bool:
    """Whether a decoder is known to sort if predictions are scores or differences of scores.

    False for subclasses, which may override any step.
    """
    return type(decoder) in (Sort, PreferenceDecoder)


def get_decoder(decoder: str | BaseEstimator, space: Space) -> BaseEstimator:
    """Return a new decoder for a name, or a decoder object after a check of its parameters.

    Raise ValueError if the name or a parameter is unknown, or if the decoder is for another space.
    Raise TypeError for an object without a ``decode`` method.
    """
    if isinstance(decoder, str):
        name = "sort" if decoder == "auto" and space == SCORES else decoder
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
