"""Warnings of the package."""


class MissingGroupsWarning(UserWarning):
    """A ranker was fitted or scored without query ids, so all rows count as one query."""
