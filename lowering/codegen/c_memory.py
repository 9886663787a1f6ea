"""Helper functions of generated C that touch memory: typed access through bytes, allocation, the overlap check."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.lowering.codegen.c_template import Helper

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
        """/* Memory for `count` elements, aligned to a cache line; NULL where there is none or the size does not fit. */
static void *lp_allocate(int64_t count, size_t size) {
    if (count < 0 || (uint64_t)count > (SIZE_MAX - 64) / size) {
        return NULL;
    }
    size_t bytes = ((size_t)count * size + 63) / 64 * 64;
    return aligned_alloc(64, bytes > 0 ? bytes : 64);
}"""
    ),
    "lp_overlap": Helper(
        """/* Whether two pieces of memory have a byte in common. */
static inline bool lp_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && (first < second ? second - first < (uintptr_t)a_bytes : first - second < (uintptr_t)b_bytes);
}"""
    ),
}
