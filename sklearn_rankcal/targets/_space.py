"""Spaces of targets and predictions: one number per document, or one per pair of documents.

Every loss, model and decoder has an attribute `space`: the space of its targets, of its
predictions, or of the predictions that it decodes. A loss, a model and a decoder can be combined if
their spaces are equal.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._typing import Floats, Ints


class Space(str):
    """A space of targets and predictions of a query: one number per document or per pair.

    A space is a string, its name. The entries of a query are one number for each document, or one
    number for each pair i < j. A symmetric space also has an entry for each i = j.

    Parameters
    ----------
    name : str
        Name of the space.
    default_decoder : str
        Name of the decoder that ``decoder="auto"`` selects.
    is_pairwise : bool, default=True
        Whether there is an entry u_ij for each pair of documents.
    symmetric : bool, default=False
        Whether u_ij = u_ji. Otherwise u_ij = -u_ji.
    """

    default_decoder: str
    is_pairwise: bool
    symmetric: bool

    def __new__(
        cls, name: str, default_decoder: str, *, is_pairwise: bool = True, symmetric: bool = False
    ) -> Self:
        space = super().__new__(cls, name)
        space.default_decoder = default_decoder
        space.is_pairwise, space.symmetric = is_pairwise, symmetric
        return space

    @property
    def sign(self) -> float:
        """1 if u_ij = u_ji, -1 if u_ij = -u_ji."""
        return 1.0 if self.symmetric else -1.0

    def n_entries(self, sizes: Any) -> Any:
        """Return the number of entries of a query, or of several, given the number of documents."""
        if not self.is_pairwise:
            return sizes
        return sizes * (sizes + (1 if self.symmetric else -1)) // 2

    def owners(self, queries: Queries) -> Ints:
        """Return the query number of each entry, in ascending order."""
        return np.repeat(np.arange(queries.n_queries), self.n_entries(queries.sizes))

    def remove_constants(self, entries: Floats, queries: Queries) -> Floats:
        """Subtract the constants that affect no ranking from the entries of all queries.

        This is the mean of the scores of a query. In a symmetric space, it is the mean of the
        diagonal entries and the mean of all other entries. Differences have no such constant.
        """
        if not self.is_pairwise:
            return _center(entries, self.owners(queries))
        if not self.symmetric:
            return entries
        return _center(entries, 2 * self.owners(queries) + self.on_diagonal(queries))

    # ---------------------------------------------------------------- spaces of pairs

    def indices(self, r: int) -> tuple[Ints, Ints]:
        """Return the documents i and j of each entry of a query with r documents, in order."""
        return np.triu_indices(r, 0 if self.symmetric else 1)

    def matrices(self, entries: Floats, r: int) -> Floats:
        """Convert entries (n, n_entries) of n queries with r documents to matrices (n, r, r)."""
        i, j = self.indices(r)
        matrices = np.zeros((len(entries), r, r))
        matrices[:, j, i] = self.sign * entries
        matrices[:, i, j] = entries
        return matrices

    def fold(self, there: Floats, back: Floats) -> Floats:
        """Combine predictions for (i, j) and for (j, i) into one number per pair."""
        return (there + self.sign * back) / 2

    def on_diagonal(self, queries: Queries) -> Ints:
        """Return 1 for entries with i = j of a symmetric space, and 0 for all other entries."""
        counts = self.n_entries(queries.sizes)
        first, r = queries.repeat(np.cumsum(counts) - counts), queries.repeat(queries.sizes)
        place = queries.place
        marks = np.zeros(int(counts.sum()), dtype=np.int64)
        # Row k of the upper triangle has r - k entries. Entry (i, i) follows the rows
        # 0, ..., i - 1, which have i r - i (i - 1) / 2 entries.
        marks[first + place * r - place * (place - 1) // 2] = 1
        return marks

    def __reduce__(self) -> Any:
        # Pickle only the name. Unpickling then returns the one object of the space. With
        # `SPACES.__getitem__` instead of `get_space`, pickle would store the whole dictionary, and
        # could not read it back.
        return get_space, (str(self),)


def _center(entries: Floats, kind: Ints) -> Floats:
    """Subtract the mean of the entries of the same kind from each entry."""
    sums, counts = np.bincount(kind, entries), np.bincount(kind)
    return entries - (sums / np.maximum(counts, 1))[kind]


#: The space of one number per document.
SCORES = Space("scores", "sort", is_pairwise=False)
#: The space of one difference u_ij = -u_ji per pair of documents of a query.
PAIRS = Space("pairs", "auto")
#: The space of one number u_ij = u_ji per pair of documents of a query, and u_ii per document.
SYMMETRIC_PAIRS = Space("symmetric_pairs", "auto", symmetric=True)
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
        The space.

    Raises
    ------
    ValueError
        If there is no space with this name.

    Examples
    --------
    >>> from sklearn_rankcal.targets._space import get_space
    >>> get_space("pairs").n_entries(4)
    6
    """
    if space not in SPACES:
        raise ValueError(f"Unknown space {space!r}. Known: {', '.join(map(repr, SPACES))}.")
    return SPACES[space]
