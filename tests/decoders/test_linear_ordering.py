"""The exact solver of one component: proved optima, bounds that hold, honest time limits."""

import itertools

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, linprog

from sklearn_rankcal.decoders import _linear_ordering as module  # each step by itself
from sklearn_rankcal.decoders._linear_ordering import solve_linear_ordering

from .test_decode_interrupts import Clock


def lost_weight(d, order):
    return sum(max(d[late, early], 0.0) for k, late in enumerate(order) for early in order[:k])


def least_lost(d):
    """Subset dynamic programming, one set at a time."""
    r = len(d)
    least = {0: 0.0}
    for members in range(1, 1 << r):
        inside = [i for i in range(r) if members >> i & 1]
        least[members] = min(
            least[members ^ (1 << last)] + sum(max(d[last, i], 0.0) for i in inside)
            for last in inside
        )
    return least[(1 << r) - 1]


def antisymmetric(u):
    upper = np.triu(u, 1)
    return upper - upper.T


def normal(rng, r):
    return rng.standard_normal((r, r))


def sparse(rng, r):
    return rng.standard_normal((r, r)) * (rng.random((r, r)) < 0.4)


def integers(rng, r):
    return rng.integers(-3, 4, (r, r)).astype(float)


def signs(rng, r):
    return rng.choice([-1.0, 1.0], (r, r))


def even(rng, r):
    return 2.0 * rng.integers(-(10**6), 10**6, (r, r))


def tenths(rng, r):
    return rng.choice([-0.3, 0.1, 0.2, 0.0, 0.7], (r, r))


def lopsided(rng, r):
    return np.exp(6 * rng.standard_normal((r, r))) * signs(rng, r) * 10.0 ** rng.integers(-200, 200)


def btl(rng, r, noise):
    s = rng.standard_normal(r)
    return antisymmetric(1 / (1 + np.exp(s - s[:, None])) - 0.5 + noise * normal(rng, r))


def fence(rng):
    """A 3-fence: it loses 2, and 1.5 in the relaxation. With noise, rounding up proves nothing."""
    arms = np.zeros((6, 6))
    arms[:3, 3:] = 2 * np.eye(3) - 1
    return arms - arms.T + antisymmetric(0.01 * normal(rng, 6))


@pytest.fixture
def no_local_search(monkeypatch):
    """The search alone must find the best order, not only prove it."""

    def keep_if_better(self, order):
        lost = lost_weight(self.d, order)
        if lost < self.lost:
            self.best, self.lost = order, lost

    monkeypatch.setattr(module._Search, "improve", keep_if_better)


KINDS = [normal, sparse, integers, signs, even, tenths, lopsided]


def check_proved(d, found, least):
    total = np.abs(d).sum()
    assert sorted(found.order) == list(range(len(d)))
    assert found.optimal and found.lower_bound == found.lost
    assert found.lost == pytest.approx(lost_weight(d, found.order), rel=0, abs=1e-13 * total)
    assert found.lost == pytest.approx(least, rel=1e-10, abs=1e-15 * total)


@pytest.mark.parametrize("kind", KINDS)
def test_optimal_from_any_start(kind):
    rng = np.random.RandomState(0)
    for r in [1, 2, 3, 4, 5, 6, 7, 8, 8, 9]:
        d = antisymmetric(kind(np.random.default_rng(rng.randint(1 << 30)), r))
        check_proved(d, solve_linear_ordering(d, rng.permutation(r)), least_lost(d))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "limits",
    [
        {"_MAX_SETS": 0},
        {"_MAX_SETS": 2},
        {"_STALLED": 0},
        {"_STALLED": 0, "_MAX_SETS": 3},
        {"_STALLED": 1, "_CUTS_PER_PAIR": 1, "_MAX_CANDIDATES": 9},
        {"_MANY_CUTS": 0, "_TIGHT_CUTS_PER_PAIR": 1, "_MAX_SETS": 2},
    ],
    ids=["branch only", "branch and few sets", "sets only", "no program", "few cuts", "dual"],
)
def test_each_method_is_exact_alone(monkeypatch, no_local_search, kind, limits):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    rng = np.random.default_rng(1)
    for r in [4, 6, 7]:
        d = antisymmetric(kind(rng, r))
        check_proved(d, solve_linear_ordering(d, rng.permutation(r)), least_lost(d))


def test_any_multipliers_bound_every_order():
    """The bound does not depend on the solver: random multipliers, and x of random orders."""
    rng = np.random.default_rng(0)
    d = antisymmetric(normal(rng, 6))
    search = module._Search(d, np.arange(6), None)
    n_pairs = len(search.cost)
    cycles = np.array([rng.permutation(6)[:3] for _ in range(30)])
    for _ in range(20):
        node = search.with_bound(
            np.zeros(n_pairs), np.ones(n_pairs), cycles, rng.exponential(size=30), np.ones(n_pairs)
        )
        assert node.bound * search.scale <= least_lost(d)


@pytest.mark.parametrize("many_cuts", [0, 10**6], ids=["dual", "primal"])
@pytest.mark.parametrize("n_fixed", [0, 12])
def test_the_program_is_solved(monkeypatch, n_fixed, many_cuts):
    """The program is written out here: all cycles of three, and pairs fixed as a random order."""
    monkeypatch.setattr(module, "_MANY_CUTS", many_cuts)
    rng = np.random.default_rng(n_fixed)
    r = 9
    for _ in range(5):
        d = antisymmetric(normal(rng, r))
        search = module._Search(d, rng.permutation(r), None)
        rows, columns = search.pairs
        lo, hi = np.zeros(len(rows)), np.ones(len(rows))
        place = np.argsort(rng.permutation(r))
        fixed = rng.choice(len(rows), n_fixed, replace=False)
        lo[fixed] = hi[fixed] = (place[rows] < place[columns])[fixed]
        cycles = np.array(
            [c for a, b, e in itertools.combinations(range(r), 3) for c in ((a, b, e), (a, e, b))]
        )
        multipliers, x, _ = search.solve(cycles, lo, hi)
        pairs, signs = search.pairs_and_signs(cycles)
        matrix = np.zeros((len(cycles), len(rows)))
        np.put_along_axis(matrix, pairs, signs, axis=1)
        rhs = 2 - (signs < 0).sum(axis=1)
        wanted = linprog(search.cost, matrix, rhs, bounds=np.stack([lo, hi], axis=1))
        assert (lo <= x).all() and (x <= hi).all() and (matrix @ x <= rhs + 1e-6).all()
        assert search.cost @ x == pytest.approx(wanted.fun)
        bound = search.with_bound(lo, hi, cycles, multipliers, x).bound
        assert bound == pytest.approx(wanted.fun + np.maximum(-search.cost, 0).sum())


def test_large_programs_are_smaller_and_turned_into_their_dual(monkeypatch):
    """The first program of one search, with a limit that it exceeds and one that it meets."""
    rng = np.random.default_rng(0)
    d, start = antisymmetric(normal(rng, 20)), np.arange(20)
    shapes = []

    def first_shape(costs, matrix, *args, **options):
        shapes.append(matrix.shape)
        return fail()

    monkeypatch.setattr(module, "linprog", first_shape)
    for many_cuts in (10**6, 100):
        monkeypatch.setattr(module, "_MANY_CUTS", many_cuts)
        search = module._Search(d, start, None)
        majority = np.where(search.cost < 0, 1.0, 0.0)
        no_cuts = np.zeros((0, 3), dtype=int), np.zeros(0)
        search.tighten(search.with_bound(np.zeros(190), np.ones(190), *no_cuts, majority))
    (n_cuts, n_pairs), (n_rows, n_columns) = shapes
    assert 100 < n_cuts and n_pairs <= 190
    # The dual has a row for each pair, and a variable for each cut and each pair.
    assert n_rows <= 190 and 100 < n_columns - n_rows < n_cuts


@pytest.mark.parametrize("only_tight", [False, True])
def test_violated_cycles(monkeypatch, only_tight):
    """Against a loop over all cycles, without the limit on cuts of one pair."""
    monkeypatch.setattr(module, "_TIGHT_CUTS_PER_PAIR" if only_tight else "_CUTS_PER_PAIR", 100)
    rng = np.random.default_rng(0)
    search = module._Search(antisymmetric(normal(rng, 7)), rng.permutation(7), None)
    place = np.argsort(search.best)
    for _ in range(5):
        x = rng.choice([0.0, 0.5, 1.0], 21)
        square = search.as_matrix(x)
        wanted = set()
        for a, b, c in itertools.permutations(range(7), 3):
            edges = [(a, b), (b, c), (c, a)]
            n_kept = sum(place[i] < place[j] for i, j in edges)
            violated = sum(square[edge] for edge in edges) > 2 + 1e-6
            if a < min(b, c) and violated and (n_kept == 2 or not only_tight):
                wanted.add((a, b, c))
        found = set(map(tuple, search.violated_cycles(x, only_tight).tolist()))
        assert found == wanted


def test_subsets_find_the_order_of_least_excess(monkeypatch):
    """Against all orders, with a budget just above and just below the least excess."""
    rng = np.random.default_rng(0)
    r = 6
    for n_cuts in (0, 1, 8):
        excess = rng.exponential(size=(r, r))
        np.fill_diagonal(excess, 0)
        cycles = np.array([rng.permutation(r)[:3] for _ in range(n_cuts)], dtype=int).reshape(-1, 3)
        multipliers = rng.exponential(size=n_cuts) * rng.choice([0, 1], n_cuts, p=[0.2, 0.8])
        best, least = None, np.inf
        for order in itertools.permutations(range(r)):
            before = np.argsort(order)[:, None] < np.argsort(order)
            kept = before[cycles, np.roll(cycles, -1, axis=1)].sum(axis=1)
            value = excess[before].sum() + multipliers @ (2 - kept)
            if value < least:
                best, least = order, value
        arguments = excess, cycles, multipliers
        complete, order = module._search_subsets(*arguments, least + 1e-9, lambda: False)
        assert complete and tuple(order) == best
        missed = module._search_subsets(*arguments, least - 1e-9, lambda: False)
        assert missed == (True, None)
        # Not complete: the time is up, or there are too many sets.
        assert module._search_subsets(*arguments, least + 1, lambda: True) == (False, None)
        for name in ("_MAX_SETS", "_MAX_CANDIDATES"):
            with monkeypatch.context() as limited:
                limited.setattr(module, name, 0)
                given_up = module._search_subsets(*arguments, least + 1, lambda: False)
                assert given_up == (False, None)


def fail(*args, **kwargs):
    """A linprog that gives up."""
    return OptimizeResult(status=4)


@pytest.mark.parametrize("n_sets", [0, 6])
def test_solver_failure_costs_time_not_truth(monkeypatch, no_local_search, n_sets):
    monkeypatch.setattr(module, "linprog", fail)
    monkeypatch.setattr(module, "_MAX_SETS", n_sets)
    rng = np.random.default_rng(2)
    for _ in range(3):
        d = antisymmetric(normal(rng, 6))
        check_proved(d, solve_linear_ordering(d, rng.permutation(6)), least_lost(d))


@pytest.mark.parametrize("many_cuts", [0, 10**6], ids=["dual", "primal"])
def test_multipliers_of_the_wrong_sign_cost_time_not_truth(monkeypatch, no_local_search, many_cuts):
    solve = module._solve_program

    def careless(*args):
        x, multipliers = solve(*args)
        wrong = rng.random(len(multipliers)) < 0.3
        return x, multipliers - np.where(wrong, rng.exponential(), 0)

    monkeypatch.setattr(module, "_MANY_CUTS", many_cuts)
    monkeypatch.setattr(module, "_solve_program", careless)
    rng = np.random.default_rng(3)
    for _ in range(5):
        d = antisymmetric(normal(rng, 8))
        check_proved(d, solve_linear_ordering(d, rng.permutation(8)), least_lost(d))


def test_gap_of_the_relaxation_is_closed(no_local_search):
    d = fence(np.random.default_rng(0))
    search = module._Search(d, np.arange(6), None)
    majority = np.where(search.cost < 0, 1.0, 0.0)
    free = np.zeros(15), np.ones(15), np.zeros((0, 3), dtype=int), np.zeros(0), majority
    relaxed = search.tighten(search.with_bound(*free))
    assert relaxed.bound * search.scale == pytest.approx(1.5, abs=0.1)
    assert least_lost(d) == pytest.approx(2, abs=0.1)
    check_proved(d, solve_linear_ordering(d, np.arange(6)), least_lost(d))


def test_more_documents_than_bits_of_a_word(no_local_search):
    """Twelve fences, one preferred to the next: the sum of their optima."""
    rng = np.random.default_rng(1)
    fences = [fence(rng) for _ in range(12)]
    d = antisymmetric(np.ones((72, 72)))
    for k, block in enumerate(fences):
        d[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = block
    mixed = rng.permutation(72)
    found = solve_linear_ordering(d[np.ix_(mixed, mixed)], rng.permutation(72))
    check_proved(d[np.ix_(mixed, mixed)], found, sum(least_lost(block) for block in fences))


def test_acyclic_from_the_reversed_order():
    d = antisymmetric(np.arange(1.0, 1601).reshape(40, 40))
    found = solve_linear_ordering(d, np.arange(40)[::-1])
    assert found.optimal and found.lost == 0 and found.order.tolist() == list(range(40))


def test_all_zero():
    found = solve_linear_ordering(np.zeros((5, 5)), np.array([3, 1, 0, 2, 4]))
    assert found == (pytest.approx([3, 1, 0, 2, 4]), 0, 0, True, 0)


def test_numbers_of_documents_do_not_matter():
    rng = np.random.default_rng(4)
    d = btl(rng, 40, 0.3)
    found = solve_linear_ordering(d, np.arange(40))
    mixed = rng.permutation(40)
    again = solve_linear_ordering(d[np.ix_(mixed, mixed)], rng.permutation(40))
    assert found.optimal and again.optimal
    assert mixed[again.order].tolist() == found.order.tolist()
    assert again.lost == pytest.approx(found.lost)


@pytest.mark.parametrize("program", [module.linprog, fail])
@pytest.mark.parametrize("kind", [normal, signs])
def test_bound_holds_whenever_time_is_up(monkeypatch, no_local_search, kind, program):
    """Time is counted in checks of the clock, so that the search stops at every kind of place."""
    rng = np.random.default_rng(7)
    d = antisymmetric(kind(rng, 12))
    start = rng.permutation(12)
    best = solve_linear_ordering(d, start)
    assert best.optimal

    monkeypatch.setattr(module, "time", Clock)
    monkeypatch.setattr(module, "_MAX_SETS", 4)
    monkeypatch.setattr(module, "_CUTS_PER_PAIR", 1)
    monkeypatch.setattr(module, "linprog", program)
    for steps in [*range(0, 60, 3), 200, 400, 800, 1600]:
        found = solve_linear_ordering(d, start, time_limit=steps + 0.5)
        assert sorted(found.order) == list(range(12))
        assert found.lost == pytest.approx(lost_weight(d, found.order))
        assert found.lower_bound <= best.lost + 1e-9 <= found.lost + 2e-9
        if found.optimal:
            assert found.lost == pytest.approx(best.lost)
        else:
            assert found.lower_bound < found.lost
