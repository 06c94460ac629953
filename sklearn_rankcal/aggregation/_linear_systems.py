"""Batched linear systems of many components: conjugate gradients and Laplacian matrices.

Each component has its own step lengths and stopping rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from sklearn_rankcal.aggregation._graphs import ComparisonGraph
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._typing import Bools, Floats

_ROUNDING = 1e-14
_FEW_STEPS, _MANY_STEPS = 100, 20_000
#: If conjugate gradients do not solve a component in a few steps, it is eliminated directly if it
#: has at most this many nodes, or at most two pairs per node, like chains and trees.
_SMALL = 500


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    diagonal: Floats,
    rhs: Floats,
    parts: Queries,
    tolerance: float | Floats,
    max_iter: int,
) -> tuple[Floats, Bools]:
    """Solve a symmetric positive semidefinite system for each component.

    `product` multiplies the matrix by a vector, and its diagonal is the preconditioner. A component
    is solved when its residual, in the norm of the preconditioner, is at most `tolerance` (a
    number, or one per part) times the norm of `rhs`. Return the solution and the unsolved parts.
    """
    solution = np.zeros_like(rhs)
    residual = rhs.copy()
    scaled = residual / diagonal
    direction = scaled.copy()
    square = parts.sum(residual * scaled)
    target = square * np.asarray(tolerance) ** 2
    active = square > target
    for _ in range(max_iter):
        if not active.any():
            break
        image = product(direction)
        curvature = parts.sum(direction * image)
        # If the matrix is singular and only rounding errors are left, the direction is in its null
        # space, and a step would be huge.
        active &= curvature > _ROUNDING * parts.sum(direction * diagonal * direction)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=active)
        steps = parts.repeat(step)
        solution += steps * direction
        residual -= steps * image
        scaled = residual / diagonal
        previous, square = square, parts.sum(residual * scaled)
        ratio = np.divide(square, previous, out=np.zeros_like(square), where=active)
        direction = scaled + parts.repeat(ratio) * direction
        active &= square > target
    return solution, active


def solve_laplacian(
    graph: ComparisonGraph,
    weight: Floats,
    rhs: Floats,
    ridge: Floats | None = None,
    tolerance: float | Floats = 1e-13,
) -> Floats:
    """Solve (L + diag(ridge)) x = rhs, where L is the Laplacian matrix of a graph with weights.

    Without a ridge, `rhs` adds up to 0 over each component, and the solution is unique up to a
    constant. Conjugate gradients take some tens of steps for random pairs, but one step per node
    for long chains. Chains are therefore eliminated directly, in linear time.
    """
    ridge = np.zeros(graph.n_nodes) if ridge is None else ridge
    tolerance = np.broadcast_to(tolerance, graph.parts.n_queries)
    solution, unsolved = _iterate(graph, weight, rhs, ridge, tolerance, _FEW_STEPS)
    if not unsolved.any():
        return solution
    n_pairs = np.diff(graph.pair_offsets)
    direct = unsolved & ((graph.parts.sizes <= _SMALL) | (n_pairs <= 2 * graph.parts.sizes))
    for chosen, eliminate in ((direct, True), (unsolved & ~direct, False)):
        if not chosen.any():
            continue
        part, nodes = graph.take(chosen)
        inputs = weight[chosen[graph.part_of_pair]], rhs[nodes], ridge[nodes]
        if eliminate:
            solution[nodes] = _eliminate(part, *inputs)
        else:
            solution[nodes], _ = _iterate(part, *inputs, tolerance[chosen], _MANY_STEPS)
    return solution


def _iterate(
    graph: ComparisonGraph,
    weight: Floats,
    rhs: Floats,
    ridge: Floats,
    tolerance: Floats,
    max_iter: int,
) -> tuple[Floats, Bools]:
    """Solve by conjugate gradients."""
    multiply = graph.multiplier(weight)
    diagonal = graph.pairs.sum_over(weight, weight, graph.n_nodes) + ridge

    def product(v: Floats) -> Floats:
        return diagonal * v - multiply(v)

    return conjugate_gradients(product, diagonal, rhs, graph.parts, tolerance, max_iter)


def _eliminate(graph: ComparisonGraph, weight: Floats, rhs: Floats, ridge: Floats) -> Floats:
    """Solve by sparse elimination. The first node of each component without a ridge becomes 0."""
    kept = np.ones(graph.n_nodes, dtype=bool)
    kept[graph.parts.offsets[:-1]] = ridge[graph.parts.offsets[:-1]] > 0
    number = np.cumsum(kept) - 1
    first, second = graph.pairs.first, graph.pairs.second
    inside = kept[first]  # the second node of a pair is not the first of its component
    diagonal = (graph.pairs.sum_over(weight, weight, graph.n_nodes) + ridge)[kept]
    one, other, negative = number[first[inside]], number[second[inside]], -weight[inside]
    place = np.arange(len(diagonal))
    entries = np.concatenate([diagonal, negative, negative])
    at = np.concatenate([place, one, other]), np.concatenate([place, other, one])
    matrix = coo_array((entries, at), shape=(len(diagonal), len(diagonal))).tocsc()
    # the matrix is symmetric positive definite: no pivoting is needed
    factors = splu(
        matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    solution = np.zeros(graph.n_nodes)
    solution[kept] = factors.solve(rhs[kept])
    return solution
