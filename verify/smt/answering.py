"""The process in which other solvers run: `python -m layoutproof.verify.smt.answering`.

One line of JSON in, one out: `{"number", "engine", "text", "logic", "seconds"}` and `{"number", "answer", "reason"}`. What a solver
itself prints goes to standard error, so that it is not taken for an answer. Whoever started the process ends it when it takes too
long.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from layoutproof.verify.smt.engines import ask

_GRACE = 5.0


def main() -> int:
    """Answer until there are no more questions."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        for line in sys.stdin:
            question = json.loads(line)
            # Should whoever asked be gone, the system ends a solver that does not stop.
            signal.setitimer(signal.ITIMER_REAL, 2 * question["seconds"] + _GRACE)
            reply = ask(question["engine"], question["text"], question["logic"], question["seconds"])
            signal.setitimer(signal.ITIMER_REAL, 0)
            answer = {"number": question["number"], "answer": reply.answer.value, "reason": reply.reason}
            print(json.dumps(answer), file=replies, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
