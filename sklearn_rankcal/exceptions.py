"""Warnings and errors that this package raises."""

import numpy as np


class MissingGroupsWarning(UserWarning):
    """Warning used if a ranker or a metric gets no query ids and treats all rows as one query."""


class CutQueriesWarning(UserWarning):
    """Warning used if training and test data share queries, which happens if rows are split."""


class PositionsAsScoresWarning(UserWarning):
    """Warning used if scores look like positions, which would reverse the ranking."""


class UncompiledKernelsWarning(RuntimeWarning):
    """Warning used if a decoder will take seconds, because it runs without compiled kernels."""


class DisconnectedComparisonsWarning(UserWarning):
    """Warning used if the comparisons of a query do not connect all of its items.

    The scores of two items are only comparable if a chain of comparisons connects the items.
    """


class ContradictoryRulesError(ValueError):
    """Error raised if no ranking of a query keeps all rules.

    Attributes
    ----------
    query : object
        The id of the query.
    rules : list of str
        Rules that contradict each other. Without any one of them, the rest can be kept.
    """

    def __init__(self, query: object, rules: list[str]) -> None:
        self.query = query.item() if isinstance(query, np.generic) else query
        self.rules = rules
        super().__init__(self.query, rules)

    def __str__(self) -> str:
        return (
            f"No ranking of query {self.query!r} keeps these rules: {'; '.join(self.rules)}. "
            "Pass Rules(..., soft=<cost>) to allow violations at a cost."
        )
