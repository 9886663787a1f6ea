"""A producer that writes what its consumer needs: the same layout and the same pad value on both sides of a call.

The roadmap's fourth way. The producer owes zeros in the padding, the consumer takes them for granted; each is proved
alone. Run it from anywhere: `python examples/padding/04_producer_writes_default.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, refusal_text, step_text

PRODUCER = """
@T.prim_func(s_tir=True)
def producer(A: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.sblock("count"):
            vi = T.axis.spatial(14, i)
            A[vi] = 1000 + vi
"""
CONSUMER = """
@T.prim_func(s_tir=True)
def consumer(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("sum"):
            vi = T.axis.reduce(14, i)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vi]
"""
ROWS = "lambda i: [i//4, i%4]"


def produce() -> lp.Schedule:
    """The producer: its elements and its padding written in one loop."""
    schedule = lp.Schedule(lp.loads(PRODUCER))
    print(program_text(schedule.func))
    print(step_text(schedule.transform_layout("count", "A", ROWS, pad_value=0)))
    print(step_text(schedule.sequential_buffer_access("count", "A")))

    # The stage that fills the padding joins the loops over the elements, axis by axis.
    print(step_text(schedule.merge_adjacent_loops("root", 0)))
    print(step_text(schedule.merge_adjacent_loops("root", 1)))

    # The two conditions are complementary, though they are written differently: one branch is left.
    schedule.lower_blocks()
    print(step_text(schedule.simplify()))
    return schedule


def consume(pad_value: int) -> lp.Schedule:
    """The consumer: it adds up whatever the padding is promised to hold."""
    schedule = lp.Schedule(lp.loads(CONSUMER))
    schedule.transform_layout("sum", "A", ROWS, pad_value)
    schedule.sequential_buffer_access("sum", "A")
    return schedule


def main() -> None:
    """Both schedules, the program after every step, both proofs."""
    producer = produce()
    consumer = consume(0)
    print(program_text(consumer.original))
    for step in consumer.steps:
        print(step_text(step))
    print(step_text(consumer.remove_branching_through_overcompute("sum")))

    # What a product would need does not do for a sum: the pad value flows from the consumer to the producer.
    try:
        consume(1).remove_branching_through_overcompute("sum")
    except lp.IllegalTransform as problem:
        print(refusal_text(problem))
    print("producer:")
    print(proof_text(producer.steps, "merge_adjacent_loops"))
    print("consumer:")
    print(proof_text(consumer.steps, "remove_branching_through_overcompute"), end="")


if __name__ == "__main__":
    main()
