"""The builder's methods for what transformers are made of, in one graph that computes what numpy does."""

from __future__ import annotations

import numpy as np
from tests.graph.nets import filled

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph_run import run_graph


def test_a_graph_of_words() -> None:
    """Words are looked up, normalised, multiplied with each other, and made into logarithms of shares."""
    table, scale, bias = filled(7, 4), filled(4, seed=1), filled(4, seed=2)
    g = GraphBuilder("words")
    words = g.input("words", (2, 3), "int64")
    found = g.gather(g.constant(table, "table"), words)
    normal = g.layer_norm(found, g.constant(scale, "scale"), g.constant(bias, "bias"))
    alike = g.einsum("bik,bjk->bij", normal, normal)
    graph = g.build(
        g.log_softmax(alike), g.expand(g.reduce("l2", normal, (2,), keep=True), (2, 3, 2)), g.matmul(alike, normal)
    )
    places = np.array([[0, 6, -1], [3, 3, 2]])
    shares, norms, mixed = run_graph(graph, {"words": places})
    looked = table[places]
    apart = looked - looked.mean(axis=-1, keepdims=True)
    wanted = apart / np.sqrt((apart**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + bias
    products = wanted @ wanted.transpose(0, 2, 1)
    logarithms = products - np.log(np.exp(products).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(shares, logarithms, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        norms, np.broadcast_to(np.linalg.norm(wanted, axis=-1, keepdims=True), (2, 3, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(mixed, products @ wanted, rtol=1e-4, atol=1e-5)
