"""Losses: formulas, calibration, bounds and bad input. The registry is the parametrisation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, preference_labels
from sklearn_rankcal.estimator_checks import check_loss
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import (
    AUC,
    DCG,
    ERR,
    ERU,
    LOSSES,
    MAP,
    NDCG,
    PD,
    Choice,
    Loss,
    MAPByScores,
    PDByScores,
    Positional,
    Precision,
    Recall,
    Spearman,
    get_loss,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets

from .. import oracles

EXAMPLES = {
    "precision": Precision(2),
    "eru": ERU(0.5, 3),
    "dcg": DCG(2),
    "ndcg": NDCG(3),
    "recall": Recall(2),
    "auc": AUC(),
    "spearman": Spearman(),
    "choice": Choice(),
    "err": ERR(3),
    "map": MAP(shrinkage=0),
    "map_by_scores": MAPByScores(),
    "pd": PD("graded"),
    "pd_by_scores": PDByScores("graded", equal_queries=True),
    "positional": Positional(lambda y, queries: np.sqrt(y), [1.0, 0.5, 0.5]),
}
ORACLES = {
    "precision": (lambda y, o: oracles.precision(y, o, 2)),
    "eru": (lambda y, o: oracles.eru(y, o, 0.5, 3)),
    "dcg": (lambda y, o: oracles.dcg(y, o, 2)),
    "ndcg": (lambda y, o: oracles.ndcg(y, o, 3)),
    "recall": (lambda y, o: oracles.recall(y, o, 2)),
    "auc": oracles.auc,
    "spearman": oracles.spearman,
    "choice": oracles.choice,
    "err": (lambda y, o: oracles.err(y, o, 3, top=1 if max(y) <= 1 else 3)),
    "map": oracles.average_precision,
    "map_by_scores": oracles.average_precision,
    "pd": (lambda y, o: 1 - oracles.disagreement(y, o, pair_weight="graded")),
    "pd_by_scores": (lambda y, o: 1 - oracles.disagreement(y, o, pair_weight="graded")),
    "positional": (
        lambda y, o: sum(np.sqrt(y[d]) * w for d, w in zip(o, [1.0, 0.5, 0.5], strict=False))
    ),
}


def test_every_registered_loss_has_an_example():
    assert set(EXAMPLES) == set(LOSSES) == set(ORACLES)


@pytest.mark.parametrize("name", LOSSES)
def test_registered_default_passes_check_loss(name):
    check_loss(LOSSES[name](), n_distributions=60)


@pytest.mark.parametrize("name", LOSSES)
def test_example_passes_check_loss(name):
    check_loss(EXAMPLES[name], n_documents=(1, 2, 3, 5), n_distributions=60, random_state=1)


@pytest.mark.parametrize("threshold", [1, 2.5])
@pytest.mark.parametrize("kind", [Precision, Recall, AUC, MAPByScores])
def test_threshold_makes_graded_labels_binary(kind, threshold):
    check_loss(kind(threshold=threshold), levels=(0, 1, 2, 3), n_distributions=30)
    y, queries = np.array([0, 1, 2, 3.0]), Queries.single(4)
    np.testing.assert_array_equal(
        kind(threshold=threshold).encode(y, queries),
        kind().encode((y >= threshold).astype(float), queries),
    )


@pytest.mark.parametrize("name", LOSSES)
def test_the_measure_equals_its_formula_written_out(name):
    random = np.random.RandomState(0)
    loss, oracle = EXAMPLES[name], ORACLES[name]
    for r in (1, 2, 3, 4):
        for _ in range(10):
            y = random.randint(0, 2, size=r).astype(float)
            y[0] = max(y[0], 1.0) if name == "err" else y[0]
            for order in oracles.all_orders(r):
                ranks = np.array(oracles.ranks_of(order))
                got = loss.metric(y, ranks, Queries.single(r))[0]
                np.testing.assert_allclose(got, oracle(y.tolist(), order), atol=1e-12)


def test_targets_of_small_queries_by_hand():
    y, queries = np.array([3, 0, 1, 1.0]), Queries.from_groups(["a", "a", "a", "b"])
    z = 7 + 1 / np.log2(3)
    np.testing.assert_allclose(NDCG().encode(y, queries), [7 / z, 0, 1 / z, 1])
    np.testing.assert_allclose(NDCG(1).encode(y, queries), [1, 0, 1 / 7, 1])
    np.testing.assert_allclose(DCG(gain="linear").encode(y, queries), y)
    np.testing.assert_allclose(ERU(1).encode(y, queries), [2, 0, 0, 0])
    np.testing.assert_allclose(ERR(max_relevance=4).encode(y, queries), [7 / 16, 0, 1 / 16, 1 / 16])
    b = (y > 0).astype(float)
    np.testing.assert_allclose(Recall().encode(b, queries), [1 / 2, 0, 1 / 2, 1])
    np.testing.assert_allclose(MAPByScores().encode(b, queries), [1 / 2, 0, 1 / 2, 1])
    np.testing.assert_allclose(AUC().encode(b, queries), [1 / 2, 0, 1 / 2, 0])
    sd = np.sqrt(2 / 3)
    np.testing.assert_allclose(Spearman().encode(y, queries), [1 / sd, -1 / sd, 0, 0])


@pytest.mark.parametrize("kind", [NDCG, Recall, AUC, MAPByScores])
def test_shrinkage_tends_to_the_calibrated_targets(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=4000).astype(float)
    few, many = Queries.from_groups(np.arange(40) // 8), Queries.from_groups(np.arange(4000) // 8)
    loss = kind()
    np.testing.assert_array_equal(kind(shrinkage=0).training_targets(y, many), loss.encode(y, many))
    equal = kind(shrinkage=1).training_targets(y, many)
    assert len(np.unique(equal[equal > 0].round(12))) == 1

    def distance(labels, queries):
        exact = loss.encode(labels, queries)
        moved = loss.training_targets(labels, queries) - exact
        return np.linalg.norm(moved) / np.linalg.norm(exact)

    assert distance(y, many) < 0.7 * distance(y[:40], few)
    # Shrinkage changes the training targets, and does not change the measure.
    ranks = many.rank(many.sort(rng.normal(size=4000)))
    np.testing.assert_array_equal(
        kind(shrinkage=1).metric(y, ranks, many), loss.metric(y, ranks, many)
    )
    with pytest.raises(ValueError, match=r"'auto' or a number in \[0, 1\]; got 2"):
        kind(shrinkage=2).check(y)
    with pytest.raises(ValueError, match="shrinkage must be 'auto'"):
        kind(shrinkage="none").check(y)


# -------------------------------------------------------------------- what check_loss refuses


class _Unnormalised(NDCG):
    """NDCG with the targets of DCG, as in a regression on gains."""

    def encode(self, relevance, queries):
        return self.gains(relevance)


class _Increasing(DCG):
    def discounts(self, n_places):
        return np.arange(n_places, dtype=float)


class _Undefined(DCG):
    def encode(self, relevance, queries):
        return super().encode(relevance, queries) / queries.broadcast(queries.max(relevance))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (_Unnormalised(), "not calibrated"),
        (_Increasing(), "not calibrated"),
        (_Undefined(), "finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the broken loss divides by 0
def test_check_loss_catches_a_wrong_loss(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss, n_documents=(3,), n_distributions=500)


# -------------------------------------------------------------------- names and input


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ndcg", NDCG()),
        ("ndcg@10", NDCG(10)),
        ("dcg@3", DCG(3)),
        ("precision@5", Precision(5)),
        ("wta", Precision(1)),
        ("recall@7", Recall(7)),
        ("err@20", ERR(20)),
        ("eru", ERU()),
        ("auc", AUC()),
        ("spearman", Spearman()),
        ("map_by_scores", MAPByScores()),
        ("positional", Positional()),
    ],
)
def test_names(name, wanted):
    loss = get_loss(name)
    assert type(loss) is type(wanted) and loss.get_params() == wanted.get_params()


ONE_PAIR = Preferences.from_pairs(np.array([0]), np.array([1]), np.ones(1), Queries.single(2))


@pytest.mark.parametrize("h", ["binary", "graded"])
@pytest.mark.parametrize("f", ["borda", "row_sums", "copeland"])
def test_targets_of_a_query_do_not_depend_on_the_size_of_its_neighbours(h, f):
    """One query is scaled by 2^60 and one is moved by 2^48: only the first changes its targets."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 50, size=(6, 5)).astype(float)
    loss = PDByScores(h, score_function=f)
    alone = loss.encode(y.ravel(), Queries.uniform(6, 5)).reshape(6, 5)
    scaled = y.copy()
    scaled[0] *= 2.0**60
    scaled[3] += 2.0**48
    got = loss.encode(scaled.ravel(), Queries.uniform(6, 5)).reshape(6, 5)
    np.testing.assert_array_equal(got[1:], alone[1:])


@pytest.mark.parametrize("h", ["binary", "graded"])
def test_weighted_row_sums_do_not_depend_on_the_weights_of_other_queries(h):
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=20), rng.random(20)
    queries = Queries.uniform(4, 5)
    alone = PD(h).differences(y, queries).row_sums(weight)
    weight[:5] *= 1e17
    got = PD(h).differences(y, queries).row_sums(weight)
    np.testing.assert_array_equal(got[5:], alone[5:])


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: get_loss("nope"), ValueError, "Unknown loss 'nope'. Known: auc, choice, dcg"),
        (lambda: get_loss("ndgc"), ValueError, r"Did you mean 'ndcg'\? Known"),
        (lambda: get_loss("mrr"), ValueError, "no 'mrr' here; the nearest is 'err'"),
        (lambda: get_loss("MRR@10"), ValueError, "the nearest is 'err@10'"),
        (lambda: get_loss("kendall_tau"), ValueError, "the nearest is 'pd'"),
        (
            lambda: get_loss("ndcg@10", threshold=1),
            TypeError,
            "Loss 'ndcg@10' has no parameter 'threshold'. Its parameters: k, gain, shrinkage",
        ),
        (lambda: get_loss("spearman", k=1), TypeError, "no parameter 'k'. It has no parameters"),
        (lambda: get_loss("ndcg@10", k=5), TypeError, "contains a cutoff, but k=5 was passed"),
        (lambda: get_loss("auc@3"), ValueError, "has no cutoff"),
        (lambda: get_loss("precision"), ValueError, "needs a cutoff"),
        (lambda: get_loss("recall"), ValueError, "needs a cutoff"),
        (lambda: get_loss(3), TypeError, "must be a name, such as 'auc', or a Loss object"),
        (lambda: get_loss("ndcg", gian="exp2"), TypeError, "gian"),
        (lambda: Precision(0).check(np.ones(2)), ValueError, "whole number >= 1; got 0"),
        (lambda: Precision(None).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: Recall(None).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: Recall(True).check(np.ones(2)), ValueError, "k must be a whole number"),
        (lambda: ERU(half_life=1).check(np.ones(2)), ValueError, "half_life must be a number in"),
        (lambda: ERU(np.nan).check(np.ones(2)), ValueError, "neutral must be a finite number"),
        (lambda: AUC().check(np.array([0, 2.0])), ValueError, "threshold=t"),
        (lambda: NDCG().check(np.array([0, -2.0])), ValueError, "relevance must be >= 0"),
        (lambda: ERR().check(np.array([0, 1200.0])), ValueError, "overflows"),
        (lambda: ERR(max_relevance=-1).check(np.ones(2)), ValueError, r"in \[0, 1000\]"),
        (lambda: DCG(gain=lambda y: y[:1]).check(np.ones(2)), ValueError, "keep the shape"),
        (lambda: DCG(gain=lambda y: y * np.nan).check(np.ones(2)), ValueError, "returned NaN"),
        (
            lambda: Positional(discount=[0.1, 0.2]).check(np.ones(2)),
            ValueError,
            "must not increase",
        ),
        (
            lambda: Positional(discount=lambda j: 1.0).check(np.ones(2)),
            ValueError,
            "one value per place",
        ),
        (
            lambda: Positional(lambda y, q: y[:1]).encode(np.ones(2), Queries.single(2)),
            ValueError,
            "one finite number per document",
        ),
        (
            lambda: PDByScores(score_function="kemeny").check(np.ones(2)),
            ValueError,
            "Unknown score_function 'kemeny'",
        ),
        (lambda: PDByScores(smoothing=0).check(np.ones(2)), ValueError, "number > 0; got 0"),
        (lambda: PDByScores(smoothing="1").check(ONE_PAIR), ValueError, "number > 0; got '1'"),
        (
            lambda: PDByScores(score_function=lambda y: y).encode(ONE_PAIR, ONE_PAIR.queries),
            ValueError,
            r"per document, shape \(1, 2\); got shape \(1, 2, 2\) for weights of shape \(1, 2, 2\)",
        ),
        (
            lambda: PDByScores(score_function=lambda y: y[:, 0] / y[:, 1]).encode(
                ONE_PAIR, ONE_PAIR.queries
            ),
            ValueError,
            r"got \[nan, inf\] for the weights \[\[0.0, 1.0\], \[0.0, 0.0\]\]",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_positional_reproduces_dcg():
    y = np.array([0, 1, 3, 2.0])
    queries, ranks = Queries.single(4), np.array([2, 1, 4, 3])
    mine = Positional(lambda y, q: 2**y - 1, lambda j: 1 / np.log2(1 + j))
    assert mine.metric(y, ranks, queries) == DCG().metric(y, ranks, queries)
    default = Positional().metric(y, ranks, queries)
    assert default == DCG(gain="linear").metric(y, ranks, queries)


@pytest.mark.parametrize(
    ("loss", "half"),
    [(NDCG(), 300), (Recall(2), 1000), (AUC(), 1000), (MAPByScores(), 1000), (MAP(), 1000)],
    ids=str,
)
def test_normalizers_shrink_more_towards_their_mean_when_queries_are_few(loss, half):
    rng = np.random.default_rng(0)
    queries = Queries.uniform(100, 5)
    y = rng.integers(0, 2, size=500).astype(float)
    y[::5], y[1::5] = 0.0, 1.0

    def flat(targets):
        return targets if loss.space == "scores" else targets.flat()

    fixed = clone(loss).set_params(shrinkage=half / (half + 100))
    np.testing.assert_allclose(
        flat(loss.training_targets(y, queries)), flat(fixed.training_targets(y, queries))
    )
    np.testing.assert_array_equal(flat(loss.encode(y, queries)), flat(fixed.encode(y, queries)))


def test_normalizers_move_in_the_unit_of_the_largest_gain():
    """By hand; a query without gains keeps the normalizer 0, and does not enter the mean."""
    y = np.array([2, 0, 1, 0, 0, 10, 10, 0.0])
    queries = Queries.from_groups([0, 0, 0, 1, 1, 2, 2, 2])
    gains, d = 2.0**y - 1, 1 / np.log2(3)
    z = np.array([3 + d, 0, 1023 * (1 + d)])
    mean = ((3 + d) / 3 + 1 + d) / 2
    for loss, a in ((NDCG(shrinkage=0.25), 0.25), (NDCG(), 300 / 303), (NDCG(shrinkage=1), 1)):
        moved = (1 - a) * z + a * mean * np.array([3, 0, 1023])
        moved[1] = 1.0  # its targets are 0
        wanted = gains / np.repeat(moved, queries.sizes)
        np.testing.assert_allclose(loss.training_targets(y, queries), wanted, rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-50, 1e-20, 0.3, 1e9, 1e48])
def test_the_scale_of_gains_does_not_change_targets(factor):
    rng = np.random.default_rng(0)
    queries = Queries.uniform(30, 6)
    y = rng.integers(0, 100, size=180) * 1.0
    y[:6] = 0.0
    loss = NDCG(3, gain="linear")
    targets = loss.training_targets(y, queries)
    assert targets.max() <= 1
    assert (targets[:6] == 0).all()
    scaled = loss.training_targets(factor * y, queries)
    np.testing.assert_allclose(scaled, targets, rtol=1e-12)


def test_wide_labels_leave_targets_to_queries_with_small_gains():
    """Gains from 1 to nearly 1e50: the best documents of all queries have similar targets."""
    rng = np.random.default_rng(0)
    queries = Queries.uniform(50, 8)
    y = queries.broadcast(np.linspace(1, 166, 50)) * np.sort(rng.random(400))
    y[7::8] = np.linspace(1, 166, 50)
    for loss in (NDCG(), NDCG(5), NDCG(shrinkage=1)):
        targets = loss.training_targets(y, queries)
        best = targets.reshape(50, 8).max(axis=1)
        assert np.isfinite(targets).all()
        assert best.min() > 0.2 * best.max()
        halves = [queries.select(np.arange(50) % 2 == side) for side in (0, 1)]
        one, two = (loss.label_sums(y[rows], part) for rows, part in halves)
        for rows, part in halves:
            found = loss.targets_of_part(y[rows], part, one.plus(two))
            np.testing.assert_allclose(found, targets[rows], rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_targets_of_parts_are_those_of_the_whole(name):
    """Queries are encoded in two parts; shrinkage depends on sums over both."""
    loss = LOSSES[name]()
    rng = np.random.default_rng(0)
    queries = Queries.uniform(40, 5)
    y = rng.integers(0, 2, size=200) * 1.0
    y[:5] = 0.0  # a query without a normalizer
    loss = loss.resolve(y)
    whole = loss.training_targets(y, queries)
    in_front = np.arange(40) < 13
    parts = [queries.select(mask) for mask in (in_front, ~in_front)]
    one, two = (loss.label_sums(y[rows], part) for rows, part in parts)
    sums = one.plus(two)
    assert sums.n_queries == 40
    found = [loss.targets_of_part(y[rows], part, sums) for rows, part in parts]
    if isinstance(whole, PairTargets):
        whole, found = whole.flat(), [part.flat() for part in found]
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-12)
    if getattr(loss, "shrinkage", 0) == "auto":  # the other part matters
        alone = loss.training_targets(y[parts[0][0]], parts[0][1])
        alone = alone.flat() if isinstance(alone, PairTargets) else alone
        assert np.abs(alone - found[0]).max() > 1e-4


def test_a_loss_says_what_it_has_to_define():
    class NoMeasure(Loss):
        def encode(self, relevance, queries):
            return relevance

    class NoTargets(Loss):
        pass

    class NoSpace(NoMeasure):
        space = "scores"

    data = {"X": [[1.0], [2.0]], "y": [0, 1], "groups": [0, 0]}
    for loss, error, message in (
        (NoMeasure(), NotImplementedError, r"NoMeasure must define a method per_query\("),
        (NoTargets(), NotImplementedError, r"NoTargets must define a method encode\("),
        (NoSpace(), TypeError, "NoSpace.space must be SCORES, PAIRS or SYMMETRIC_PAIRS"),
    ):
        with pytest.raises(error, match=message):
            CalibratedRanker(Ridge(), loss=loss).fit(**data).score(**data)


def test_a_utility_of_the_labels_alone_is_refused_with_the_remedy():
    what = {"X": [[1.0], [2.0]], "y": [0, 4], "groups": [0, 0]}
    with pytest.raises(
        TypeError, match=r"utility\(relevance, queries\).*lambda relevance, queries"
    ):
        CalibratedRanker(Ridge(), loss=Positional(utility=np.sqrt)).fit(**what)
    remedy = Positional(utility=lambda relevance, queries: np.sqrt(relevance))
    assert CalibratedRanker(Ridge(), loss=remedy).fit(**what).score(**what) == 2


@pytest.mark.parametrize("loss", [NDCG(gain=np.sqrt), DCG(gain=np.sqrt), ERR(gain=np.tanh)])
def test_a_gain_of_the_user_does_not_let_preferences_pass(loss):
    labels = preference_labels([[0, 1]], [0, 0])
    with pytest.raises(ValueError, match="needs a relevance of every row"):
        CalibratedRanker(Ridge(), loss=loss).fit([[1.0], [2.0]], labels)
