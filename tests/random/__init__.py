"""Everything that is made at random for tests, each kind once; a seed, or a `Random`, names what is made.

| module | makes |
|---|---|
| `index_maps`, `symbolic_maps` | index maps: as people write them, with mistakes, and arbitrary; long: `map_campaign` |
| `faulty`, `flow` | texts of small programs (`drafts`): most with faults; without faults, of intricate flow |
| `objects` | small programs of every statement, as nodes; options: faults, undefined values, shared results |
| `syntax` | programs that use every node, well-typed and senseless, for what prints and reads |
| `typed_programs`, `typed_expressions` | texts of every type that TVM reads too, with arguments |
| `expressions` | expressions of every type that never trap |
| `nests`, `vector_loops`, `textures` | reductions split and guarded; loops that become lanes; programs over textures |
| `claims` | claims that two values are the same |

Random rewrites are in `tests/attack`, random passes in `tests/lowering/traces`, graphs and operators beside their
tests.
"""
