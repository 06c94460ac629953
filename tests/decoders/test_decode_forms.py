"""Forms of input of decoders: one matrix or many, lists and padding; invariances; bad input."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_rankcal.decoders import (
    DECODERS,
    decode_average_precision,
    decode_preferences,
    get_decoder,
)
from sklearn_rankcal.queries import Queries

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
    for scale in (2.0**-40, 2.0**40):
        same_ranks(decode([scale * u for u in us], **options).ranks, whole.ranks)


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
            decoder = get_decoder(name, space)
            assert repr(decoder) == repr(DECODERS[space, name]()) and decoder.space == space
            assert decoder.method == name
        with pytest.raises(ValueError, match="Unknown decoder"):
            get_decoder("nope", space)
        with pytest.raises(ValueError, match="scores"):
            get_decoder(decoder, "scores")


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
