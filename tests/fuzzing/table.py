"""The calls that are drawn, and the public names they cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import decoders, labels, metrics, readers


@dataclass(frozen=True)
class Call:
    """A function of a `Case`, how often it is drawn, and the public names it covers."""

    run: Callable
    weight: float
    covers: tuple[str, ...] = ()

    @property
    def name(self):
        return f"{self.run.__module__.rsplit('.', 1)[-1]}.{self.run.__name__}"


CALLS = [
    Call(metrics.value, 20, tuple(metrics.COVERS)),
    Call(metrics.bad_input, 8),
    Call(metrics.bad_parameter, 4),
    Call(metrics.relations, 10),
    Call(metrics.evaluate, 2),
    Call(labels.relevance, 6, labels.COVERS_RELEVANCE),
    Call(labels.bad_relevance, 4),
    Call(labels.preferences, 5, labels.COVERS_PREFERENCES),
    Call(labels.bad_preferences, 3),
    Call(labels.rankings, 4, labels.COVERS_RANKINGS),
    Call(labels.bad_rankings, 2),
    Call(labels.helpers, 2, ("order_to_ranks", "ranks_to_order", "sizes_to_groups")),
    Call(labels.bad_helpers, 2),
    Call(readers.edges, 5, ("read_edges",)),
    Call(readers.bad_edges, 2),
    Call(readers.edge_file, 3),
    Call(readers.preflib, 3, ("read_preflib", "PrefLibOrders")),
    Call(readers.letor, 3, ("load_letor",)),
    Call(readers.hostile_file, 4),
    Call(decoders.preferences, 4, ("decode_preferences", "DecodeResult")),
    Call(decoders.average_precision, 2, ("decode_average_precision",)),
    Call(decoders.exact_votes, 0.05),
    Call(decoders.bad_matrix, 2),
    Call(decoders.scores, 4, ("decode_scores",)),
    Call(decoders.bad_scores, 2),
    Call(decoders.objects, 2, decoders.COVERS_OBJECTS),
]
#: Public names that no call draws, and why.
EXEMPT = {}
