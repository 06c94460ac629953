"""How often intervals of conditional logit contain the coefficient, with and without persons.

Four alternatives have a price, a feature that three in ten have, and noise (world "attributes"), or
a price, two constants and an attribute of the person times an alternative (world "constants"). Each
person has own tastes, with a standard deviation of .5 or 1. The coefficient is that of a fit to
200,000 choices of 40,000 persons. Run ``python bench_choice_errors.py [n_repetitions]``.
"""

import sys

import numpy as np

from sklearn_rankcal import LinearRanker

SIZE = 4


def make_choices(random, persons, n, world, spread, unequal):
    """Return X (n, 4, n_columns), the chosen alternatives, and the person of each choice."""
    share = 1 / np.arange(1, persons + 1) if unequal else np.ones(persons)
    person = np.arange(n) % persons
    if unequal:
        person = random.choice(persons, n, p=share / share.sum())
    X = random.normal(size=(n, SIZE, 3 if world == "attributes" else 4))
    if world == "attributes":
        X[:, :, 1] = random.uniform(size=(n, SIZE)) < 0.3
        mean, own = np.array([-0.8, 0.7, 0.0]), [True] * 3
    else:
        X[:, :, 1:] = 0
        X[:, 0, 1] = X[:, 1, 2] = 1
        X[:, 0, 3] = random.normal(size=persons)[person]
        mean, own = np.array([-0.8, 0.5, -0.3, 0.4]), [True, True, True, False]
    tastes = mean + spread * np.array(own) * random.normal(size=(persons, len(mean)))
    utility = (X * tastes[person][:, None]).sum(axis=2) + random.gumbel(size=(n, SIZE))
    return X, utility.argmax(axis=1), person


def summarise(X, chosen, person):
    n, _, n_columns = X.shape
    y = (np.arange(SIZE) == chosen[:, None]).ravel().astype(int)
    groups = np.repeat(np.arange(n), SIZE)
    clusters = None if person is None else np.repeat(person, SIZE)
    ranker = LinearRanker("softmax", alpha=0)
    return ranker.fit(X.reshape(-1, n_columns), y, groups=groups, clusters=clusters).summary()


def coverage(persons, n, world, spread, unequal, n_repetitions, seed):
    """Return the share of intervals with the coefficient, and the number of separated samples."""
    random = np.random.default_rng(seed)
    X, chosen, _ = make_choices(random, 40_000, 200_000, world, spread, False)
    truth, hits, separated = summarise(X, chosen, None).coef, [], 0
    for _ in range(n_repetitions):
        X, chosen, person = make_choices(random, persons or n, n, world, spread, unequal)
        try:
            table = summarise(X, chosen, person if persons else None).table
        except ValueError:
            separated += 1
            continue
        hits.append((table["low"] <= truth) & (truth <= table["high"]))
    return np.mean(hits, axis=0), separated


if __name__ == "__main__":
    n_repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    for persons in (None, 5, 10, 30):
        for n in (50, 100, 300, 1000):
            found, separated = [], 0
            for world in ("attributes", "constants"):
                for spread in (0.5, 1.0) if persons else (0.0,):
                    for unequal in (False, True) if persons else (False,):
                        case = (persons, n, world, spread, unequal)
                        shares, none = coverage(*case, n_repetitions, n + (persons or 0))
                        found += shares.tolist()
                        separated += none
            print(
                f"persons {persons}, {n} choices: mean {np.mean(found):.3f}, smallest of "
                f"{len(found)} {min(found):.3f}, separated {separated}",
                flush=True,
            )
