"""Distributions of single preferences, and all rankings of a few documents."""

import numpy as np

from sklearn_rankcal.consistency import LabelDistribution

from . import oracles


def single_edges(chances, r=3):
    labels = np.zeros((len(chances), r, r))
    for k, (i, j) in enumerate(chances):
        labels[k, i, j] = 1
    return LabelDistribution(labels, list(chances.values()))


def every_order(r):
    orders = oracles.all_orders(r)
    return orders, np.array([oracles.ranks_of(order) for order in orders])
