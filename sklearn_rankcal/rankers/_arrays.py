"""Convert fitted rankers to plain arrays and back. Unlike pickles, arrays depend on no version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import get_loss

Floats = NDArray[np.float64]
_FORMAT = 1  # of the header; a later version reads earlier formats
_HEADER = "ranker"
_FITTED = ("grouped_", "n_queries_", "n_queries_dropped_", "n_features_in_")


class PlainArraysMixin:
    """`to_arrays` and `from_arrays` of `CalibratedRanker`."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The fitted ranker as plain arrays, for `numpy.savez`: readable by every later version.

        Only for closed forms, whose fit is a few arrays: `PairwiseRidge`, and `BilinearPairs`
        without a feature map. :ref:`saving_rankers` describes what to do with others.

        Returns
        -------
        arrays : dict of str to ndarray
            Those of the model, and ``"ranker"``, a string of JSON: what is needed beside them.

        Raises
        ------
        TypeError
            The model has no form as plain arrays, or a parameter of the loss is a function.

        Examples
        --------
        >>> import io
        >>> import numpy as np
        >>> from sklearn_rankcal import CalibratedRanker
        >>> from sklearn_rankcal.datasets import make_ranking
        >>> from sklearn_rankcal.models import PairwiseRidge
        >>> data = make_ranking(n_queries=20, random_state=0)
        >>> ranker = CalibratedRanker(PairwiseRidge(), loss="pd")
        >>> ranker = ranker.fit(data.X, data.y, groups=data.groups)
        >>> file = io.BytesIO()
        >>> np.savez(file, **ranker.to_arrays())
        >>> _ = file.seek(0)
        >>> again = CalibratedRanker(PairwiseRidge(), loss="pd").from_arrays(np.load(file))
        >>> bool((again.predict(data.X, data.groups) == ranker.predict(data.X, data.groups)).all())
        True
        """
        check_is_fitted(self)
        return _ranker_to_arrays(self)

    def from_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """Become the fitted ranker that `to_arrays` described, instead of `fit`.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `to_arrays` returned, or `numpy.load` of the file it was saved in.

        Returns
        -------
        self : CalibratedRanker
            It must have the regressor and the loss of the ranker that was saved. Its other
            parameters are its own: `decoder`, for example, may differ.

        Raises
        ------
        ValueError
            Arrays of another regressor, loss or `group_column`, absent or of a wrong shape.
        """
        return _ranker_from_arrays(self, arrays)


def _ranker_to_arrays(ranker: Any) -> dict[str, NDArray[Any]]:
    """The arrays of the ranker's model, and a header in JSON of what is needed beside them."""
    model = ranker.model_
    if not hasattr(model, "to_arrays"):
        raise TypeError(
            f"{type(model).__name__} has no form as plain arrays: PairwiseRidge and BilinearPairs "
            "have. To save other rankers see the user guide, 'Saving rankers'."
        )
    header = {
        "format": _FORMAT,
        "model": type(model).__name__,
        "loss": type(ranker.loss_).__name__,
        "loss_parameters": ranker.loss_.get_params(),
        "group_column": ranker.group_column,
        "group_place": getattr(ranker, "_group_place", None),
        "feature_names": _names(ranker),
        **{name: _plain(getattr(ranker, name)) for name in _FITTED},
    }
    try:
        text = json.dumps(header, default=_plain)
    except TypeError as error:
        raise TypeError(f"{ranker.loss_!r} has a parameter that is not plain: {error}.") from error
    return {_HEADER: np.array(text), **model.to_arrays()}


def _ranker_from_arrays(ranker: Any, arrays: Mapping[str, Any]) -> Any:
    """The ranker, in the state that the arrays describe."""
    if _HEADER not in arrays:
        raise ValueError(
            f"The array {_HEADER!r} is absent; there are {sorted(arrays)}. Pass what "
            "CalibratedRanker.to_arrays returned."
        )
    header = json.loads(str(np.asarray(arrays[_HEADER])))
    if header["format"] > _FORMAT:
        raise ValueError(
            f"The arrays have format {header['format']}, which a later version of sklearn_rankcal "
            f"wrote; this one reads up to {_FORMAT}. Update the package."
        )
    loss = get_loss(ranker.loss)
    for what, given, saved in (
        ("regressor", type(ranker.regressor).__name__, header["model"]),
        ("loss", type(loss).__name__, header["loss"]),
        ("group_column", ranker.group_column, header["group_column"]),
    ):
        if given != saved:
            raise ValueError(
                f"The arrays are of a ranker whose {what} is {saved}, but this one has {given}: "
                "give it the same."
            )
    loss = clone(loss).set_params(**header["loss_parameters"])
    model = clone(ranker.regressor).from_arrays(arrays)
    names, width = header["feature_names"], header["n_features_in_"]
    there = width - (header["group_column"] is not None)
    first = next(iter(model.to_arrays().values()))
    if len(first) != there or (names is not None and len(names) != width):
        raise ValueError(
            f"The arrays are for {len(first)} columns, but the header says {there}: they are of "
            "two rankers."
        )
    ranker.decoder_ = get_decoder(ranker.decoder, loss.space)
    ranker.model_, ranker.loss_ = model, loss
    ranker._group_place = header["group_place"]
    for name in _FITTED:
        setattr(ranker, name, header[name])
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(ranker, "feature_names_in_"):
        del ranker.feature_names_in_
    return ranker


def _names(ranker: Any) -> list[str] | None:
    names = getattr(ranker, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} cannot be written as JSON")
