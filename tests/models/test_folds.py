"""Folds of whole queries, which depend on the contents of the queries alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sklearn_rankcal.models._held_out import query_folds  # folds, which models share
from sklearn_rankcal.queries import Queries

X = np.random.default_rng(0).normal(size=(160, 6))


def permuted(table, order):
    """Reorder queries of four documents."""
    return table.reshape(len(order), 4, -1)[order].reshape(table.shape)


def test_queries_with_equal_documents_share_a_fold():
    """The second copy of a query is not held out from models that saw the first."""
    table, rng = X, np.random.default_rng(0)
    folds = query_folds(np.vstack([table, table]), Queries.uniform(80, 4), 5)
    np.testing.assert_array_equal(folds[:40], folds[40:])
    assert np.bincount(folds).tolist() == [16] * 5
    copies = rng.integers(1, 4, size=40)  # sizes of different folds are still similar
    table = np.repeat(table.reshape(40, 4, -1), copies, axis=0).reshape(-1, X.shape[1])
    folds = query_folds(table, Queries.uniform(int(copies.sum()), 4), 5)
    assert np.ptp(np.bincount(folds)) <= 3
    which = np.repeat(np.arange(40), copies)
    assert all(len(set(folds[which == number])) == 1 for number in range(40))


@pytest.mark.parametrize("n_queries", [5, 6, 9, 21])
def test_no_fold_is_empty_if_many_queries_have_equal_documents(n_queries):
    """Labels of the same documents differ; the order of the queries does not matter."""
    rng = np.random.default_rng(0)
    labels = rng.normal(size=4 * n_queries)
    for distinct in (1, 2, 3):
        kind = np.arange(n_queries) % distinct
        table = np.concatenate([X[4 * k : 4 * k + 4] for k in kind])
        queries, order = Queries.uniform(n_queries, 4), rng.permutation(n_queries)
        folds = query_folds(table, queries, 5, labels)
        assert np.bincount(folds, minlength=5).min() >= 1
        again = query_folds(permuted(table, order), queries, 5, permuted(labels, order))
        np.testing.assert_array_equal(again, folds[order])


def test_queries_with_equal_documents_are_told_apart_by_their_labels():
    """The order of the queries does not matter."""
    queries, order = Queries.uniform(10, 4), np.random.default_rng(0).permutation(10)
    table = np.tile(X[:4], (10, 1))
    one, other = (
        query_folds(table, queries, 5, np.repeat(numbers, 4).astype(float))
        for numbers in (np.arange(10), order)
    )
    np.testing.assert_array_equal(other, one[order])


def test_folds_look_at_later_columns_if_the_first_are_equal():
    queries, order = Queries.uniform(40, 4), np.random.default_rng(0).permutation(40)
    table = np.hstack([np.zeros((160, 9)), X])
    folds = query_folds(table, queries, 5)
    np.testing.assert_array_equal(query_folds(permuted(table, order), queries, 5), folds[order])
    assert np.bincount(folds).tolist() == [8] * 5


def test_folds_are_the_same_for_all_containers():
    table = np.hstack([X, X**2])  # more columns than the first hash reads
    queries = Queries.uniform(40, 4)
    folds = query_folds(table, queries, 5)
    for other in (pd.DataFrame(table), sparse.csr_matrix(table)):
        np.testing.assert_array_equal(query_folds(other, queries, 5), folds)
