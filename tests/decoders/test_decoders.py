"""Forms of input, the decoders as objects, the registry, and ties up to rounding."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, show_versions
from sklearn_rankcal.decoders import (
    DECODERS,
    KERNELS,
    PreferenceDecoder,
    Quota,
    Rules,
    Sort,
    decode_average_precision,
    decode_preferences,
    decode_scores,
    decode_tiers,
)
from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.labels._labels import read_preferences  # labels as losses see them
from sklearn_rankcal.losses import PDByScores
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import DifferenceGraph, PointwiseMargin
from sklearn_rankcal.utils._numbers import tie

from .. import matrices, oracles

PREFERENCES = ["auto", "greedy_dag", "exact", "local_search", "borda", "copeland", "sort"]
AVERAGE_PRECISION = ["auto", "exact", "local_search", "diagonal"]
WAYS = [
    *((decode_preferences, {"method": method}) for method in PREFERENCES),
    (decode_preferences, {"method": "greedy_dag", "order": "topological"}),
    (decode_preferences, {"method": "local_search", "n_perturbations": 0}),
    (decode_preferences, {"method": "local_search", "random_state": 3}),
    *((decode_average_precision, {"method": method}) for method in AVERAGE_PRECISION),
]
UNITS = [0.1, 0.3, 0.7, 1e-12, 1e12]
# .1 + .2 is more than .3 in floating point
PAIRS, WEIGHTS = [(0, 1), (0, 1), (1, 0), (1, 2)], [0.1, 0.2, 0.3, 1.0]


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
    ],
)
def test_bad_input_of_scores_and_objects(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_registry():
    assert DECODERS["scores", "sort"] is Sort


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
        ("greedy", r"Unknown decoder 'greedy'.* Did you mean 'greedy_dag'\? Known: auto"),
        (Sort(), "Sort decodes scores, but the loss predicts pairs"),
        (PreferenceDecoder(n_perturbations=-1), "n_perturbations must be a whole number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibratedRanker(loss="pd", decoder=decoder).fit(X, y, groups)
    with pytest.raises(ValueError, match="decodes pairs, but the loss predicts scores"):
        CalibratedRanker(decoder=PreferenceDecoder()).fit(X, y, groups)


def test_the_check_of_a_decoder_draws_no_seed():
    drawn, untouched = np.random.RandomState(0), np.random.RandomState(0)
    state = np.random.get_state()[1:3]
    for seed in (drawn, None):
        decoder = PreferenceDecoder("local_search", random_state=seed)
        ranker = CalibratedRanker(Ridge(alpha=0.1), loss="pd", decoder=decoder)
        ranker.fit([[0.0], [1.0], [3.0]], [0, 1, 2], groups=[0, 0, 0])
    assert drawn.randint(1 << 30) == untouched.randint(1 << 30)
    np.testing.assert_equal(np.random.get_state()[1:3], state)


def id_of(value):
    """The test id of a function or of its options, without addresses, which differ by process."""
    return getattr(value, "__name__", str(value))


every_way = pytest.mark.parametrize(("decode", "options"), WAYS, ids=id_of)


def batch(decode, sizes=(3, 1, 12, 7, 2, 7, 16, 5), seed=0):
    """Draw matrices of multiples of 1/4, whose sums and differences are exact and often tied."""
    rng = np.random.default_rng(seed)
    make = matrices.symmetric_ties if decode is decode_average_precision else matrices.ties
    return [make(r, rng) / 4 for r in sizes]


def same(result, other, places=slice(None)):
    """Check that a result of several queries equals the (selected) queries of another."""
    for name in ("objective", "lower_bound", "optimal", "threshold", "gap", "method", "n_iter"):
        value, wanted = getattr(result, name), getattr(other, name)
        if wanted is None:
            assert value is None
        else:
            np.testing.assert_array_equal(value, wanted[places], err_msg=name)


def same_ranks(ranks, others):
    assert len(ranks) == len(others)
    for one, other in zip(ranks, others, strict=True):
        np.testing.assert_array_equal(one, other)


@every_way
def test_a_query_alone_and_in_any_batch(decode, options):
    us = batch(decode)
    whole = decode(us, **options)
    assert isinstance(whole.ranks, list)
    assert whole.objective.shape == whole.lower_bound.shape == whole.optimal.shape == (len(us),)
    assert whole.optimal.dtype == bool
    for k, u in enumerate(us):
        alone = decode(u, **options)
        assert alone.ranks.dtype == np.int64 and alone.ranks.shape == (len(u),)
        np.testing.assert_array_equal(alone.ranks, whole.ranks[k])
        assert type(alone.objective) is type(alone.lower_bound) is float
        assert isinstance(alone.optimal, bool) and isinstance(alone.method, str)
        assert alone.gap == alone.objective - alone.lower_bound
        assert alone.objective == whole.objective[k] and alone.optimal == whole.optimal[k]
        assert alone.lower_bound == whole.lower_bound[k]
        if options["method"] == "greedy_dag":
            assert alone.threshold == whole.threshold[k]
    shuffle = np.random.default_rng(1).permutation(2 * len(us)) % len(us)
    again = decode([us[k] for k in shuffle], **options)
    same(again, whole, shuffle)
    same_ranks(again.ranks, [whole.ranks[k] for k in shuffle])


@every_way
def test_threads_padding_and_repetition(decode, options):
    us = batch(decode)
    whole = decode(us, **options)
    sizes = np.array([len(u) for u in us])
    for n_jobs in (2, -1):
        threaded = decode(us, n_jobs=n_jobs, **options)
        same(threaded, whole)
        same_ranks(threaded.ranks, whole.ranks)
    padded = np.full((len(us), 18, 18), np.nan)
    for k, u in enumerate(us):
        padded[k, : len(u), : len(u)] = u
    kept = padded.copy()
    result = decode(padded, sizes=sizes, n_jobs=2, **options)
    np.testing.assert_array_equal(padded, kept)
    assert result.ranks.shape == (len(us), 18) and result.ranks.dtype == np.int64
    same(result, whole)
    same_ranks([row[:r] for row, r in zip(result.ranks, sizes, strict=True)], whole.ranks)
    assert (result.ranks[np.arange(18) >= sizes[:, None]] == 0).all()
    stacked = np.stack(batch(decode, (6,) * 5))
    result = decode(stacked, **options)
    assert result.ranks.shape == (5, 6)
    same_ranks(result.ranks, decode(list(stacked), **options).ranks)
    for other in (stacked.tolist(), np.asfortranarray(stacked), stacked[::-1].copy()[::-1]):
        same_ranks(decode(other, **options).ranks, result.ranks)
    for kind in (np.float32, np.int64):
        cast = (4 * stacked).astype(kind)
        same_ranks(decode(cast, **options).ranks, decode(4 * stacked, **options).ranks)


@every_way
def test_scale_changes_the_objective_only(decode, options):
    us = batch(decode)
    whole = decode(us, **options)
    for scale in (2.0**-160, 2.0**-40, 2.0**40, 2.0**150):
        other = decode([scale * u for u in us], **options)
        same_ranks(other.ranks, whole.ranks)
        np.testing.assert_array_equal(other.optimal, whole.optimal)


@pytest.mark.parametrize(("decode", "options"), WAYS[: len(PREFERENCES) + 1], ids=id_of)
def test_preferences_count_by_their_differences_only(decode, options):
    rng = np.random.default_rng(2)
    us = batch(decode)
    whole = decode(us, **options)
    shifts = [rng.integers(-9, 9, size=u.shape) for u in us]
    moved = decode([u + s + s.T for u, s in zip(us, shifts, strict=True)], **options)
    same_ranks(moved.ranks, whole.ranks)
    np.testing.assert_array_equal(moved.optimal, whole.optimal)
    added = [(s + s.T)[np.triu_indices(len(s), 1)].sum() for s in shifts]
    for name in ("objective", "lower_bound"):
        wanted = getattr(whole, name) + added
        np.testing.assert_allclose(getattr(moved, name), wanted, atol=1e-9, err_msg=name)
    other = decode([u + np.diag(rng.normal(size=len(u))) for u in us], **options)
    same(other, whole)
    same_ranks(other.ranks, whole.ranks)


# ------------------------------------------------------------------ input

BOTH = [decode_preferences, decode_average_precision]
ONE = np.ones((3, 3))


@pytest.mark.parametrize("decode", BOTH)
@pytest.mark.parametrize(
    ("u", "options", "message"),
    [
        (np.ones((2, 3)), {}, "square.*2, 3|2, 3.*square"),
        (np.ones((2, 2, 3)), {}, "square.*2, 3|2, 3.*square"),
        ([np.ones((2, 2)), np.ones((2, 3))], {}, "square.*2, 3|2, 3.*square"),
        (np.ones(3), {}, r"\(3,\)|1-D|dimension"),
        (np.ones((1, 1, 1, 1)), {}, r"\(1, 1, 1, 1\)|4-D|dimension"),
        (1.0, {}, r"\(\)|0-D|dimension"),
        (ONE * np.nan, {}, "NaN or infinity"),
        ([ONE, np.where(np.eye(3), 1, np.inf)], {}, "NaN or infinity"),
        ([ONE, np.where(np.eye(3), 1, -np.inf)], {"method": "exact"}, "NaN or infinity"),
        (np.full((2, 3, 3), np.nan), {"sizes": [1, 2]}, "NaN or infinity"),
        (np.ones((0, 0)), {}, "empty|at least one|0 documents|no document"),
        (np.ones((2, 0, 0)), {}, "empty|at least one|0 documents|no document"),
        ([ONE, np.ones((0, 0))], {}, "empty|at least one|0 documents|no document"),
        ([], {}, "empty|at least one"),
        (np.ones((0, 3, 3)), {}, "empty|at least one"),
        ([["a", "b"], ["c", "d"]], {}, "number"),
        (ONE * 1j, {}, "real|number"),
        (ONE, {"method": "nope"}, "nope.*auto.*exact.*local_search"),
        (ONE, {"sizes": [3]}, "sizes"),
        ([ONE, ONE], {"sizes": [3, 3]}, "sizes"),
        (np.ones((2, 3, 3)), {"sizes": [3]}, "sizes"),
        (np.ones((2, 3, 3)), {"sizes": [3, 4]}, "sizes.*4"),
        (np.ones((2, 3, 3)), {"sizes": [3, 0]}, "sizes.*0"),
        (np.ones((2, 3, 3)), {"sizes": [3, -1]}, "sizes.*-1"),
        (np.ones((2, 3, 3)), {"sizes": [3, 1.5]}, "sizes"),
        (np.ones((2, 3, 3)), {"sizes": [[3, 3]]}, "sizes"),
        (ONE, {"method": "exact", "time_limit": 0}, "time_limit.*0"),
        (ONE, {"method": "exact", "time_limit": -1.0}, "time_limit.*-1"),
        (ONE, {"method": "exact", "time_limit": np.nan}, "time_limit.*nan"),
        (ONE, {"method": "local_search", "n_perturbations": -1}, "n_perturbations.*-1"),
        (
            ONE,
            {"n_perturbations": 10**10},
            "n_perturbations must be at most 100,000; got 10000000000.*random_st",
        ),
        (ONE, {"n_perturbations": 2.0}, "n_perturbations must be a whole number >= 0; got 2.0"),
        (ONE, {"time_limit": "1"}, "time_limit must be a positive number.*'1'"),
        (ONE, {"n_jobs": 0}, "n_jobs must be None or an integer other than 0; got 0"),
        (ONE, {"n_jobs": 2.5}, "n_jobs must be None or an integer.*2.5"),
    ],
)
def test_bad_input(decode, u, options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        decode(u, **options)


@pytest.mark.parametrize("method", AVERAGE_PRECISION)
def test_average_precision_needs_symmetric_matrices(method):
    u = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.3, 1.0]])
    with pytest.raises(ValueError, match="symmetric"):
        decode_average_precision(u, method)
    with pytest.raises(ValueError, match="symmetric"):
        decode_average_precision([ONE, u], method)
    almost = np.where(np.eye(3), 1, ONE / 3)
    almost[0, 1] *= 1 + 4e-16  # rounding is no asymmetry
    decode_average_precision(almost, method)


def test_unknown_order():
    with pytest.raises(ValueError, match=r"nope.*(ranked_pairs.*topological|topological.*ranking)"):
        decode_preferences(ONE, "greedy_dag", order="nope")


# ------------------------------------------------------------------ registry

MATRIX_DECODERS = [
    (space, name) for space, name in DECODERS if space in ("pairs", "symmetric_pairs")
]


def interleaved(space, sizes=(3, 1, 6, 5, 2, 4, 9), seed=0):
    """Return groups in shuffled rows, a matrix for each query, and the predictions as integers."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    us, flat = [], []
    for rows in oracles.split(groups):
        r = len(rows)
        if space == "pairs":
            d = np.triu(rng.integers(-2, 3, size=(r, r)), 1)
            us.append(np.maximum(d - d.T, 0).astype(float))
            flat += [d[i, j] for i in range(r) for j in range(i + 1, r)]
        else:
            us.append(matrices.symmetric_ties(r, rng))
            flat += [us[-1][i, j] for i in range(r) for j in range(i, r)]
    return groups, us, np.array(flat, dtype=float)


def decode_function(space):
    return decode_preferences if space == "pairs" else decode_average_precision


def test_registered_names():
    for space, known in (("pairs", PREFERENCES), ("symmetric_pairs", AVERAGE_PRECISION)):
        names = {name for kind, name in DECODERS if kind == space}
        assert names | {"auto"} == set(known)
        for name in names:
            decoder = DECODERS[space, name]()
            assert decoder.method == name and decoder.space == space


@pytest.mark.parametrize(("space", "name"), MATRIX_DECODERS)
def test_decoders_on_queries_equal_the_functions(space, name):
    decoder = clone(DECODERS[space, name]())
    assert decoder.set_params(**decoder.get_params()) is decoder
    groups, us, flat = interleaved(space)
    queries, rows_of = Queries.from_groups(groups), oracles.split(groups)
    wanted = decode_function(space)(us, name)
    for n_jobs in (None, 2):
        result = decoder.decode(flat, queries, n_jobs=n_jobs)
        assert result.ranks.shape == groups.shape and result.ranks.dtype == np.int64
        same(result, wanted)
        same_ranks([result.ranks[rows] for rows in rows_of], wanted.ranks)
    contiguous = np.repeat(np.arange(len(us)), [len(u) for u in us])
    result = decoder.decode(flat, Queries.from_groups(contiguous))
    same_ranks([result.ranks[contiguous == k] for k in range(len(us))], wanted.ranks)


@pytest.mark.parametrize(("space", "name"), MATRIX_DECODERS)
def test_keys_stand_for_document_order(space, name):
    groups, us, flat = interleaved(space)
    keys = np.random.default_rng(1).permutation(len(groups)).astype(np.uint64)
    queries, rows_of = Queries.from_groups(groups), oracles.split(groups)
    result = DECODERS[space, name]().decode(flat, queries, lambda rows: keys[rows])
    by_key = [sorted(range(len(rows)), key=lambda i: keys[rows[i]]) for rows in rows_of]
    ordered = [u[np.ix_(order, order)] for u, order in zip(us, by_key, strict=True)]
    wanted = decode_function(space)(ordered, name)
    for rows, order, ranks in zip(rows_of, by_key, wanted.ranks, strict=True):
        np.testing.assert_array_equal(result.ranks[rows][order], ranks)
    np.testing.assert_allclose(result.objective, wanted.objective)
    np.testing.assert_array_equal(result.optimal, wanted.optimal)


def test_the_order_of_pairs_is_an_option():
    _, us, flat = interleaved("pairs", sizes=(12, 8))
    groups = np.repeat([0, 1], [len(u) for u in us])
    orders = {}
    for order in ("topological", "ranked_pairs"):
        decoder = DECODERS["pairs", "greedy_dag"](order=order)
        orders[order] = decoder.decode(flat, Queries.from_groups(groups)).ranks
        wanted = decode_preferences(us, "greedy_dag", order=order)
        np.testing.assert_array_equal(orders[order], np.concatenate(wanted.ranks))
    assert (orders["topological"] != orders["ranked_pairs"]).any()


def votes(seed, r, n_cases):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 5, (r, r)) * 1.0 for _ in range(n_cases)]


def test_values_are_tied_in_chains():
    values = np.array([[0.3, 1.0, 0.1 + 0.2, 0.3 + 3e-10, 0.5], [1.0, 2.0, 3.0, 4.0, 4.0]])
    tied = tie(values, [1.0, 1.0])
    assert len(set(tied[0, [0, 2, 3]])) == 1
    assert tied[0, [1, 4]].tolist() == [1.0, 0.5]
    assert tied[1].tolist() == values[1].tolist()


def test_borda_ranks_do_not_depend_on_the_unit_and_ties_are_in_document_order():
    for u in votes(0, 6, 60):
        wanted = np.argsort(-(u - u.T).sum(axis=1), kind="stable")  # of whole numbers
        for unit in UNITS:
            result = decode_preferences(u * unit, "borda")
            assert np.argsort(result.ranks).tolist() == wanted.tolist()


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_exact_decoders_have_the_same_objective_and_proof_in_each_unit(method):
    for u in votes(1, 6, 20):
        order = np.random.default_rng(0).permutation(6)
        one, ap = decode_preferences(u, method), decode_average_precision(u + u.T, method)
        for unit in UNITS:
            for v in (u * unit, (u * unit)[np.ix_(order, order)]):
                other = decode_preferences(v, method)
                assert other.objective / unit == pytest.approx(one.objective)
                assert other.optimal and one.optimal
                other = decode_average_precision(v + v.T, method)
                assert (1 - other.objective) / unit == pytest.approx(1 - ap.objective, rel=1e-3)
                assert other.optimal and ap.optimal


def test_tiers_do_not_depend_on_the_unit():
    for case, u in enumerate(votes(2, 6, 60)):
        margin = float(case % 4)
        one = decode_tiers(u, margin)
        for unit in UNITS:
            other = decode_tiers(u * unit, margin * unit)
            assert other.ranks.tolist() == one.ranks.tolist()
            assert other.objective / unit == pytest.approx(one.objective)
            assert other.optimal


def test_a_search_under_rules_descends_in_each_unit():
    """A tolerance of 1e-12 of 1 stopped it at once where weights were small."""
    for u in votes(3, 18, 3):
        rules = Rules(place=np.where(np.arange(18) == 4, 3, 0))
        one = decode_preferences(u, "local_search", rules=rules)
        # the unit is a power of two, by which the search does not change at all
        for unit in (2.0**-60, 2.0**-40, 2.0**40):
            other = decode_preferences(u * unit, "local_search", rules=rules)
            assert other.ranks.tolist() == one.ranks.tolist()
            assert other.optimal == one.optimal


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9, -1e9])
def test_integer_programs_do_not_depend_on_a_constant_of_the_scores(shift):
    rng = np.random.default_rng(5)
    discounts = 1 / np.log2(np.arange(2, 9))
    for _ in range(40):
        r = int(rng.integers(4, 7))
        scores = rng.integers(0, 4, r) / 8
        of = [rng.random(r) < 0.5 for _ in range(2)]
        rules = Rules(quotas=[Quota(one, first=2, at_most=1) for one in of], soft=10.0)
        one, other = (decode_scores(u, rules=rules) for u in (scores, scores + shift))
        gains = [scores @ discounts[found.ranks - 1] for found in (one, other)]
        assert gains[0] == pytest.approx(gains[1])
        assert one.violation.tolist() == other.violation.tolist()


def test_weights_that_are_equal_but_for_rounding_are_ties():
    labels = read_preferences(preference_labels(PAIRS, [0] * 3, WEIGHTS))
    scores = PDByScores(score_function="copeland").encode(labels, labels.queries)
    assert scores.tolist() == pytest.approx([0, 1 / 3, -1 / 3])
    kept = DifferenceGraph()._pairs(labels)
    assert kept.winner.tolist() == [1] and kept.loser.tolist() == [2]


def test_the_smooth_hinge_gives_equal_utilities_equal_scores():
    surrogate = PointwiseMargin("smooth_hinge", eta=0.6, t=5.0)
    expected = np.array([0.1 + 0.2, 0.3, 0.3 - 2**-54, 0.2, 0.4])
    score = surrogate.minimizer(expected, Queries.single(5))
    assert score[:3].tolist() == [2.5, 2.5, 2.5]
    assert score[3] == pytest.approx(5 - score[4])
