"""Models of preferences that predict differences of scores are decoded by a sort."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker
from sklearn_rankcal.datasets import make_label_ranking
from sklearn_rankcal.decoders import DECODERS, PreferenceDecoder, Rules, Sort
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairwiseRidge, ResidualPairModel
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._predict import predicted_pairs, scores_to_sort_by  # before a decoder
from sklearn_rankcal.targets import PAIRS

RNG = np.random.default_rng(0)
G = np.repeat(np.arange(30), RNG.integers(1, 9, 30))
# Whole numbers, so that documents can tie, and so that sums have no rounding errors.
X = RNG.integers(0, 3, size=(len(G), 3)).astype(float)
Y = RNG.integers(0, 3, size=len(G)).astype(float)
SCORED = [
    PairwiseRidge(),
    Ridge(),
    LinearRegression(),
    ResidualPairModel(DocumentModel(Ridge()), PairwiseRidge()),
    ResidualPairModel(DocumentModel(Ridge()), BilinearPairs(alpha=1e30)),
]


def decoded_by_pairs(ranker, X, queries):
    """The positions that the decoder finds from the predictions of all pairs.

    Documents with equal features, which only rounding separates, are in the order of the rows.
    """
    ranks = np.empty(queries.n_rows, dtype=np.int64)
    for rows, part, u in predicted_pairs(ranker, X, queries):
        ranks[rows] = ranker.decoder_.decode(u, part).ranks
    for query in np.unique(queries.codes):
        for row in np.unique(X[queries.codes == query], axis=0):
            twins = np.flatnonzero((queries.codes == query) & (X == row).all(axis=1))
            ranks[twins] = np.sort(ranks[twins])
    return ranks


@pytest.mark.parametrize("model", SCORED, ids=repr)
def test_scores_explain_the_predictions(model):
    ranker = CalibratedRanker(model, loss="pd").fit(X, Y, groups=G)
    if isinstance(model, ResidualPairModel) and isinstance(model.pairs, BilinearPairs):
        ranker.model_.pairs_.matrix_[:] = 0.0  # what the penalty leaves of it is not exactly 0
    queries = Queries.from_groups(G)
    scores = scores_to_sort_by(ranker, X, queries)
    for q, matrix in enumerate(ranker.predict_preferences(X, groups=G)):
        own = scores[G == q]
        np.testing.assert_allclose(matrix, own[:, None] - own, atol=1e-9)


@pytest.mark.parametrize(
    "decoder",
    [make() for (space, _), make in DECODERS.items() if space == PAIRS],
    ids=repr,
)
@pytest.mark.parametrize("model", [PairwiseRidge(), Ridge()], ids=repr)
def test_a_sort_gives_the_positions_of_every_decoder(model, decoder):
    ranker = CalibratedRanker(model, loss="pd", decoder=decoder).fit(X, Y, groups=G)
    weights = np.array([4.0, 2.0, 1.0])  # exact scores, among which are ties
    if isinstance(model, Ridge):
        ranker.model_.regressor_.coef_ = np.concatenate([weights, -weights])
    else:
        ranker.model_.coef_ = weights
    wanted = decoded_by_pairs(ranker, X, Queries.from_groups(G))
    np.testing.assert_array_equal(ranker.predict(X, groups=G), wanted)
    assert len(np.unique(X @ weights)) < 27 < len(X)  # some documents tie


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=5),
        make_pipeline(StandardScaler(), Ridge()),
        BilinearPairs(),
        ResidualPairModel(DocumentModel(Ridge())),
    ],
    ids=repr,
)
def test_other_models_need_the_decoder(model):
    ranker = CalibratedRanker(model, loss="pd").fit(X, Y, groups=G)
    queries = Queries.from_groups(G)
    assert scores_to_sort_by(ranker, X, queries) is None
    np.testing.assert_array_equal(ranker.predict(X, groups=G), decoded_by_pairs(ranker, X, queries))


def test_a_decoder_of_the_user_gets_the_pairs():
    class Reversed(BaseEstimator):
        space = PAIRS

        def decode(self, u, queries, tie_breakers=None, n_jobs=None):
            return PreferenceDecoder("borda").decode(-u, queries, tie_breakers, n_jobs)

    plain = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, Y, groups=G)
    turned = CalibratedRanker(PairwiseRidge(), loss="pd", decoder=Reversed()).fit(X, Y, groups=G)
    assert (turned.predict(X, groups=G) != plain.predict(X, groups=G)).any()


class Turned(PreferenceDecoder):
    """A decoder of this package with another `decode`."""

    def decode(self, u, queries, tie_breakers=None, n_jobs=None, rules=None):
        return super().decode(-u, queries, tie_breakers, n_jobs, rules)


class TurnedMatrices(PreferenceDecoder):
    """A decoder of this package with another step of `decode`."""

    def _decode(self, matrices, options):
        return super()._decode(-matrices, options)


@pytest.mark.parametrize("kind", [Turned, TurnedMatrices])
def test_a_decoder_that_overrides_decode_is_used(kind):
    table = np.random.default_rng(1).normal(size=(len(G), 3))  # no ties
    for model in (PairwiseRidge(), Ridge()):
        plain = CalibratedRanker(model, loss="pd", decoder="greedy_dag").fit(table, Y, groups=G)
        decoder = kind("greedy_dag")
        turned = CalibratedRanker(model, loss="pd", decoder=decoder).fit(table, Y, groups=G)
        sizes = Queries.from_groups(G).repeat(np.bincount(G))
        ranks = turned.predict(table, groups=G)
        np.testing.assert_array_equal(ranks, sizes + 1 - plain.predict(table, groups=G))
    data = make_label_ranking(80, 5, random_state=0)
    plain = CalibratedLabelRanker(decoder="greedy_dag", random_state=0).fit(data.X, data.Y)
    turned = CalibratedLabelRanker(decoder=kind("greedy_dag"), random_state=0).fit(data.X, data.Y)
    for ranker in (plain, turned):
        ranker.cyclic_weight_ = 0.0
    np.testing.assert_array_equal(turned.predict(data.X), 6 - plain.predict(data.X))


def test_rules_refuse_a_decoder_of_scores_that_they_would_ignore():
    class Last(Sort):
        def decode(self, u, queries, tie_breakers=None):
            return super().decode(-u, queries, tie_breakers)

    ranker = CalibratedRanker(Ridge(), decoder=Last()).fit(X, Y, groups=G)
    assert (ranker.predict(X, groups=G) != CalibratedRanker(Ridge()).fit(X, Y, groups=G).predict(
        X, groups=G)).any()  # fmt: skip
    with pytest.raises(TypeError, match="Last does not support rules"):
        ranker.predict(X, groups=G, rules=Rules(blocked=X[:, 0] > 1))


def test_ten_thousand_documents_in_a_query():
    table = RNG.normal(size=(10_000, 20))
    ranker = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, Y, groups=G)
    ranker = ranker.fit(table[:500], table[:500, 0].round(), groups=np.arange(500) // 10)
    ranks = ranker.predict(table, groups=np.zeros(10_000))
    assert sorted(ranks) == list(range(1, 10_001))
    assert (np.diff((table @ ranker.coef_)[np.argsort(ranks)]) <= 1e-12).all()


def test_label_rankings_whose_cyclic_part_is_noise():
    data = make_label_ranking(80, 7, random_state=0)
    ranker = CalibratedLabelRanker(random_state=0).fit(data.X, data.Y)
    ranker.cyclic_weight_ = 0.0
    ranks, u = ranker.predict(data.X), ranker.predict_preferences(data.X)
    np.testing.assert_array_equal(ranks, np.argsort(np.argsort(-u.sum(axis=2))) + 1)
