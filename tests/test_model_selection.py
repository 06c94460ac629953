"""QueryKFold keeps queries whole and puts equally many into every fold."""

import numpy as np
import pytest

from sklearn_rankcal import QueryKFold, relevance_labels

RNG = np.random.default_rng(0)
GROUPS = RNG.integers(0, 23, size=300)
X, Y = np.zeros((300, 1)), RNG.integers(0, 3, size=300)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("how", ["groups", "labels"])
def test_folds_partition_the_queries_evenly(how, shuffle):
    splitter = QueryKFold(4, shuffle=shuffle, random_state=0 if shuffle else None)
    arguments = (X, Y, GROUPS) if how == "groups" else (X, relevance_labels(Y, GROUPS))
    seen, counts = [], []
    for train, test in splitter.split(*arguments):
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert len(train) + len(test) == 300
        seen.extend(test.tolist())
        counts.append(len(set(GROUPS[test])))
    assert sorted(seen) == list(range(300))
    assert max(counts) - min(counts) <= 1
    assert splitter.get_n_splits() == 4


def test_shuffle_is_seeded_and_shuffles():
    def folds(seed, shuffle=True):
        splitter = QueryKFold(3, shuffle=shuffle, random_state=seed)
        return [test.tolist() for _, test in splitter.split(X, Y, GROUPS)]

    assert folds(1) == folds(1) != folds(2)
    assert repr(QueryKFold(3)) == "QueryKFold(n_splits=3, random_state=None, shuffle=False)"


@pytest.mark.parametrize(
    ("splitter", "groups", "message"),
    [
        (QueryKFold(), None, "needs the query of each row"),
        (QueryKFold(1), GROUPS, "whole number >= 2; got 1"),
        (QueryKFold(2.5), GROUPS, "whole number"),
        (QueryKFold(24), GROUPS, "n_splits=24 is greater than the number of queries, 23"),
        (QueryKFold(), GROUPS[:-1], "groups has 299 entries"),
    ],
)
def test_bad_input(splitter, groups, message):
    with pytest.raises(ValueError, match=message):
        list(splitter.split(X, Y, groups))
