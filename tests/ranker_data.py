"""Graded documents of 60 queries, for the tests of rankers."""

from sklearn_rankcal.datasets import make_ranking

DATA = make_ranking(60, (3, 12), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
