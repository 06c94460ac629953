"""Warnings of the package."""


class MissingGroupsWarning(UserWarning):
    """A ranker or a metric had no query ids, so that all rows count as one query."""


class PositionsAsScoresWarning(UserWarning):
    """Numbers passed as scores look like positions, and as scores they are the reverse ranking."""


class UncompiledKernelsWarning(RuntimeWarning):
    """The decoders run without compiled kernels, on input that takes them seconds."""
