"""Formulas as MathML, which browsers show without a script and without a network."""

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(writer, node):
    """Write a formula within a line."""
    writer.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def visit_block(writer, node):
    """Write a formula in a line of its own."""
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """Sphinx's hook."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
