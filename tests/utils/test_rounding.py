"""Comparisons of computed numbers, and orders of items with equal numbers."""

import numpy as np
import pytest

from sklearn_rankcal.labels._item_ids import content_ranks, ids_of_list  # orders of all boards
from sklearn_rankcal.utils._numbers import order_from_largest


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_values_that_rounding_separates_are_in_the_order_of_what_follows(unit):
    values = unit * np.array([0.3, 0.1 + 0.2, 0.5, -1.0, 0.3 + 1e-6])
    then = np.array([1, 0, 4, 2, 3])
    assert order_from_largest(values, then).tolist() == [2, 4, 1, 0, 3]
    assert order_from_largest(values, -then).tolist() == [2, 4, 0, 1, 3]


def test_infinite_values_are_in_order():
    values = np.array([-np.inf, 1.0, np.inf, -np.inf])
    assert order_from_largest(values, np.array([1, 2, 3, 0])).tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    "ids",
    [["b", "a", "c"], [10, 9, 2], [2.5, 1, 10], [("a", 1), "a", 3, None.__class__], [True, "x", 2]],
)
def test_ranks_of_contents_do_not_depend_on_places(ids):
    expected = dict(zip(map(repr, ids), content_ranks(ids_of_list(ids)).tolist(), strict=True))
    for seed in range(4):
        some = [ids[k] for k in np.random.default_rng(seed).permutation(len(ids))]
        found = content_ranks(ids_of_list(some)).tolist()
        assert dict(zip(map(repr, some), found, strict=True)) == expected
    assert content_ranks(ids_of_list([10, 9, 2])).tolist() == [2, 1, 0]
