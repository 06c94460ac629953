"""Draw cases, run them, and tell what was found."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from dataclasses import dataclass

import numpy as np

from .case import Case, Finding
from .table import CALLS

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


def draw_call(seed, number, calls):
    weights = np.array([call.weight for call in calls], dtype=float)
    rng = np.random.default_rng([seed, number])
    return calls[int(rng.choice(len(calls), p=weights / weights.sum()))]


def run_case(call, seed, number, size=SIZE, attempt=0):
    """None, or (kind, text, source) of what went wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the inputs as they are made; a call records its own
        case = Case(seed, number, size, folder, attempt)
        try:
            call.run(case)
        except Finding as finding:
            source = [line.replace(folder, ".") for line in case.log[-3:]]
            return finding.kind, str(finding).replace(folder, "."), source
        except Exception as error:  # of the fuzzer itself
            text = "".join(traceback.format_exception(error))
            return f"fuzzer: {type(error).__name__}", text, case.log[-3:]
    return None


def run(seed, numbers, only=""):
    """Run cases; a list of `Found`, one for each kind."""
    calls = [call for call in CALLS if only in call.name]
    found = {}
    for number in numbers:
        call = draw_call(seed, number, calls)
        result = run_case(call, seed, number)
        if result is None:
            continue
        kind, text, source = result
        key = call.name, kind
        if key in found:
            found[key].count += 1
            continue
        found[key] = Found(*key, f"{seed}:{number}:{call.name}", text, source)
        shrink(found[key], call, seed, number)
    return list(found.values())


def shrink(found, call, seed, number):
    """Put the smallest case of the same kind into `found`, of some that are tried."""
    for size in range(1, SIZE):
        for attempt in range(1, _SHRINKING):
            result = run_case(call, seed, number, size, attempt)
            if result is not None and result[0] == found.kind:
                found.text, found.source = result[1:]
                found.smallest = f"{seed}:{number}:{call.name}:{size}:{attempt}"
                return


def run_again(text):
    """The case that a failure named."""
    seed, number, *rest = text.split(":")
    name, *sizes = rest or [draw_call(int(seed), int(number), CALLS).name]
    call = next(call for call in CALLS if call.name == name)
    result = run_case(call, int(seed), int(number), *map(int, sizes))
    if result is None:
        return []
    kind, told, source = result
    return [Found(call.name, kind, text, told, source)]
