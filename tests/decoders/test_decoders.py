"""Decoding scores: the sort, its tie rule, and the registry."""

import numpy as np
import pytest

from sklearn_rankcal import CalibratedRanker, show_versions
from sklearn_rankcal.decoders import (
    DECODERS,
    KERNELS,
    PreferenceDecoder,
    Sort,
    decode_scores,
    get_decoder,
)
from sklearn_rankcal.queries import Queries

from .. import oracles


def test_sorts_each_query():
    rng = np.random.default_rng(0)
    scores, groups = rng.integers(0, 5, size=60).astype(float), rng.integers(0, 7, size=60)
    result = decode_scores(scores, groups)
    assert result.optimal and result.method == "sort" and result.ranks.dtype == np.int64
    for rows in oracles.split(groups):
        listed = sorted(rows, key=lambda row: (-scores[row], row))
        assert result.ranks[listed].tolist() == list(range(1, len(rows) + 1))


def test_ties_by_key_then_by_row():
    ranks = decode_scores([1, 1, 1, 2], tie_breakers=[5, 3, 3, 9]).ranks
    assert ranks.tolist() == [4, 2, 3, 1]
    result = decode_scores([1, 2, 3, 3], [0, 0, 1, 1], tie_breakers=[0, 0, 1, 0])
    assert result.ranks.tolist() == [2, 1, 2, 1]


def test_keys_are_asked_of_tied_rows_only():
    asked = []

    def keys(rows):
        asked.extend(rows.tolist())
        return -rows

    scores = np.array([3.0, 1.0, 1.0, 0.0])
    assert Sort().decode(scores, Queries.single(4), keys).ranks.tolist() == [1, 3, 2, 4]
    assert asked == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: decode_scores([1.0, np.nan]), ValueError, "NaN or infinity .first at row 1"),
        (lambda: decode_scores([]), ValueError, "empty"),
        (lambda: decode_scores([[1, 2]]), ValueError, "1-D, one score per row"),
        (lambda: decode_scores(["a"]), ValueError, "must be real numbers, not text"),
        (lambda: decode_scores([1, 2], [0]), ValueError, "groups has 1 entry"),
        (lambda: decode_scores([1, 2], tie_breakers=[1]), ValueError, "tie_breakers has shape"),
        (lambda: get_decoder("nope", "scores"), ValueError, "Known: auto, sort"),
        (lambda: get_decoder(3, "scores"), TypeError, "have a decode method"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_registry():
    assert DECODERS["scores", "sort"] is Sort
    assert isinstance(get_decoder("auto", "scores"), Sort)
    given = Sort()
    assert get_decoder(given, "scores") is given


def test_show_versions(capsys):
    show_versions()
    said = capsys.readouterr().out
    for name in ("scikit-learn", "sklearn_rankcal", "catboost", "dask"):
        assert f" {name}: " in said
    assert f"kernels: {KERNELS}\n" in said


def test_a_bad_parameter_of_a_decoder_is_an_error_of_fit():
    X, y, groups = [[0.0], [1.0], [2.0]], [0, 1, 2], [0, 0, 0]
    for decoder, message in (
        (PreferenceDecoder("greedy"), "Unknown method 'greedy'"),
        (PreferenceDecoder(n_perturbations=-1), "n_perturbations must be a whole number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibratedRanker(loss="pd", decoder=decoder).fit(X, y, groups)


def test_the_check_of_a_decoder_draws_no_seed():
    drawn, untouched = np.random.RandomState(0), np.random.RandomState(0)
    get_decoder(PreferenceDecoder("local_search", random_state=drawn), "pairs")
    assert drawn.randint(1 << 30) == untouched.randint(1 << 30)
    state = np.random.get_state()[1:3]
    get_decoder(PreferenceDecoder("local_search", random_state=None), "pairs")
    np.testing.assert_equal(np.random.get_state()[1:3], state)
