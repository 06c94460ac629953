"""A seeded fuzzer of the public surface: random calls, each with an oracle.

A *case* is one call of `run.CALLS`, drawn by (seed, number); everything random in it comes from
these two numbers. `case.Case` makes the calls and holds what is true of every call: an error is
raised on purpose, by a `raise` of the package, with a text; no warning of NumPy leaks out; the
input stays as it was; time and memory are bounded. The modules `metrics`, `labels`, `readers`,
`judgements`, `decoders` and `rankers` draw the arguments and check the values against
`tests.oracles`, against exact fractions, and against calls that must give the same.

    python -m pytest tests/test_fuzz.py --fuzz-calls 100000 --fuzz-seed 3
    python -m pytest tests/test_fuzz.py --fuzz-case 3:1234

The first is a long run (add ``-n 2`` to split it), the second runs one case again.
"""
