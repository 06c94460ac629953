"""ERR of blocks of tied documents, compared with the recursion over the documents."""

import numpy as np
import pytest

from sklearn_rankcal import metrics as m
from sklearn_rankcal.losses._tied_cascade import block_value, by_documents, by_quadrature

from ..metric_data import per_query

# Many tests score rows without query ids, or scores that are small whole numbers, on purpose.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_rankcal.exceptions.MissingGroupsWarning",
    "ignore::sklearn_rankcal.exceptions.PositionsAsScoresWarning",
)


def cascade_by_documents(passing, above, places):
    stopping = -np.diff(by_documents(passing, places))
    return (stopping / (above + np.arange(1, places + 1))).sum()


@pytest.mark.parametrize("m_rows", [1, 2, 3, 10, 100, 700])
@pytest.mark.parametrize("above", [0, 1, 30, 5000])
def test_err_of_a_tied_block_by_quadrature(m_rows, above):
    rng = np.random.default_rng(m_rows + above)
    for satisfaction in (
        rng.random(m_rows),
        rng.random(m_rows) * 1e-4,
        rng.integers(0, 5, m_rows) / 16,
        np.ones(m_rows),
        np.append(np.zeros(m_rows - 1), 0.5),
        np.append(np.zeros(m_rows - 1), 1.0),
        np.zeros(m_rows),
    ):
        passing = 1 - satisfaction
        wanted = cascade_by_documents(passing, above, m_rows)
        np.testing.assert_allclose(by_quadrature(passing, above), wanted, rtol=1e-9, atol=1e-13)
        assert abs(by_quadrature(passing, above) - wanted) < 1e-12


@pytest.mark.parametrize("places", [1, 7, 40, 60, 900, 1999, 2000])
def test_err_of_a_tied_block_with_a_cutoff_inside(places):
    rng = np.random.default_rng(places)
    for satisfaction in (rng.random(2000), rng.random(2000) * 1e-3, np.append(np.zeros(1999), 1)):
        passing = 1 - satisfaction
        wanted = cascade_by_documents(passing, 3, places)
        assert abs(block_value(passing, 3, places) - wanted) < 1e-12


@pytest.mark.parametrize("k", [None, 5, 1200, 1900])
def test_err_with_blocks_on_both_sides_of_the_threshold(monkeypatch, k):
    """The recursion alone gives the same value as the three methods together."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    scores = np.repeat([5.0, 4.0, 3.0, 2.0], [100, 1500, 1000, 400])
    groups = np.repeat([0, 1], [2600, 400])
    got = per_query(m.err_score, y, scores, groups=groups, k=k)
    monkeypatch.setattr("sklearn_rankcal.losses._cascade.LONG_BLOCK", 10**9)
    wanted = per_query(m.err_score, y, scores, groups=groups, k=k)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def test_err_of_a_long_tied_block_is_not_quadratic(monkeypatch):
    def refuse(passing, places):
        size = passing.shape[-1]
        raise AssertionError(f"The recursion took {size} documents over {places} places.")

    monkeypatch.setattr("sklearn_rankcal.losses._cascade.by_documents", refuse)
    monkeypatch.setattr("sklearn_rankcal.losses._tied_cascade.by_documents", refuse)
    y = np.random.default_rng(0).integers(0, 5, 40_000)
    whole = m.err_score(y, np.zeros(40_000))
    assert m.err_score(y, np.zeros(40_000), k=10) < whole < 1
