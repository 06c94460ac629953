# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""All compiled kernels, in one extension module.

Cython repeats 25,000 lines of C in each module that takes arrays, so nine modules would compile
three times as long. Each included file has one kind of kernels. They share one namespace, and a
file may call functions of any other.
"""

include "_elimination.pxi"
include "_insertion.pxi"
include "_graphs.pxi"
include "_average_precision.pxi"
include "_local_search.pxi"
include "_subsets.pxi"
include "_context.pxi"
include "_pair_sums.pxi"
include "_trees.pxi"
include "_profiles.pxi"
include "_growth.pxi"

N_TEMPORARIES = 1  # arrays of the size of a block that `describe` holds at the same time
