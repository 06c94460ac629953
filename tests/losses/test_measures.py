"""Measures by name, spaces of targets, and the size of blocks of pairs."""

import copy
import pickle

import numpy as np
import pytest
import sklearn

from sklearn_rankcal import losses, metrics
from sklearn_rankcal.decoders import DECODERS
from sklearn_rankcal.losses import MEASURES, get_measure
from sklearn_rankcal.losses._base import BinaryMeasure  # what all names and measures share
from sklearn_rankcal.losses._registry import get_measures, settable_parameters
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import (
    PAIRS,
    SCORES,
    SPACES,
    SYMMETRIC_PAIRS,
    PairTargets,
    Space,
    get_space,
)

from ..metric_data import FUNCTIONS, per_query

ALL_SPACES = pytest.mark.parametrize("space", SPACES.values(), ids=str)
PAIR_SPACES = pytest.mark.parametrize("space", [PAIRS, SYMMETRIC_PAIRS], ids=str)


# ---------------------------------------------------------------- spaces


@ALL_SPACES
def test_a_space_is_the_string_that_names_it(space):
    assert isinstance(space, str) and isinstance(space, Space)
    assert SPACES[str(space)] is get_space(str(space)) is get_space(space) is space
    assert {space: 1}[str(space)] == 1
    assert [other for other in SPACES if other == space] == [space]


@ALL_SPACES
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_space_survives_pickling_and_copying_as_one_object(space, protocol):
    assert pickle.loads(pickle.dumps(space, protocol)) is space
    assert copy.copy(space) is space
    assert copy.deepcopy({"space": space})["space"] is space


def entries_by_loops(space, r):
    if not space.is_pairwise:
        return list(range(r))
    first = 0 if space.symmetric else 1
    return [(i, j) for i in range(r) for j in range(i + first, r)]


@ALL_SPACES
def test_entries_and_owners_against_loops(space):
    sizes = np.array([3, 1, 4, 2])
    queries = Queries(np.append(0, np.cumsum(sizes)))
    counts = [len(entries_by_loops(space, r)) for r in sizes]
    assert space.n_entries(sizes).tolist() == counts
    assert [space.n_entries(int(r)) for r in sizes] == counts
    assert space.owners(queries).tolist() == [q for q in range(4) for _ in range(counts[q])]


@PAIR_SPACES
@pytest.mark.parametrize("r", [1, 2, 5])
def test_indices_and_matrices_against_loops(space, r):
    expected = entries_by_loops(space, r)
    rows, columns = space.indices(r)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected
    entries = np.random.RandomState(0).normal(size=(3, len(expected)))
    matrices = np.zeros((3, r, r))
    for q in range(3):
        for e, (i, j) in enumerate(expected):
            matrices[q, i, j] = entries[q, e]
            if i != j:
                matrices[q, j, i] = entries[q, e] if space.symmetric else -entries[q, e]
    np.testing.assert_array_equal(space.matrices(entries, r), matrices)


@PAIR_SPACES
def test_fold_is_the_projection_onto_the_space(space):
    full = np.random.RandomState(1).normal(size=(4, 4))
    transposed = full.T if space.symmetric else -full.T
    nearest = (full + transposed) / 2  # the nearest matrix of the space in squared distance
    i, j = space.indices(4)
    np.testing.assert_allclose(space.fold(full[i, j], full[j, i]), nearest[i, j])
    np.testing.assert_allclose(space.matrices(nearest[None, i, j], 4)[0], nearest)


@ALL_SPACES
def test_remove_constants_against_loops(space):
    sizes = [3, 1, 4]
    queries = Queries(np.append(0, np.cumsum(sizes)))
    rng = np.random.RandomState(2)
    entries, expected = [], []
    for r in sizes:
        names = entries_by_loops(space, r)
        values = rng.normal(size=len(names))
        entries += values.tolist()
        # entries of one kind: all scores, all diagonal entries, or all others
        kinds = ["score" if not space.is_pairwise else name[0] == name[1] for name in names]
        for value, kind in zip(values, kinds, strict=True):
            same = [v for v, k in zip(values, kinds, strict=True) if k == kind]
            expected.append(value if space == "pairs" else value - sum(same) / len(same))
    found = space.remove_constants(np.array(entries), queries)
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("space", [SCORES, SYMMETRIC_PAIRS], ids=str)
def test_removed_constants_change_no_ranking(space):
    queries = Queries(np.array([0, 5, 9]))
    u = np.random.RandomState(3).normal(size=int(space.n_entries(queries.sizes).sum()))
    decoder = DECODERS[space, "exact" if space.is_pairwise else "sort"]()
    moved = space.remove_constants(u, queries)
    assert not np.allclose(moved, u)
    ranks = [decoder.decode(v, queries).ranks for v in (u, moved)]
    assert ranks[0].tolist() == ranks[1].tolist()


def test_an_unknown_space_is_refused():
    with pytest.raises(
        ValueError, match=r"Unknown space 'triples'\. Known: 'scores', 'pairs', 'sym"
    ):
        get_space("triples")
    with pytest.raises(ValueError, match="Unknown space 'storms'"):
        pickle.loads(pickle.dumps(SCORES).replace(b"scores", b"storms"))


# ---------------------------------------------------------------- measures by name


def test_every_name_has_a_class_and_a_docstring_of_its_own():
    assert list(MEASURES) == sorted(MEASURES)
    for kind in MEASURES.values():
        assert issubclass(kind, losses.Measure)
        assert kind.__doc__


def same(one, other):
    return type(one) is type(other) and one.get_params() == other.get_params()


@pytest.mark.parametrize("name", MEASURES)
def test_get_measure_by_name_cutoff_and_parameters(name):
    kind = MEASURES[name]
    if "k" not in settable_parameters(name):
        assert same(get_measure(name), kind())
        with pytest.raises(ValueError, match=f"Metric '{name}' has no cutoff; got '{name}@3'"):
            get_measure(f"{name}@3")
        return
    assert same(get_measure(f"{name}@3"), kind(k=3))
    assert same(get_measure(name, k=3), kind(k=3))
    assert same(get_measure(f"{name}@3", k=3), kind(k=3))
    with pytest.raises(TypeError, match="contains a cutoff, but k=4 was passed"):
        get_measure(f"{name}@3", k=4)
    if name in ("precision", "recall"):
        with pytest.raises(ValueError, match=f"Metric '{name}' needs a cutoff, as in '{name}@10'"):
            get_measure(name)
    else:
        assert same(get_measure(name), kind(k=None))


def test_get_measure_passes_parameters():
    assert same(get_measure("map@5", threshold=2), MEASURES["map"](k=5, threshold=2))
    assert same(get_measure("ndcg", gain="linear"), MEASURES["ndcg"](gain="linear"))
    assert same(get_measure("eru", neutral=1, half_life=3), MEASURES["eru"](neutral=1, half_life=3))
    assert same(get_measure("err", max_relevance=4), MEASURES["err"](max_relevance=4))
    with pytest.raises(TypeError, match=r"'ndcg' has no parameter 'threshold'\. Its parameters"):
        get_measure("ndcg", threshold=1)
    # what the targets of a loss depend on is no parameter of its measure
    with pytest.raises(TypeError, match=r"'ndcg' has no parameter 'shrinkage'"):
        get_measure("ndcg", shrinkage=0.0)
    with pytest.raises(TypeError, match=r"'spearman' has no parameter 'k'.*has no parameters"):
        get_measure("spearman", k=3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "Unknown metric 'ndgc@10'. Did you mean 'ndcg@10'?"),
        ("NDCG@10", "Did you mean 'ndcg@10'?"),
        ("ndcg10", "Did you mean 'ndcg@10'?"),
        ("ndcg_cut_10", "Did you mean 'ndcg@10'?"),
        ("P@5", "the nearest is 'precision@5'"),
        ("pd", "the nearest is 'pairwise_disagreement'"),
        ("kendall", "the nearest is 'kendall_tau'"),
        ("roc_auc", "the nearest is 'auc'"),
        ("wta", "the nearest is 'precision@1'"),
        ("", "Unknown metric ''."),
        ("ndcg@", "The cutoff in 'ndcg@' must be a whole number >= 1, as in 'ndcg@10'."),
        ("ndcg@0", "must be a whole number >= 1"),
        ("ndcg@-3", "must be a whole number >= 1"),
        ("ndcg@1.5", "must be a whole number >= 1"),
    ],
)
def test_get_measure_refuses_unknown_names(name, message):
    for call in (lambda: get_measure(name), lambda: get_measures([name], {})):
        with pytest.raises(ValueError) as error:
            call()
        assert message in str(error.value)


@pytest.mark.parametrize("name", [None, 3, MEASURES["ndcg"]])
def test_get_measure_needs_a_name_or_an_object(name):
    for call in (lambda: get_measure(name), lambda: get_measures(name, {})):
        with pytest.raises(TypeError, match="must be a name, such as 'auc', or a Measure object"):
            call()
    ndcg = losses.NDCG(k=10)
    assert get_measure(ndcg) is ndcg and get_measures([ndcg], {}) == {"NDCG(k=10)": ndcg}
    with pytest.raises(TypeError, match="Set the parameters of this object instead"):
        get_measure(ndcg, gain="linear")
    with pytest.raises(TypeError, match=r"'NDCG\(k=10\)' has no parameter 'gain'"):
        get_measures(ndcg, {"gain": "linear"})


def test_get_measures_gives_each_parameter_to_those_that_have_it():
    found = get_measures(["ndcg@3", "map", "precision@2"], {"threshold": 2, "gain": "linear"})
    expected = [
        MEASURES["ndcg"](k=3, gain="linear"),
        MEASURES["map"](threshold=2),
        MEASURES["precision"](k=2, threshold=2),
    ]
    assert list(found) == ["ndcg@3", "map", "precision@2"]
    assert all(map(same, found.values(), expected))
    with pytest.raises(ValueError, match="metrics is empty"):
        get_measures([], {})
    with pytest.raises(TypeError, match="'ndcg' and 'err' have no parameter 'threshold'") as error:
        get_measures(["ndcg", "err"], {"threshold": 1})
    having = "auc, map, mrr, precision, recall."
    assert str(error.value).endswith(f"Metrics that have it: {having}")
    with pytest.raises(TypeError, match="'ndcg' has no parameter 'colour'") as error:
        get_measures(["ndcg"], {"colour": 1})
    assert "Metrics that have it" not in str(error.value)


# ---------------------------------------------------------------- measures, metrics and losses

PARAMETERS = {
    "auc": [{}, {"threshold": 2}],
    "dcg": [{}, {"k": 2}, {"k": 3, "gain": "linear"}],
    "err": [{}, {"k": 2}, {"max_relevance": 5}, {"gain": "linear", "discount": np.sqrt}],
    "eru": [{}, {"neutral": 1.0, "half_life": 2.0}],
    "kendall_tau": [{}],
    "map": [{}, {"k": 2}, {"k": 3, "threshold": 2}],
    "mrr": [{}, {"k": 2}, {"threshold": 2}],
    "ndcg": [{}, {"k": 2}, {"k": 3, "gain": "linear"}],
    "pairwise_disagreement": [{}, {"pair_weight": "graded"}, {"normalize": False}],
    "precision": [{"k": 1}, {"k": 3, "threshold": 2}],
    "recall": [{"k": 1}, {"k": 3, "threshold": 2}],
    "spearman": [{}],
}
CASES = [(name, parameters) for name in PARAMETERS for parameters in PARAMETERS[name]]


def ranked_data(binary):
    """Return labels, tied scores and groups; some queries have no relevant row, or a single row."""
    rng = np.random.RandomState(4)
    groups = np.repeat(np.arange(30), rng.randint(1, 8, 30))
    y = rng.randint(0, 2 if binary else 4, len(groups)).astype(float)
    y[groups == 3] = 0.0
    return y, rng.randint(0, 4, len(groups)).astype(float), groups


def needs_binary_labels(name, parameters):
    return issubclass(MEASURES[name], BinaryMeasure) and "threshold" not in parameters


def test_every_measure_is_tested():
    assert set(FUNCTIONS) == set(PARAMETERS) == set(MEASURES)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=repr)
@pytest.mark.parametrize("ties", ["average", "first"])
def test_a_measure_is_the_metric_function_of_its_name(name, parameters, ties):
    y, scores, groups = ranked_data(needs_binary_labels(name, parameters))
    queries = Queries.from_groups(groups)
    measure = get_measure(name, **parameters)
    found = measure.per_query(Ranking.from_scores(scores, queries, ties), y)
    expected = per_query(name, y, scores, groups=groups, ties=ties, **parameters)
    np.testing.assert_array_equal(found, expected)
    # a query is undefined exactly where `defined` says so
    np.testing.assert_array_equal(np.isnan(found), ~measure.defined(y, queries))
    mean = FUNCTIONS[name](y, scores, groups=groups, ties=ties, **parameters)
    assert mean == pytest.approx(np.nanmean(found), rel=1e-14)


@pytest.mark.parametrize(("name", "parameters"), CASES, ids=repr)
def test_the_default_settable_parameters_a_measure_are_those_of_the_function(name, parameters):
    y, scores, groups = ranked_data(needs_binary_labels(name, {}))
    queries = Queries.from_groups(groups)
    found = MEASURES[name]().per_query(Ranking.from_scores(scores, queries), y)
    expected = per_query(name, y, scores, groups=groups)
    np.testing.assert_array_equal(found, expected)


# loss, name and parameters of its measure
OF_LOSSES = {
    "auc": (losses.AUC(threshold=2), "auc", {"threshold": 2}),
    "dcg": (losses.DCG(3, gain="linear"), "dcg@3", {"gain": "linear"}),
    "err": (losses.ERR(2, max_relevance=4), "err@2", {"max_relevance": 4}),
    "eru": (losses.ERU(1.0, 3.0), "eru", {"neutral": 1.0, "half_life": 3.0}),
    "map": (losses.MAP(threshold=2), "map", {"threshold": 2}),
    "map_by_scores": (losses.MAPByScores(3, threshold=2), "map@3", {"threshold": 2}),
    "ndcg": (losses.NDCG(3), "ndcg@3", {}),
    "precision": (losses.Precision(2, threshold=1), "precision@2", {"threshold": 1}),
    "recall": (losses.Recall(2, threshold=1), "recall@2", {"threshold": 1}),
    "spearman": (losses.Spearman(), "spearman", {}),
}


@pytest.mark.parametrize("name", OF_LOSSES)
def test_the_measure_of_a_loss_is_the_measure_of_its_name(name):
    loss, metric, parameters = OF_LOSSES[name]
    of_name = get_measure(metric, **parameters)
    assert all(
        getattr(loss, name) == getattr(of_name, name) for name in settable_parameters(metric)
    )
    y, scores, groups = ranked_data(binary=False)
    values = metrics.evaluate_rankings(
        y,
        scores,
        groups=groups,
        metrics=metric,
        return_per_query=True,
        **parameters,
    )
    queries = Queries.from_groups(groups)
    ranking = Ranking.from_scores(scores, queries)
    np.testing.assert_array_equal(loss.per_query(ranking, y), values[metric])


@pytest.mark.parametrize("loss", [losses.PD("graded"), losses.PDByScores("graded")], ids=repr)
def test_losses_of_pairs_measure_the_agreement(loss):
    y, scores, groups = ranked_data(binary=False)
    queries = Queries.from_groups(groups)
    found = loss.per_query(Ranking.from_scores(scores, queries), y)
    disagreement = per_query(
        "pairwise_disagreement", y, scores, groups=groups, pair_weight="graded"
    )
    np.testing.assert_array_equal(found, 1 - disagreement)
    np.testing.assert_array_equal(np.isnan(found), ~loss.defined(y, queries))


def test_losses_without_a_metric_of_their_name_are_the_only_ones_left_out():
    left_out = {"choice", "pd", "pd_by_scores", "positional"}
    assert set(losses.LOSSES) - set(OF_LOSSES) == left_out


def test_attributes_of_the_measures():
    taking = {name for name, kind in MEASURES.items() if kind.takes_preferences}
    assert taking == {"kendall_tau", "pairwise_disagreement"}
    assert not MEASURES["pairwise_disagreement"].greater_is_better
    assert {name for name, kind in MEASURES.items() if not kind.greater_is_better} == {
        "pairwise_disagreement"
    }


# ---------------------------------------------------------------- the size of blocks

MANY = Queries(np.append(0, np.cumsum([3, 300, 3, 280, 300, 120] * 4)))
MEBIBYTE = 2**20


def places_of(blocks):
    return sorted(place for inside, valid in blocks for place in inside[valid].tolist())


def largest_block(blocks, pair_bytes=8):
    """Return the bytes of the largest array (queries, width, width) and its number of queries."""
    return max((pair_bytes * len(inside) * inside.shape[1] ** 2, len(inside)) for inside in blocks)


@pytest.mark.parametrize("working_memory", [1, 2, 1024])
def test_blocks_of_pairs_are_bounded_by_working_memory(working_memory):
    limit = min(working_memory, 16) * MEBIBYTE
    with sklearn.config_context(working_memory=working_memory):
        padded, equal = list(MANY.pair_blocks()), list(MANY.equal_pair_blocks())
        wide = list(MANY.pair_blocks(pair_bytes=32))
    # together the blocks have every place once
    every = list(range(MANY.n_rows))
    assert places_of(padded) == places_of(wide) == every
    assert sorted(np.concatenate([inside.ravel() for inside in equal]).tolist()) == every
    for blocks, pair_bytes in (
        ([inside for inside, _ in padded], 8),
        (equal, 8),
        ([inside for inside, _ in wide], 32),
    ):
        size, n_queries = largest_block(blocks, pair_bytes)
        assert size <= limit or n_queries == 1  # a query is never cut
    # the bound is used: twice as much would not fit
    assert largest_block([inside for inside, _ in padded])[0] > limit / 2 or working_memory > 1


def test_a_block_has_at_most_block_bytes_where_it_is_given():
    blocks = [inside for inside, _ in MANY.pair_blocks(8, MEBIBYTE)]
    size, n_queries = largest_block(blocks)
    assert size <= MEBIBYTE or n_queries == 1
    assert places_of(MANY.pair_blocks(8, MEBIBYTE)) == list(range(MANY.n_rows))
    # a query of more bytes than that is a block by itself
    assert {len(inside) for inside, _ in MANY.pair_blocks(8, 1)} == {1}


@pytest.mark.parametrize("space", ["pairs", "symmetric_pairs"])
def test_targets_do_not_depend_on_working_memory(space):
    y = np.random.RandomState(5).randint(0, 2, MANY.n_rows).astype(float)
    loss = losses.PD() if space == "pairs" else losses.MAP(shrinkage=0)
    results = []
    for working_memory in (1, 1024):
        with sklearn.config_context(working_memory=working_memory):
            targets = loss.encode(y, MANY)
            assert isinstance(targets, PairTargets) and targets.space == space
            values = (targets.row_sums(), targets.diagonal(), targets.flat(), targets.largest())
            # the general methods of the base class run over blocks as well
            general = (PairTargets.row_sums(targets), PairTargets.diagonal(targets))
            results.append((*values, *general))
    for small, large in zip(*results, strict=True):
        np.testing.assert_array_equal(small, large)


def test_weights_by_a_function_do_not_depend_on_working_memory():
    y = np.random.RandomState(6).randint(0, 4, MANY.n_rows).astype(float)
    measure = MEASURES["pairwise_disagreement"](pair_weight=np.sqrt)
    ranking = Ranking.from_scores(-y + np.arange(MANY.n_rows) % 7, MANY)
    found = []
    for working_memory in (1, 1024):
        with sklearn.config_context(working_memory=working_memory):
            found.append(measure.per_query(ranking, y))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)
