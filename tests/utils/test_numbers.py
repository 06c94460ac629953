"""Arrays of numbers from users. Entries that are not numbers, or would change, are refused."""

import datetime
import fractions
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import sklearn_rankcal.metrics as m
from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    LowRankClassifier,
    make_cost_scorer,
    mean_cost_loss,
    relevance_labels,
)
from sklearn_rankcal.consistency import LabelDistribution, ranking_risk, regret_bound
from sklearn_rankcal.cost_sensitive import LowRankLoss
from sklearn_rankcal.decoders import decode_preferences, decode_scores
from sklearn_rankcal.labels import preference_labels, ranking_labels
from sklearn_rankcal.labels._labels import read_relevance  # the readers that all functions share
from sklearn_rankcal.losses import PD, Positional
from sklearn_rankcal.metrics import compare_rankings
from sklearn_rankcal.plotting import plot_matrix
from sklearn_rankcal.utils._features import hash_rows
from sklearn_rankcal.utils._numbers import check_range, read_array, read_numbers, read_whole

BIG = 2**53 + 1
NAT = np.array(["NaT", "2020-01-01", "2020-01-02"], dtype="datetime64[s]")
MASKED = np.ma.array([3.0, 2.0, 1.0], mask=[1, 0, 0])
NOT_NUMBERS = {
    "NaT": (NAT, "not dates"),
    "time differences": (NAT - NAT[1], "not time differences"),
    "list with a time difference": ([np.timedelta64(1, "s"), 1, 2], "not time differences"),
    "datetime objects": ([datetime.date(2020, 1, 1)] * 3, "is of type date"),
    "pandas dates": (pd.Series(NAT), "not dates"),
    "NaT among numbers": ([pd.NaT, 1.0, 2.0], "is of type NaTType"),
    "mask": (MASKED, "masked entries"),
    "mask in a list": ([np.ma.masked, 1.0, 2.0], "masked entries"),
    "mask in an array of objects": (np.array([np.ma.masked, 1, 2], dtype=object), "missing entry"),
    "digits": (["1", "2", "3"], "not text"),
    "digits in an array": (np.array(["1", "2", "3"]), "not text"),
    "digits as bytes": (np.array([b"1", b"2", b"3"]), "not bytes"),
    "digits as objects": (np.array(["1", "2", "3"], dtype=object), "not text"),
    "digits of pandas": (pd.Series(["1", "2", "3"]), "not text"),
    "digits of polars": (pl.Series(["1", "2", "3"]), "not text"),
    "a digit among numbers": ([1, "2", 3.0], "not text"),
    "None": ([None, 1.0, 2.0], "missing entry"),
    "pandas' NA": (pd.array([1, None, 3], dtype="Int64"), "missing entry|NaN|nan"),
    "complex": (np.array([1 + 1j, 2, 3]), "Complex data not supported"),
    "a complex object": (np.array([1 + 1j, 2, 3], dtype=object), "Complex data not supported"),
    "objects": ([{}, {}, {}], "is of type dict"),
    "integers that tie": (np.array([BIG, BIG - 1, 0]), "Beyond 2.53"),
    "negative ones": (np.array([-BIG, 1 - BIG, 0]), "Beyond 2.53"),
    "unsigned ones": (np.array([2**63 + 1, 2**63, 0], dtype=np.uint64), "float64 would round"),
    "integers of Python": ([10**30 + 1, 10**30, 1], "of the wrong size"),
}
NOT_JUDGED = ("mask", "mask in an array of objects", "None", "pandas' NA")


def entry_points():
    """Return a call for each argument of public functions that holds three numbers."""
    y, groups = [2, 1, 0], [0, 0, 0]
    pairs = [[0, 1], [0, 2], [1, 2]]
    return {
        "relevance_labels": lambda v: relevance_labels(v, groups),
        "read_relevance": read_relevance,
        "y_true": lambda v: m.ndcg_score(v, [3, 2, 1]),
        "y_score": lambda v: m.ndcg_score(y, v),
        "ranks": lambda v: m.ndcg_score(y, ranks=v),
        "sample_weight": lambda v: m.ndcg_score(y, [3, 2, 1], sample_weight=v),
        "decode_scores": decode_scores,
        "weight": lambda v: preference_labels(pairs, groups, v),
        "judgement": lambda v: preference_labels(pairs, groups, judgement=v),
    }


@pytest.mark.parametrize("case", NOT_NUMBERS)
def test_entries_that_are_not_numbers_are_refused(case):
    values, message = NOT_NUMBERS[case]
    for entry, call in entry_points().items():
        whole = entry in ("ranks", "judgement")
        if whole and case in ("negative ones", "integers that tie"):
            continue  # whole numbers of 64 bits are kept as they are
        if entry in ("relevance_labels", "y_true") and case in NOT_JUDGED:
            continue
        with pytest.raises(ValueError, match="whole|64-bit|" + message if whole else message):
            call(values)


def test_masks_of_two_dimensions_are_not_ignored():
    y = np.array([[3.0, 2, 0, 1], [0, 1, 2, 3]])
    masked = np.ma.array(y, mask=y == 2)
    inside = [np.ma.array(y[0], mask=y[0] == 2), y[1]]
    for hidden in (masked, inside):
        for call in (
            lambda v: m.ndcg_score(y, v),
            lambda v: m.ndcg_score(y, ranks=v + 1 if isinstance(v, np.ndarray) else v),
            lambda v: m.ndcg_score(y, y, sample_weight=v),
        ):
            with pytest.raises(ValueError, match="masked entries"):
                call(hidden)
    whole = np.ma.array(y)
    assert m.ndcg_score(whole, whole) == 1.0
    labels = np.ma.array(relevance_labels([1, 0], [0, 0]), mask=[(0, 1, 0), (0, 0, 0)])
    with pytest.raises(ValueError, match="y has masked entries"):
        read_relevance(labels)


@pytest.mark.parametrize(
    "pairs",
    [
        np.ma.array([[0, 1], [1, 2]], mask=[[0, 1], [0, 0]]),
        [np.ma.array([0, 1], mask=[0, 1]), [1, 2]],
    ],
)
def test_masked_pairs_are_refused(pairs):
    with pytest.raises(ValueError, match="masked entries"):
        preference_labels(pairs, [0, 0, 0])


def test_judgements_do_not_wrap():
    with pytest.raises(ValueError, match=f"judgement has {2**63}, which is beyond the 64-bit"):
        preference_labels([[0, 1]], [0, 0], judgement=np.array([2**63], dtype=np.uint64))
    for values in ([2**62 + 1], np.array([2**62 + 1], dtype=np.uint64), [2**62 + 1 + 0]):
        labels = preference_labels([[0, 1]], [0, 0], judgement=values)
        assert labels["judgement"][0].tolist() == [2**62 + 1]


def test_entries_that_are_not_judged_are_missing_in_every_way():
    for ranks in (
        [1, None, 2],
        np.array([1, pd.NA, 2], dtype=object),
        np.ma.array([1, 7, 2], mask=[0, 1, 0]),
        pd.Series([1, None, 2], dtype="Int64"),
        pl.Series([1, None, 2]),
    ):
        wins = ranking_labels(ranks, [0, 0, 0])["wins"]
        assert [beaten.tolist() for beaten in wins] == [[2], [], []]
    with pytest.raises(ValueError, match=r"Beyond 2\^53"):  # the ranks would tie
        ranking_labels([BIG, BIG - 1, None], [0, 0, 0])
    with pytest.raises(ValueError, match="not text"):
        ranking_labels([["1"], ["2"]], [0, 0])


def test_numbers_of_every_kind_are_read():
    for values in (
        [3, 1, 2],
        (3.0, 1, True + 1),
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([3, 1, 2], dtype=object),
        [fractions.Fraction(3), Decimal(1), np.float32(2)],
        pd.Series([3, 1, 2], index=[7, 7, 7]),
        pd.array([3, 1, 2], dtype="Int64"),
        pl.Series([3, 1, 2]),
        np.ma.array([3, 1, 2], mask=False),
        np.array([3, 1, 2], dtype=np.longdouble),
    ):
        read = read_numbers(values, "y")
        assert read.dtype == np.float64 and read.tolist() == [3, 1, 2]
        assert read_whole(values, "y").dtype == np.int64
        assert read_whole(values, "y").tolist() == [3, 1, 2]
        assert m.ndcg_score([2, 0, 1], values, groups=[0, 0, 0]) == 1.0
    assert read_numbers([True, False], "y").tolist() == [1, 0]
    assert read_numbers(np.float32([1]), "y", keep_float32=True).dtype == np.float32
    assert read_array(np.array([BIG, 1]), "y").tolist() == [BIG, 1]


def test_numbers_beyond_the_range_are_refused():
    """In the range a ranking is right; beyond it, sums of products could overflow or vanish."""
    y, groups = np.array([2.0, 1, 0]), [0, 0, 0]
    for call in (
        lambda v: relevance_labels(v, groups),
        lambda v: m.ndcg_score([v], [[3, 2, 1]], gain="linear"),
        lambda v: m.ndcg_score([y], [[3, 2, 1]], sample_weight=[v]),
        lambda v: preference_labels([[0, 1], [0, 2], [1, 2]], groups, v),
        lambda v: CalibratedRanker(Ridge()).fit(
            np.eye(3), y, groups, sample_weight=v * 0 + v.max()
        ),
    ):
        for unit in (1e49, 1e-49) if "CalibratedRanker" not in call.__code__.co_names else (1.0,):
            call(y * unit)
        for unit in (1e51, 1e-51):
            with pytest.raises(ValueError, match="must be between 1e-50 and 1e\\+50"):
                call(y * unit)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [3]], "y must be an array of real numbers"),
        ("12", "y must be the column itself"),
        ({1, 2}, "of type set"),
        (np.zeros(2, dtype=[("a", "f8")]), "not records"),
    ],
)
def test_other_things_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        read_numbers(values, "y")
    with pytest.raises(TypeError, match=re.escape("y is a sparse matrix; call its toarray()")):
        read_numbers(sparse.csr_matrix([[1.0]]), "y")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5], "whole numbers; it has 0.5"),
        ([np.nan], "whole numbers; it has nan"),
        ([np.inf], "whole numbers; it has inf"),
        ([float(2**53)], "do not represent every integer"),
        ([True], "are booleans"),
        (np.array([2**63], dtype=object), "of the wrong size"),
        ([Decimal("0.5")], "whole numbers; it has 0.5"),
    ],
)
def test_numbers_that_are_not_whole_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        read_whole(values, "k")


def test_long_text_is_refused_before_an_array_is_made_of_it():
    # An array of text of a fixed width would take 4 * 10^7 * 10^5 bytes.
    texts = ["x" * 10**7] + ["y"] * 10**5
    with pytest.raises(ValueError, match="not text"):
        relevance_labels(texts, [0] * len(texts))


# ------------------------------------------------------------------ the other arguments of numbers

SQUARE = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
MATRICES = {
    "decode_preferences": decode_preferences,
    "loss matrix": LowRankLoss.from_matrix,
    "alpha": lambda v: LowRankLoss(v, np.eye(3)).decode(np.zeros((1, 3))),
    "beta": lambda v: LowRankLoss(np.eye(3), v).decode(np.zeros((1, 3))),
    "u": lambda v: LowRankLoss(np.eye(3), np.eye(3)).decode(v),
    "make_cost_scorer": lambda v: make_cost_scorer(v, classes=[0, 1, 2]),
    "labels of a distribution": lambda v: LabelDistribution(v, [0.5, 0.25, 0.25]),
    "regret": lambda v: regret_bound("ndcg", v, 3),
    "gap": lambda v: regret_bound("ndcg", 0.1, 3, gap=v),
    "first": lambda v: compare_rankings(None, np.ravel(v), np.zeros(9)),
    "label ranker": lambda v: CalibratedLabelRanker(Ridge(), y_type="relevance").fit(SQUARE, v),
    "ranks of labels": lambda v: CalibratedLabelRanker(Ridge()).fit(SQUARE, v),
    "a discount": lambda v: Positional(discount=np.ravel(v)).discounts(3),
    "plot": plot_matrix,
}
NO_MATRIX = {
    "text": (np.array(SQUARE).astype(str), "not text"),
    "text as objects": (np.array(SQUARE).astype(str).astype(object), "not text"),
    "dates": (np.array(SQUARE).astype("M8[s]"), "not dates"),
    "time differences": (np.array(SQUARE).astype("m8[s]"), "not time differences"),
    "mask": (np.ma.array(SQUARE, mask=np.eye(3)), "masked entries"),
    "integers that tie": (np.array(SQUARE).astype(np.int64) + BIG, "Beyond 2.53"),
    "a mask in rows": ([np.ma.array(row, mask=[0, 1, 0]) for row in SQUARE], "masked entries"),
}


@pytest.mark.parametrize("entry", MATRICES)
@pytest.mark.parametrize("case", NO_MATRIX)
def test_arguments_that_are_not_matrices_are_refused(entry, case):
    values, message = NO_MATRIX[case]
    if entry in ("label ranker", "ranks of labels") and case == "mask":
        pytest.skip("masked entries count as missing in label rankings")
    if entry in ("first", "a discount") and case == "a mask in rows":
        pytest.skip("numpy.ravel forgets the mask")
    with pytest.raises(ValueError, match=message):
        MATRICES[entry](values)


def test_masks_of_tables_and_classes_are_not_ignored():
    X = np.ma.array([[1.0], [2.0], [3.0]], mask=[[0], [1], [0]])
    with pytest.raises(ValueError, match="X has masked entries"):
        CalibratedRanker(Ridge()).fit(X, [1, 0, 2], [0, 0, 0])
    y = np.ma.array([0, 1, 1], mask=[0, 1, 0])
    with pytest.raises(ValueError, match="y has masked entries"):
        LowRankClassifier().fit(X.data, y)
    with pytest.raises(ValueError, match="y_true has masked entries"):
        mean_cost_loss(y, [0, 1, 1], [[0, 1], [1, 0]], classes=[0, 1])
    with pytest.raises(ValueError, match="ranks has masked entries"):
        ranking_risk(np.ma.array([1, 2], mask=[0, 1]), ([[1, 0]], [1]), "ndcg")
    with pytest.raises(ValueError, match="sizes has masked entries"):
        decode_preferences(np.zeros((2, 3, 3)), sizes=np.ma.array([2, 3], mask=[0, 1]))
    with pytest.raises(ValueError, match="tie_breakers has masked entries"):
        decode_scores([1, 1, 0], tie_breakers=MASKED)
    with pytest.raises(ValueError, match="n_documents has masked entries"):
        regret_bound("ndcg", 0.1, np.ma.array([2, 3], mask=[0, 1]))


def test_return_values_of_functions_of_a_user_are_checked():
    distribution = ([[2, 1, 0]], [1.0])
    for gain in (lambda y: y.astype(str), lambda y: np.ma.array(y, mask=y > 1)):
        with pytest.raises(ValueError, match="what gain returned"):
            m.ndcg_score([[2, 1, 0]], [[3, 2, 1]], gain=gain)
        with pytest.raises(ValueError, match="the return value of pair_weight"):
            ranking_risk([1, 2, 3], distribution, PD(pair_weight=gain))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_nothing_but_the_group_column(frame):
    with pytest.raises(ValueError, match="X has no column besides group_column='qid'"):
        CalibratedRanker(Ridge(), group_column="qid").fit(frame({"qid": [1, 1, 2]}), [1, 0, 1])


def test_surrogate_characters_in_text_columns():
    text = pd.Series(["\udcff", "a", "\udcff"], dtype=object)  # pyarrow's text cannot hold them
    X = pd.DataFrame({"text": text, "x": [1.0] * 3})
    assert len(set(hash_rows(X, np.arange(3)).tolist())) == 2
    encoder = ColumnTransformer([("text", OneHotEncoder(handle_unknown="ignore"), ["text"])])
    ranker = CalibratedRanker(make_pipeline(encoder, Ridge()), context=None)
    assert sorted(ranker.fit(X, [1, 0, 1], [0, 0, 0]).predict(X, [0, 0, 0])) == [1, 2, 3]


def test_both_ends_of_the_range():
    ends = np.array([1e-50, 1e50])
    check_range(np.concatenate([ends, -ends, [0.0, np.nan, np.inf]]), "y")
    for beyond in (np.nextafter(1e-50, 0), np.nextafter(1e50, np.inf), -1e51, 5e-324):
        with pytest.raises(ValueError, match=r"^y has .* must be between 1e-50 and 1e\+50"):
            check_range(np.array([1.0, beyond]), "y")
