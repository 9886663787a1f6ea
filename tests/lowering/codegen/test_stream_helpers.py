"""The C functions behind tiles, with the processor's own stores and without, on every alignment and size."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.shares import one_in

from layoutproof.lowering.codegen.c_helpers import helper_text
from layoutproof.lowering.runtime.compiler import find_compiler

TRIAL = """
#define TRY(bits) { \\
    uint##bits##_t a[50 * 60], o[60 * 50]; \\
    for (int i = 0; i < 3000; ++i) a[i] = (uint##bits##_t)(i * 7); \\
    for (int rows = 0; rows < 50; rows += 7) for (int columns = 0; columns < 60; columns += 5) { \\
        memset(o, 0, sizeof o); \\
        lp_transpose_##bits(o, 50, a, 60, rows, columns); \\
        for (int r = 0; r < 50; ++r) for (int c = 0; c < 60; ++c) \\
            if (o[c * 50 + r] != (r < rows && c < columns ? a[r * 60 + c] : 0)) return bits; \\
    } \\
}
int main(void) {
    TRY(8) TRY(16) TRY(32) TRY(64)
    static unsigned char from[600], to[600];
    for (int i = 0; i < 600; ++i) from[i] = (unsigned char)(i * 31 + 1);
    for (int start = 0; start < 70; ++start) for (int bytes = -3; bytes < 300; ++bytes) {
        memset(to, 0, sizeof to);
        lp_prefetch(from, -100000, bytes);
        lp_stream(to + start, from + 3, bytes);
        lp_stream_end();
        for (int i = 0; i < 600; ++i)
            if (to[i] != (i >= start && i < start + bytes ? from[3 + i - start] : 0)) return 1;
    }
    return 0;
}
"""
USED = ["lp_stream", "lp_stream_end", "lp_prefetch", *(f"lp_transpose_{bits}" for bits in (8, 16, 32, 64))]


@one_in(10)
@pytest.mark.parametrize(
    "flags", [("-O3",), ("-O2", "-U__SSE2__"), ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")]
)
def test_helpers_move_what_they_say(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Streams copy exactly their bytes from and to any address, a negative number copies none, and blocks of any size
    are turned.
    """
    source, binary = tmp_path / "trial.c", tmp_path / "trial"
    includes = "".join(f"#include <{name}.h>\n" for name in ("stdbool", "stddef", "stdint", "string"))
    source.write_text(f"{includes}\n{helper_text(USED)}\n{TRIAL}", encoding="ascii")
    command = [*find_compiler().command, "-std=c11", "-Wall", "-Wextra", "-Wno-misleading-indentation", *flags]
    built = subprocess.run([*command, str(source), "-o", str(binary)], capture_output=True, text=True, check=False)
    assert built.returncode == 0 and not built.stderr, built.stderr
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
