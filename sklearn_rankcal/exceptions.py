"""Warnings that this package raises."""


class MissingGroupsWarning(UserWarning):
    """A ranker or a metric received no query ids, and treats all rows as one query."""


class CutQueriesWarning(UserWarning):
    """Queries are scored that were fitted with other rows, as a split by rows makes them."""


class PositionsAsScoresWarning(UserWarning):
    """Numbers that were passed as scores look like positions, which would reverse the ranking."""


class UncompiledKernelsWarning(RuntimeWarning):
    """The decoders run without compiled kernels, and will take seconds for the input."""


class DisconnectedComparisonsWarning(UserWarning):
    """The comparisons of a query do not connect all of its items.

    Scores of items that no chain of comparisons connects cannot be compared.
    """
