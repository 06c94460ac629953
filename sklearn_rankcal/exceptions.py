"""Warnings of the package."""


class MissingGroupsWarning(UserWarning):
    """A ranker was fitted or scored without query ids, so all rows count as one query."""


class UncompiledKernelsWarning(RuntimeWarning):
    """The decoders run without compiled kernels, on input that takes them seconds."""
