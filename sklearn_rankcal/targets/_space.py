"""Spaces of targets and predictions: one number per document, or one per pair of documents.

A loss names the space of its targets, a model names the space of its predictions, and a decoder
names the space that it decodes. They fit together if the spaces are the same. To add a space, add a
class here, a default model in `sklearn_rankcal.models` and a decoder.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]


class Space(str):
    """The space of targets and predictions. A space is also the string that names it.

    Attributes
    ----------
    is_pairwise : bool
        Whether a query of r documents has an entry for each pair of documents, and not one for each
        document.
    default_decoder : str
        Name of the decoder that ``decoder="auto"`` stands for.
    """

    is_pairwise: bool
    default_decoder: str
    symmetric: bool

    @property
    def sign(self) -> float:
        """1 where u_ij = u_ji, -1 where u_ij = -u_ji; of spaces of pairs only."""
        raise NotImplementedError

    def n_entries(self, sizes: Any) -> Any:
        """Number of entries of queries of these sizes."""
        raise NotImplementedError

    def indices(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row i and column j of each entry of a query of r documents; of spaces of pairs only."""
        raise NotImplementedError

    def matrices(self, entries: Floats, r: int) -> Floats:
        """(n, r, r) matrices from entries (n, n_entries); of spaces of pairs only."""
        raise NotImplementedError

    def fold(self, there: Floats, back: Floats) -> Floats:
        """One number per pair from predictions for (i, j) and (j, i); of spaces of pairs only."""
        raise NotImplementedError

    def owners(self, queries: Queries) -> NDArray[np.int64]:
        """Number of the query that each entry belongs to, query after query."""
        return np.repeat(np.arange(queries.n_queries), self.n_entries(queries.sizes))

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        """Entries without the part that no ranking depends on.

        Adding the same number to all entries of one kind (all scores of a query, or all diagonal
        entries, or all others) changes the decoder's objective by a constant.
        """
        raise NotImplementedError

    def __reduce__(self) -> Any:
        # There is one object of each space, also after pickling. `SPACES.__getitem__` in the place
        # of `get_space` would pickle the whole dictionary, which then could not be read back.
        return get_space, (str(self),)


class ScoreSpace(Space):
    """One score per document, larger is better."""

    is_pairwise = False
    default_decoder = "sort"

    def n_entries(self, sizes: Any) -> Any:
        return sizes

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        return _center(entries, self.owners(queries))


class PairSpace(Space):
    """One number per pair of documents of a query, in a symmetric or antisymmetric matrix.

    Parameters
    ----------
    name : str
    symmetric : bool
        Whether u_ij = u_ji; otherwise u_ij = -u_ji. A symmetric matrix has a diagonal.
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
        """1 where u_ij = u_ji, -1 where u_ij = -u_ji."""
        return 1.0 if self.symmetric else -1.0

    def n_entries(self, sizes: Any) -> Any:
        """Entries i < j of matrices of these sizes; i <= j where symmetric."""
        return sizes * (sizes + (1 if self.symmetric else -1)) // 2

    def indices(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row i and column j of each entry of a query of r documents, in their order."""
        return np.triu_indices(r, 0 if self.symmetric else 1)

    def matrices(self, entries: Floats, r: int) -> Floats:
        """(n, r, r) matrices from their entries, (n, n_entries)."""
        i, j = self.indices(r)
        matrices = np.zeros((len(entries), r, r))
        matrices[:, j, i] = self.sign * entries
        matrices[:, i, j] = entries
        return matrices

    def fold(self, there: Floats, back: Floats) -> Floats:
        """One number per pair from predictions for (i, j) and for (j, i)."""
        return (there + self.sign * back) / 2

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        if not self.symmetric:
            return entries
        return _center(entries, 2 * self.owners(queries) + self.on_diagonal(queries))

    def on_diagonal(self, queries: Queries) -> NDArray[np.int64]:
        """1 for the entries i = j of a symmetric space, else 0."""
        counts = self.n_entries(queries.sizes)
        first, r = queries.repeat(np.cumsum(counts) - counts), queries.repeat(queries.sizes)
        place = queries.place
        marks = np.zeros(int(counts.sum()), dtype=np.int64)
        # entry (i, i) stands behind the rows 0 .. i - 1 of the upper triangle
        marks[first + place * r - place * (place - 1) // 2] = 1
        return marks


def _center(entries: Floats, kind: NDArray[np.int64]) -> Floats:
    """Entries minus the mean of those of the same kind."""
    sums, counts = np.bincount(kind, entries), np.bincount(kind)
    return entries - (sums / np.maximum(counts, 1))[kind]


SCORES = ScoreSpace("scores")
PAIRS = PairSpace("pairs", symmetric=False)
SYMMETRIC_PAIRS = PairSpace("symmetric_pairs", symmetric=True)
#: All spaces by name.
SPACES: dict[str, Space] = {space: space for space in (SCORES, PAIRS, SYMMETRIC_PAIRS)}


def get_space(space: str) -> Space:
    """A space by its name.

    Parameters
    ----------
    space : str
        A key of `SPACES`: ``"scores"``, ``"pairs"`` or ``"symmetric_pairs"``. A `Space` is a string
        too, and is returned as it is.

    Returns
    -------
    space : Space

    Raises
    ------
    ValueError
        There is no space of this name.

    Examples
    --------
    >>> from sklearn_rankcal.targets import get_space
    >>> get_space("pairs").n_entries(4)
    6
    """
    if space not in SPACES:
        raise ValueError(f"Unknown space {space!r}. Known: {', '.join(map(repr, SPACES))}.")
    return SPACES[space]
