"""How often the intervals of means over queries contain the true mean, where it is known.

    python -m tests.metrics.means_coverage --samples 20000

The first two lines are the smallest coverage of values of 0 and 1 over true means from .5 to .99,
enumerated. The others are simulated. In brackets is the coverage of Student's interval, and after
them the median ratio of the lengths.
"""

import argparse

import numpy as np
from scipy.stats import binom

from sklearn_rankcal.queries import interval_of_mean

COUNTS = (1, 2, 3, 5, 8, 10, 20, 50, 200)

#: A function of a generator and a number of queries that draws values, their mean, their bounds.
WORLDS = {
    "80 % zeros": (lambda rng, n: rng.random(n) * (rng.random(n) < 0.2), 0.1, (0, 1)),
    "80 % ones": (lambda rng, n: 1 - rng.random(n) * (rng.random(n) < 0.2), 0.9, (0, 1)),
    "95 % no difference": (lambda rng, n: rng.random(n) * (rng.random(n) < 0.05), 0.025, (-1, 1)),
    "reciprocal ranks": (lambda rng, n: 1 / np.minimum(rng.geometric(0.6, n), 2), 0.8, (0, 1)),
    "symmetric": (lambda rng, n: rng.beta(2, 2, n), 0.5, (0, 1)),
    "skewed": (lambda rng, n: rng.beta(8, 1, n), 8 / 9, (0, 1)),
}


def inside(interval, mean):
    return (interval[0] - 1e-9 <= mean) & (mean <= interval[1] + 1e-9)


def enumerated(n, level=0.95, bounds=(0, 1)):
    """The smallest coverage of the mean of n values of 0 and 1."""
    true, counts = np.linspace(0.5, 0.99, 981), np.arange(n + 1)[:, None]
    values = (counts > np.arange(n)).astype(float)
    ends = np.array([interval_of_mean(each, level, bounds=bounds) for each in values]).T[..., None]
    return (binom.pmf(counts, n, true) * inside(ends, true)).sum(axis=0).min()


def simulated(world, n, n_samples, weighted=False, level=0.95):
    """The coverage of the interval and of Student's, and the median ratio of their lengths."""
    draw, mean, bounds = WORLDS[world]
    rng, held, ratios = np.random.default_rng(n), np.zeros(2), []
    for _ in range(n_samples):
        values, weight = draw(rng, n), rng.exponential(size=n) if weighted else None
        ours = interval_of_mean(values, level, weight, bounds)
        students = interval_of_mean(values, level, weight)
        held += inside(ours, mean), inside(students, mean)
        ratios.append(np.diff(ours) / max(np.diff(np.clip(students, *bounds)), 1e-300))
    return *(held / n_samples), min(np.median(ratios), 999)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    n_samples = parser.parse_args().samples
    print(f"{'':27}", *(f"{n:>18}" for n in COUNTS))
    for name, bounds in (("0 and 1", (0, 1)), ("0 and 1, Student's", (-np.inf, np.inf))):
        print(f"{name:27}", *(f"{enumerated(n, bounds=bounds):18.4f}" for n in COUNTS))
    for weighted in (False, True):
        for world in WORLDS:
            found = (simulated(world, n, n_samples, weighted) for n in COUNTS)
            cells = [f"{ours:.3f} [{own:.3f}] {ratio:5.3g}" for ours, own, ratio in found]
            print(f"{world + ', weights' * weighted:27}", *(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
