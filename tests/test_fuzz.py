"""Random calls of the public surface: see `tests.fuzzing`.

A short run by default; a long one by ``--fuzz-calls 100000 --fuzz-seed 3``.
"""

import pytest

from .fuzzing.run import run, run_again

CALLS_BY_DEFAULT = 300
SHARDS = 8  # so that pytest-xdist can share them out


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_calls_find_nothing(request, shard):
    option = request.config.getoption
    if option("--fuzz-case"):
        if shard:
            pytest.skip("one case")
        found = run_again(option("--fuzz-case"))
    else:
        calls = option("--fuzz-calls")
        calls = CALLS_BY_DEFAULT if calls is None else calls
        found = run(option("--fuzz-seed"), range(shard, calls, SHARDS), option("--fuzz-only"))
    assert not found, f"{len(found)} kinds of findings\n\n" + "\n\n".join(map(str, found))


def test_a_case_is_the_same_whenever_it_is_drawn():
    one, other = (run(5, range(20)) for _ in range(2))
    assert list(map(str, one)) == list(map(str, other))
