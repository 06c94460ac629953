"""A user's script with one mistake in each marked line, which mypy reports (tests/test_types.py).

It is never run.
"""

from sklearn_rankcal import CalibratedRanker, Judgements, LinearRanker, aggregate
from sklearn_rankcal.metrics import compare_rankings, ndcg_score

X, y, groups = [[0.0], [1.0]], [0, 1], ["a", "a"]
ranker = CalibratedRanker().fit(X, y, groups=groups)

CalibratedRanker(losses="ndcg")  # mistake: call-arg
CalibratedRanker().fit(X, y, group=groups)  # mistake: call-arg
LinearRanker().partial_fit(X, y, qid=groups)  # mistake: call-arg
ranker.predict(X, query=groups)  # mistake: call-arg
ranker.decision_function(X, group=groups)  # mistake: call-arg
ranker.predict_order(X, groups, top=3)  # mistake: call-arg
print(ranker.predict_order(X, groups).row)  # mistake: attr-defined
ndcg_score(y, [1.0, 2.0], group=groups)  # mistake: call-arg
print(compare_rankings(y, y, y).lower)  # mistake: attr-defined
print(compare_rankings(y, y, y, metric=["map"]).low)  # mistake: attr-defined
aggregate([("a", "b")], intervall="robust")  # mistake: call-arg
print(aggregate([("a", "b")]).score)  # mistake: attr-defined
Judgements.from_pair([("a", "b")])  # mistake: attr-defined
name: str = ranker.predict(X, groups)  # mistake: assignment
