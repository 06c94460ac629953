# cython: language_level=3
"""Sets of small integers as bits: element j of a set is bit j % 64 of its word j // 64.

A relation over r documents is an array of r such sets, each of the same number of words.
"""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int lowest_bit(unsigned long long x) {
        unsigned long i; _BitScanForward64(&i, x); return (int) i;
    }
    static int count_bits(unsigned long long x) {
        int n = 0; while (x) { x &= x - 1; n++; } return n;
    }
    #else
    static int lowest_bit(unsigned long long x) { return __builtin_ctzll(x); }
    static int count_bits(unsigned long long x) { return __builtin_popcountll(x); }
    #endif
    """
    int lowest_bit(uint64_t x) nogil  # position of the lowest bit that is set; x is not 0
    int count_bits(uint64_t x) nogil


cdef inline bint contains(
    const uint64_t *relation, Py_ssize_t words, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    """Return whether j is in the set of i."""
    return (relation[i * words + (j >> 6)] >> (j & 63)) & 1


cdef inline void add_all(
    uint64_t *into, const uint64_t *other, Py_ssize_t words, Py_ssize_t one
) noexcept nogil:
    """Add the elements of another set, and one more element."""
    cdef Py_ssize_t word
    for word in range(words):
        into[word] |= other[word]
    into[one >> 6] |= (<uint64_t> 1) << (one & 63)
