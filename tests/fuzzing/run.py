"""Draw cases, run them, and tell what was found."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from dataclasses import dataclass

import numpy as np

from . import decoders, judgements, labels, metrics, rankers, readers, tables
from .case import Case, Finding

#: Functions of a `Case`, and how often each is drawn.
CALLS = {
    metrics.value: 20,
    metrics.bad_input: 8,
    metrics.bad_parameter: 4,
    labels.relevance: 6,
    labels.bad_relevance: 4,
    labels.bad_preferences: 3,
    labels.bad_rankings: 2,
    labels.bad_helpers: 2,
    readers.bad_edges: 2,
    readers.preflib: 3,
    readers.letor: 3,
    readers.hostile_file: 4,
    judgements.bad_formats: 4,
    judgements.bad_leaderboard: 2,
    decoders.bad_matrix: 2,
    decoders.scores: 4,
    decoders.bad_scores: 2,
    decoders.bad_rules: 1,
    rankers.same: 5,
    rankers.bad_fit: 3,
    tables.same: 4,
}
SIZE = 4
_SHRINKING = 25  # smaller cases tried for each kind of finding and size


@dataclass
class Found:
    """A kind of finding: the first case that shows it, the smallest one, and how often."""

    call: str
    kind: str
    case: str
    text: str
    source: list
    smallest: str = ""
    count: int = 1

    def __str__(self):
        lines = [
            f"{self.call}: {self.kind} ({self.count} times, first in case {self.case})",
            f"    {self.text}",
        ]
        lines += [f"    repro ({self.smallest or self.case}):"]
        return "\n".join(lines + [f"        {line}" for line in self.source])


def name_of(call):
    return f"{call.__module__.rsplit('.', 1)[-1]}.{call.__name__}"


def draw_call(seed, number, calls):
    weights = np.array([CALLS[call] for call in calls], dtype=float)
    rng = np.random.default_rng([seed, number])
    return calls[int(rng.choice(len(calls), p=weights / weights.sum()))]


def run_case(call, seed, number, size=SIZE, attempt=0):
    """None, or (kind, text, source) of what went wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the inputs as they are made; a call records its own
        case = Case(seed, number, size, folder, attempt)
        try:
            call(case)
        except Finding as finding:
            source = [line.replace(folder, ".") for line in case.log[-3:]]
            return finding.kind, str(finding).replace(folder, "."), source
        except Exception as error:  # of the fuzzer itself
            text = "".join(traceback.format_exception(error))
            return f"fuzzer: {type(error).__name__}", text, case.log[-3:]
    return None


def run(seed, numbers, only=""):
    """Run cases; a list of `Found`, one for each kind."""
    calls = [call for call in CALLS if only in name_of(call)]
    found = {}
    for number in numbers:
        call = draw_call(seed, number, calls)
        result = run_case(call, seed, number)
        if result is None:
            continue
        kind, text, source = result
        key = name_of(call), kind
        if key in found:
            found[key].count += 1
            continue
        found[key] = Found(*key, f"{seed}:{number}:{name_of(call)}", text, source)
        shrink(found[key], call, seed, number)
    return list(found.values())


def shrink(found, call, seed, number):
    """Put the smallest case of the same kind into `found`, of some that are tried."""
    for size in range(1, SIZE):
        for attempt in range(1, _SHRINKING):
            result = run_case(call, seed, number, size, attempt)
            if result is not None and result[0] == found.kind:
                found.text, found.source = result[1:]
                found.smallest = f"{seed}:{number}:{name_of(call)}:{size}:{attempt}"
                return


def run_again(text):
    """The case that a failure named."""
    seed, number, *rest = text.split(":")
    name, *sizes = rest or [name_of(draw_call(int(seed), int(number), list(CALLS)))]
    call = next(call for call in CALLS if name_of(call) == name)
    result = run_case(call, int(seed), int(number), *map(int, sizes))
    if result is None:
        return []
    kind, told, source = result
    return [Found(name, kind, text, told, source)]
