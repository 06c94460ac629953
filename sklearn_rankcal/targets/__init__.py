"""Targets: what a model learns. Labels come in; numbers per document, or per pair, come out."""
