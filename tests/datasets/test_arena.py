"""`make_arena`: votes of a known model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry
from sklearn_rankcal.datasets import make_arena


def by_name(board, names):
    found = dict(zip(board.items.tolist(), board.scores.tolist(), strict=True))
    return np.array([found[name] for name in names])


def test_the_model_is_found_again():
    data = make_arena(60000, n_models=6, category_spread=0.0, random_state=0)
    votes = Judgements.from_votes(
        data.model_a, data.model_b, data.winner, position=True, covariates=data.log_length
    )
    board = aggregate(votes, BradleyTerry(ties="rao_kupper"), intervals="information")
    errors = by_name(board, data.models) - data.scores
    assert np.abs(errors).max() < 0.06
    for one, truth in zip(board.coefficients, (0.2, 0.4, 0.3), strict=True):
        assert abs(one.value - truth) < 4 * one.standard_error
        assert one.standard_error < 0.02


@pytest.mark.parametrize("options", [{}, {"taste": 1.0, "drift": 1.0}, {"ties": 0.0}])
def test_outcomes_have_the_probabilities_that_are_returned(options):
    data = make_arena(40000, random_state=1, **options)
    assert_allclose(data.probabilities.sum(axis=1), 1.0)
    for k, word in enumerate(("model_a", "model_b", "tie")):
        p = data.probabilities[:, k]
        z = ((data.winner == word) - p).sum() / np.sqrt(max((p * (1 - p)).sum(), 1.0))
        assert abs(z) < 4
        high = p > np.median(p)  # and in the half of the votes where they are large
        z = ((data.winner == word) - p)[high].sum() / np.sqrt(max((p * (1 - p))[high].sum(), 1.0))
        assert abs(z) < 4
    assert ((data.winner == "tie").any()) == (options.get("ties", 0.3) > 0)


def test_strengths_of_categories_move_the_votes():
    data = make_arena(60000, n_models=4, category_spread=1.0, ties=0.0, length=0.0, random_state=3)
    for k, name in enumerate(data.categories):
        board = board_of(data, data.category == name)
        assert np.abs(by_name(board, data.models) - data.category_scores[k]).max() < 0.2
        others = np.delete(data.category_scores, k, axis=0)
        assert np.abs(by_name(board, data.models) - others).max(axis=1).min() > 0.4


def test_trends_move_the_votes():
    data = make_arena(
        60000, n_models=4, category_spread=0.0, drift=2.0, ties=0.0, length=0.0, random_state=3
    )
    late = board_of(data, data.time >= data.time[50000])
    # the votes of the last sixth are at 5/12 after the middle of the time on average
    assert np.abs(by_name(late, data.models) - data.scores - 5 / 12 * data.trends).max() < 0.1
    assert np.abs(by_name(late, data.models) - data.scores).max() > 0.5


def board_of(data, kept):
    return aggregate(
        Judgements.from_votes(
            data.model_a[kept], data.model_b[kept], data.winner[kept], position=True
        )
    )


def test_shapes_names_and_the_frame():
    data = make_arena(500, n_models=12, n_judges=7, n_categories=3, random_state=0)
    assert data.models[[0, -1]].tolist() == ["m00", "m11"]
    assert (data.model_a != data.model_b).all()
    assert set(data.judge) == set(range(7))
    assert (np.diff(data.time) >= np.timedelta64(0, "s")).all()
    assert (data.category == "c0").sum() > (data.category == "c2").sum()
    assert_allclose(data.log_length[:, 0], np.log(data.length_a / data.length_b))
    assert_allclose(data.category_scores.sum(axis=1), 0.0, atol=1e-12)
    assert_allclose([data.scores.sum(), data.trends.sum()], 0.0, atol=1e-12)
    pytest.importorskip("pandas")
    assert data.frame.shape == (500, 8)
    assert (data.frame["winner"] == data.winner).all()


def test_the_seed_determines_the_votes():
    one, other = make_arena(50, random_state=5), make_arena(50, random_state=5)
    assert (one.winner == other.winner).all()
    assert (one.time == other.time).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_votes": 0}, "n_votes must be a whole number >= 1"),
        ({"n_models": 1}, "n_models must be a whole number >= 2; got 1"),
        ({"n_categories": 0}, "n_categories must be"),
        ({"taste": -1.0}, "taste must be a finite number >= 0"),
        ({"ties": np.nan}, "ties must be"),
        ({"position": np.inf}, "position must be"),
    ],
)
def test_numbers_out_of_range_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        make_arena(**options)
