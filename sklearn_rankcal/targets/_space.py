"""Spaces of targets and predictions: one number per document, or one per pair of documents.

Every loss, every model and every decoder has an attribute `space`: the space of the targets, of the
predictions, or of the predictions to decode. A loss, a model and a decoder can be used together if
their spaces are the same. To add a space, add a class here, a default model in
`sklearn_rankcal.models` and a decoder.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]


class Space(str):
    """Base class of the spaces of targets and predictions.

    A space is a string, its name. Targets or predictions of a query have several entries, which are
    numbers: one for each document, or one for each pair of documents.

    Attributes
    ----------
    is_pairwise : bool
        Whether there is an entry for each pair of documents. If not, there is one for each
        document.
    default_decoder : str
        Name of the decoder that ``decoder="auto"`` stands for.
    symmetric : bool
        Whether u_ij = u_ji. Only spaces of pairs have this attribute.
    """

    is_pairwise: bool
    default_decoder: str
    symmetric: bool

    @property
    def sign(self) -> float:
        """1 if u_ij = u_ji, -1 if u_ij = -u_ji. Only spaces of pairs have a sign."""
        raise NotImplementedError

    def n_entries(self, sizes: Any) -> Any:
        """Return the number of entries of a query of `sizes` documents, or of several queries."""
        raise NotImplementedError

    def indices(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the documents i and j of each entry of a query of r documents. Only for pairs."""
        raise NotImplementedError

    def matrices(self, entries: Floats, r: int) -> Floats:
        """Convert the entries (n, n_entries) of n queries of r documents to matrices (n, r, r)."""
        raise NotImplementedError

    def fold(self, there: Floats, back: Floats) -> Floats:
        """Combine predictions for (i, j) and for (j, i) to one number per pair."""
        raise NotImplementedError

    def owners(self, queries: Queries) -> NDArray[np.int64]:
        """Return the number of the query that each entry belongs to, in ascending order."""
        return np.repeat(np.arange(queries.n_queries), self.n_entries(queries.sizes))

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        """Subtract from the entries (n_entries,) of all queries the part on which no ranking
        depends.

        This is the mean of the scores of a query, or that of the entries on the diagonal of a
        symmetric matrix, and that of the others. Differences have no such part.
        """
        raise NotImplementedError

    def __reduce__(self) -> Any:
        # A pickle contains only the name, so that unpickling returns the one object of the space.
        # With `SPACES.__getitem__` instead of `get_space`, pickle would store the whole dictionary,
        # which could not be read back.
        return get_space, (str(self),)


class ScoreSpace(Space):
    """The space of scores: one number per document, of which larger is better."""

    is_pairwise = False
    default_decoder = "sort"

    def n_entries(self, sizes: Any) -> Any:
        return sizes

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        return _center(entries, self.owners(queries))


class PairSpace(Space):
    """A space of pairs: one number u_ij per pair of documents of a query.

    The entries are those with i < j, and if the matrix is symmetric also those with i = j.
    """

    is_pairwise = True
    default_decoder = "auto"

    symmetric: bool

    def __new__(cls, name: str, symmetric: bool) -> Self:
        space = super().__new__(cls, name)
        space.symmetric = symmetric
        return space

    @property
    def sign(self) -> float:
        """1 if u_ij = u_ji, -1 if u_ij = -u_ji."""
        return 1.0 if self.symmetric else -1.0

    def n_entries(self, sizes: Any) -> Any:
        """Return the number of pairs i < j of a query, or i <= j if the space is symmetric."""
        return sizes * (sizes + (1 if self.symmetric else -1)) // 2

    def indices(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the documents i and j of each entry of a query of r documents, in order."""
        return np.triu_indices(r, 0 if self.symmetric else 1)

    def matrices(self, entries: Floats, r: int) -> Floats:
        """Convert the entries (n, n_entries) of n queries of r documents to matrices (n, r, r)."""
        i, j = self.indices(r)
        matrices = np.zeros((len(entries), r, r))
        matrices[:, j, i] = self.sign * entries
        matrices[:, i, j] = entries
        return matrices

    def fold(self, there: Floats, back: Floats) -> Floats:
        """Combine predictions for (i, j) and for (j, i) to one number per pair."""
        return (there + self.sign * back) / 2

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        if not self.symmetric:
            return entries
        return _center(entries, 2 * self.owners(queries) + self.on_diagonal(queries))

    def on_diagonal(self, queries: Queries) -> NDArray[np.int64]:
        """Mark the entries with i = j of a symmetric space by 1, and the others by 0."""
        counts = self.n_entries(queries.sizes)
        first, r = queries.repeat(np.cumsum(counts) - counts), queries.repeat(queries.sizes)
        place = queries.place
        marks = np.zeros(int(counts.sum()), dtype=np.int64)
        # Row k of the upper triangle has r - k entries. Entry (i, i) follows those of the rows
        # 0, ..., i - 1, of which there are i r - i (i - 1) / 2.
        marks[first + place * r - place * (place - 1) // 2] = 1
        return marks


def _center(entries: Floats, kind: NDArray[np.int64]) -> Floats:
    """Subtract from each entry the mean of the entries of the same kind."""
    sums, counts = np.bincount(kind, entries), np.bincount(kind)
    return entries - (sums / np.maximum(counts, 1))[kind]


#: The space of one number per document.
SCORES = ScoreSpace("scores")
#: The space of one difference u_ij = -u_ji per pair of documents of a query.
PAIRS = PairSpace("pairs", symmetric=False)
#: The space of one number u_ij = u_ji per pair of documents of a query, and u_ii per document.
SYMMETRIC_PAIRS = PairSpace("symmetric_pairs", symmetric=True)
#: All spaces by name.
SPACES: dict[str, Space] = {space: space for space in (SCORES, PAIRS, SYMMETRIC_PAIRS)}


def get_space(space: str) -> Space:
    """Return a space by its name.

    Parameters
    ----------
    space : str
        A key of `SPACES`: ``"scores"``, ``"pairs"`` or ``"symmetric_pairs"``. A `Space` is a
        string.

    Returns
    -------
    space : Space

    Raises
    ------
    ValueError
        If there is no space of this name.

    Examples
    --------
    >>> from sklearn_rankcal.targets import get_space
    >>> get_space("pairs").n_entries(4)
    6
    """
    if space not in SPACES:
        raise ValueError(f"Unknown space {space!r}. Known: {', '.join(map(repr, SPACES))}.")
    return SPACES[space]
