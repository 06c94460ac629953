"""`check_loss` finds each kind of broken promise. test_losses.py checks the registered losses."""

import numpy as np
import pytest

from sklearn_rankcal.estimator_checks import check_loss
from sklearn_rankcal.losses import DCG, MAP, PD, MAPByScores
from sklearn_rankcal.queries import Ranking


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
