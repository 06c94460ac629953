"""`check_loss` and `check_surrogate` find each kind of broken promise.

test_losses.py and test_surrogates.py check the registered ones.
"""

import numpy as np
import pytest

from sklearn_rankcal import BoostedRanker, LinearRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.estimator_checks import check_loss, check_surrogate
from sklearn_rankcal.losses import DCG, MAP, PD, MAPByScores
from sklearn_rankcal.queries import Ranking
from sklearn_rankcal.surrogates import Cosine, DifferenceGraph, PointwiseSquared, Softmax


class TooSmallAConstant(DCG):
    def regret_constant(self, n_documents):
        return 0.3 * super().regret_constant(n_documents)


class TiesInRowOrder(DCG):
    def per_query(self, ranking, labels):
        return super().per_query(Ranking(ranking.queries, ranking.order), labels)


class TiesAtTheirWorst(DCG):
    def per_query(self, ranking, labels):
        return super().per_query(ranking.break_ties(labels), labels)


class TargetsOfNeighbours(DCG):
    def encode(self, relevance, queries):
        return super().encode(relevance, queries) * queries.n_queries


class ValuesOfNeighbours(DCG):
    def calibrated_measure(self, ranking, labels):
        return super().calibrated_measure(ranking, labels) * ranking.queries.n_queries


class DefinedEverywhere(MAPByScores):
    def defined(self, relevance, queries):
        return np.ones(queries.n_queries, dtype=bool)


class UpsideDown(PD):
    def encode(self, relevance, queries):
        return super().encode(-relevance, queries)


class ClaimsEveryDistribution(MAPByScores):
    calibrated_everywhere = True


class OneTargetMissing(DCG):
    def encode(self, relevance, queries):
        return super().encode(relevance, queries)[1:]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (TooSmallAConstant(), "exceeds the bound"),
        (TiesInRowOrder(), "Not equal to tolerance"),
        (TiesAtTheirWorst(), "scores="),
        (TargetsOfNeighbours(), "Not equal to tolerance"),
        (ValuesOfNeighbours(), "Not equal to tolerance"),
        (DefinedEverywhere(), "measure is NaN where not defined"),
        (UpsideDown(), "is not calibrated: .* decoding gives"),
        (ClaimsEveryDistribution(), "is not calibrated: .* sorting gives"),
        (OneTargetMissing(), "one target per row"),
    ],
)
def test_check_loss_finds_a_broken_promise(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss, n_documents=(3, 4))


def test_check_loss_works_in_blocks(monkeypatch):
    """The distributions are drawn and checked in blocks that may be as small as one."""
    monkeypatch.setattr("sklearn_rankcal.utils._memory.BLOCK_BYTES", 1)
    for loss in (DCG(), MAP(), PD()):
        check_loss(loss, n_documents=(1, 3), n_distributions=20)
    with pytest.raises(AssertionError, match="not calibrated"):
        check_loss(UpsideDown(), n_documents=(3,))


class Changed(Softmax):
    """Softmax with an error in one of its results."""

    theorem = "none"

    def __init__(self, **changes):
        super().__init__()

    def _evaluate(self, v, s, queries, derivatives, n_jobs):
        found = super()._evaluate(v, s, queries, derivatives, n_jobs)
        return found._replace(**{name: f(found, queries) for name, f in self.changes.items()})


def changed(attributes=(), **changes):
    return type("Changed", (Changed,), {"changes": changes, **dict(attributes)})()


@pytest.mark.parametrize(
    ("surrogate", "message"),
    [
        (changed(gradient=lambda f, _: -f.gradient), "gradient is not the derivative"),
        (changed(curvature=lambda f, _: 2 * f.curvature), "curvature is not the derivative"),
        (changed(curvature=lambda f, q: f.curvature[:1] + 0 * f.curvature), "curvature is not"),
        (changed(value=lambda f, q: f.value * q.n_queries), "gradient is not the derivative"),
        (changed(value=lambda f, q: f.value + q.n_queries), "depends on other queries"),
        (changed({"scale_invariant": True}), "is not scale_invariant"),
        (type("Tilted", (PointwiseSquared,), {"shift_invariant": True})(), "not shift_invariant"),
        (type("Bent", (Cosine,), {"convex": True})(), "is not convex"),
        (type("Bent", (DifferenceGraph,), {"affine": True})(), "is not affine"),
        (
            type("High", (PointwiseSquared,), {"_minimizer": lambda self, u, q: u + 0.1})(),
            "does not minimise",
        ),
        (changed({"theorem": ""}), "theorem must say"),
    ],
)
def test_check_surrogate_finds_a_broken_promise(surrogate, message):
    with pytest.raises(AssertionError, match=message):
        check_surrogate(surrogate)


def test_a_surrogate_without_derivatives():
    pytest.importorskip("lightgbm")
    data = make_ranking(n_queries=60, random_state=0)
    by = {"groups": data.groups}
    flat = changed(curvature=lambda f, q: None)
    check_surrogate(flat)
    for ranker in (LinearRanker(flat), BoostedRanker(flat, random_state=0)):
        assert ranker.fit(data.X, data.y, **by).score(data.X, data.y, **by) > 0.8
        with pytest.raises(NotImplementedError, match=r"gradient. Test .*check_surrogate"):
            ranker.set_params(surrogate=changed(gradient=lambda f, q: None)).fit(
                data.X, data.y, **by
            )
