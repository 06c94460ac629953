"""Warnings and errors that this package raises."""

import numpy as np


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


class ContradictoryRulesError(ValueError):
    """No ranking of a query keeps all rules.

    Attributes
    ----------
    query : object
        The id of the query.
    rules : list of str
        Rules that contradict each other, none of which can be left out.
    """

    def __init__(self, query: object, rules: list[str]) -> None:
        self.query = query.item() if isinstance(query, np.generic) else query
        self.rules = rules
        super().__init__(self.query, rules)

    def __str__(self) -> str:
        return (
            f"No ranking of query {self.query!r} keeps these rules: {'; '.join(self.rules)}. "
            "Pass Rules(..., soft=<cost>) to bend them where they contradict each other."
        )
