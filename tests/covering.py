"""Long tables of tests: a selection covers each row and each column, the rest is exhaustive."""

import pytest

REST = [pytest.mark.slow, pytest.mark.exhaustive]


def covering(cells, coordinates=lambda *values: values):
    """Mark all cells exhaustive but a selection in which each value of each coordinate occurs.

    `cells` are tuples of values or `pytest.param`. `coordinates` returns those coordinates of the
    values of a cell that have to be covered; two that print the same are the same. In a full table,
    the selection is a diagonal, as long as the longest side.
    """
    cells = [cell if hasattr(cell, "marks") else pytest.param(*cell) for cell in cells]
    places = [tuple(map(repr, coordinates(*cell.values))) for cell in cells]
    chosen, covered = set(), set()
    for n_new in range(len(places[0]) if places else 0, 0, -1):  # cells that cover most come first
        for place in places:
            if len(set(enumerate(place)) - covered) >= n_new:
                chosen.add(place)
                covered.update(enumerate(place))
    return [
        cell
        if place in chosen
        else pytest.param(*cell.values, marks=[*cell.marks, *REST], id=cell.id)
        for cell, place in zip(cells, places, strict=True)
    ]


def covering_checks(mark):
    """Return what `parametrize_with_checks` of scikit-learn returned, most cells exhaustive."""
    names, cells = mark.args
    return pytest.mark.parametrize(names, covering(cells, _names), **mark.kwargs)


def _names(estimator, check):
    return id(estimator), check.func.__name__, check.keywords
