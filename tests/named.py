"""Functions as parameters of tests: pytest-xdist needs ids that are the same in every process."""

import functools


class named:
    """A decorator: the function prints its name, and not the address it has in this process.

    It is copied and pickled as a function is, by name.
    """

    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, *args, **options):
        return self.__wrapped__(*args, **options)

    def __repr__(self):
        return self.__name__

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return self.__qualname__
