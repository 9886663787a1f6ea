"""Helper functions of generated C that touch memory: access through bytes, allocation, overlap check, streaming stores.

Streaming stores have a form for processors with SSE2 and a plain one with the same effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.codegen.writer import Helper

_STORED = ("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float", "double")


def access_name(action: str, storage: str) -> str:
    """The helper that loads or stores one `storage` element of memory that is also seen as another type."""
    return f"lp_{action}_{storage.removesuffix('_t')}"


def _access(storage: str) -> dict[str, Helper]:
    return {
        access_name("load", storage): Helper(
            f"""/* Element `index` of memory that is also seen as another type. */
static inline {storage} {access_name("load", storage)}(const void *base, int64_t index) {{
    {storage} value;
    memcpy(&value, (const unsigned char *)base + index * (int64_t)sizeof value, sizeof value);
    return value;
}}"""
        ),
        access_name("store", storage): Helper(
            f"""static inline void {access_name("store", storage)}(void *base, int64_t index, {storage} value) {{
    memcpy((unsigned char *)base + index * (int64_t)sizeof value, &value, sizeof value);
}}"""
        ),
    }


MEMORY_HELPERS: Mapping[str, Helper] = {
    **{name: helper for storage in _STORED for name, helper in _access(storage).items()},
    "lp_allocate": Helper(
        """\
/* Memory for `count` elements, aligned to a cache line; NULL where there is none or the size does not fit. An extent
   below zero is no failure: nothing is stored there. */
static void *lp_allocate(int64_t count, size_t size) {
    uint64_t elements = count > 0 ? (uint64_t)count : 0;
    if (elements > (SIZE_MAX - 64) / size) {
        return NULL;
    }
    size_t bytes = ((size_t)elements * size + 63) / 64 * 64;
    return aligned_alloc(64, bytes > 0 ? bytes : 64);
}"""
    ),
    "lp_overlap": Helper(
        """/* Whether two pieces of memory have a byte in common. */
static inline bool lp_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 &&
           (first < second ? second - first < (uintptr_t)a_bytes : first - second < (uintptr_t)b_bytes);
}"""
    ),
}


_HEAD = """#if defined(__SSE2__)
#include <emmintrin.h>
#endif"""

_STREAM = """\
/* Copies past the cache what is large and not read again soon: in pieces of 16 bytes, the ends as usual. */
static inline void lp_stream(void *to, const void *from, int64_t bytes) {
#if defined(__SSE2__)
    unsigned char *d = to;
    const unsigned char *s = from;
    for (int64_t step = 1; step < 16; step *= 2) {
        if (((uintptr_t)d & (uintptr_t)step) != 0 && bytes >= step) {
            memcpy(d, s, (size_t)step);
            d += step, s += step, bytes -= step;
        }
    }
    if (((uintptr_t)d & 15) == 0) {
        for (; ((uintptr_t)d & 63) != 0 && bytes >= 16; d += 16, s += 16, bytes -= 16) {
            _mm_stream_si128((__m128i *)d, _mm_loadu_si128((const __m128i *)s));
        }
        for (; bytes >= 64; d += 64, s += 64, bytes -= 64) {
            __m128i a = _mm_loadu_si128((const __m128i *)s), b = _mm_loadu_si128((const __m128i *)(s + 16));
            __m128i c = _mm_loadu_si128((const __m128i *)(s + 32)), e = _mm_loadu_si128((const __m128i *)(s + 48));
            _mm_stream_si128((__m128i *)d, a);
            _mm_stream_si128((__m128i *)(d + 16), b);
            _mm_stream_si128((__m128i *)(d + 32), c);
            _mm_stream_si128((__m128i *)(d + 48), e);
        }
        for (; bytes >= 16; d += 16, s += 16, bytes -= 16) {
            _mm_stream_si128((__m128i *)d, _mm_loadu_si128((const __m128i *)s));
        }
    }
    for (int64_t step = 8; step > 0; step /= 2) {
        for (; bytes >= step; d += step, s += step, bytes -= step) {
            memcpy(d, s, (size_t)step);
        }
    }
#else
    lp_copy(to, from, bytes);
#endif
}"""

_COPY = """/* Copies as usual; nothing where there is nothing. */
static inline void lp_copy(void *to, const void *from, int64_t bytes) {
    if (bytes > 0) {
        memcpy(to, from, (size_t)bytes);
    }
}"""

_END = """/* Lets no later store of this thread be seen before what it wrote past the cache. */
static inline void lp_stream_end(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}"""

_PREFETCH = """\
/* Has memory brought near that is read soon; it may lie outside of everything, since nothing is read here. */
static inline void lp_prefetch(const void *start, int64_t offset, int64_t bytes) {
#if defined(__SSE2__)
    const uintptr_t first = (uintptr_t)start + (uintptr_t)offset;
    const int64_t lines = bytes > 0 ? (int64_t)(first & 63) + bytes : 0;
    for (int64_t at = 0; at < lines; at += 64) {
        _mm_prefetch((const char *)((first & ~(uintptr_t)63) + (uintptr_t)at), _MM_HINT_T1);
    }
#else
    (void)start, (void)offset, (void)bytes;
#endif
}"""


def _transpose(bits: int) -> str:
    lanes = 128 // bits
    stages = lanes.bit_length() - 1
    kind = {8: "epi8", 16: "epi16", 32: "epi32", 64: "epi64"}[bits]
    half = lanes // 2
    return f"""\
/* to[c * to_step + r] = from[r * from_step + c] for all r below rows and c below columns; steps count elements. */
static inline void lp_transpose_{bits}(
        void *to, int64_t to_step, const void *from, int64_t from_step, int64_t rows, int64_t columns) {{
    uint{bits}_t *d = to;
    const uint{bits}_t *s = from;
#if defined(__SSE2__)
    /* Blocks of {lanes} by {lanes}; the last ones reach back over what is done already, so that none is cut. */
    for (int64_t i = 0; columns >= {lanes} && rows >= {lanes} && i < rows; i += {lanes}) {{
        const int64_t r = i <= rows - {lanes} ? i : rows - {lanes};
        for (int64_t j = 0; j < columns; j += {lanes}) {{
            const int64_t c = j <= columns - {lanes} ? j : columns - {lanes};
            __m128i x[{lanes}], y[{lanes}];
            for (int k = 0; k < {lanes}; ++k) {{
                x[k] = _mm_loadu_si128((const __m128i *)(s + (r + k) * from_step + c));
            }}
            for (int stage = 0; stage < {stages}; ++stage) {{
                for (int k = 0; k < {half}; ++k) {{
                    y[2 * k] = _mm_unpacklo_{kind}(x[k], x[k + {half}]);
                    y[2 * k + 1] = _mm_unpackhi_{kind}(x[k], x[k + {half}]);
                }}
                for (int k = 0; k < {lanes}; ++k) {{
                    x[k] = y[k];
                }}
            }}
            for (int k = 0; k < {lanes}; ++k) {{
                _mm_storeu_si128((__m128i *)(d + (c + k) * to_step + r), x[k]);
            }}
        }}
    }}
    if (columns >= {lanes} && rows >= {lanes}) {{
        return;
    }}
#endif
    for (int64_t r = 0; r < rows; ++r) {{
        for (int64_t c = 0; c < columns; ++c) {{
            d[c * to_step + r] = s[r * from_step + c];
        }}
    }}
}}"""


STREAM_HELPERS: Mapping[str, Helper] = {
    "LP_SSE2": Helper(_HEAD),
    "lp_copy": Helper(_COPY),
    "lp_stream": Helper(_STREAM, ("LP_SSE2", "lp_copy")),
    "lp_stream_end": Helper(_END, ("LP_SSE2",)),
    "lp_prefetch": Helper(_PREFETCH, ("LP_SSE2",)),
    **{f"lp_transpose_{bits}": Helper(_transpose(bits), ("LP_SSE2",)) for bits in (8, 16, 32, 64)},
}
