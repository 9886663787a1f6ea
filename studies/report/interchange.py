"""The dataframe interchange protocol for tables of studies, so that pandas, polars and others take them.

Source: the protocol of the Python data API consortium (`__dataframe__`), of which texts, integers and truth values are
needed here. Columns are whole, in one chunk, without missing values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KIND_INT, KIND_UINT, KIND_STRING = 0, 1, 21
NON_NULLABLE = 0
CPU = 1
Column_ = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Contiguous memory, kept alive by this object."""

    data: NDArray[Any]

    @property
    def bufsize(self) -> int:
        """Bytes."""
        return int(self.data.nbytes)

    @property
    def ptr(self) -> int:
        """The address."""
        return int(self.data.ctypes.data)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """The memory as DLPack has it."""
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int | None]:
        """The device: this machine's memory."""
        return CPU, None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: all integers, or all texts."""

    values: Column_

    @property
    def _is_text(self) -> bool:
        return not all(isinstance(value, int) for value in self.values)

    def size(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def offset(self) -> int:
        """Where the column begins in its buffers."""
        return 0

    @property
    def dtype(self) -> tuple[int, int, str, str]:
        """Kind, bits, Arrow's format and byte order."""
        return (KIND_STRING, 8, "u", "=") if self._is_text else (KIND_INT, 64, "l", "=")

    @property
    def describe_categorical(self) -> Any:
        """Raises TypeError: no column is categorical."""
        raise TypeError("the column is not categorical")

    @property
    def describe_null(self) -> tuple[int, None]:
        """No value is missing."""
        return NON_NULLABLE, None

    @property
    def null_count(self) -> int:
        """How many values are missing."""
        return 0

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing more."""
        return {}

    def num_chunks(self) -> int:
        """One chunk."""
        return 1

    def get_chunks(self, n_chunks: int | None = None) -> Iterable[Column]:
        """The column itself, or equal parts of it."""
        return (Column(part) for part in _parts(self.values, n_chunks))

    def get_buffers(self) -> dict[str, Any]:
        """The values, and of texts the places where each begins."""
        if not self._is_text:
            return {"data": (Buffer(np.array(self.values, np.int64)), self.dtype), "validity": None, "offsets": None}
        texts = [str(value).encode() for value in self.values]
        data = np.frombuffer(b"".join(texts), np.uint8)
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return {
            "data": (Buffer(data), (KIND_UINT, 8, "C", "=")),
            "validity": None,
            "offsets": (Buffer(ends), (KIND_INT, 64, "l", "=")),
        }


def _parts(values: Column_, count: int | None) -> list[Column_]:
    if count is None or count <= 1:
        return [values]
    step = -(-len(values) // count)
    return [values[start : start + step] for start in range(0, len(values), max(step, 1))]


@dataclass(frozen=True, slots=True)
class Frame:
    """A table by columns."""

    columns: Mapping[str, Column_]

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Frame:
        """Itself."""
        return self

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing more."""
        return {}

    def num_columns(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def num_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def num_chunks(self) -> int:
        """One chunk."""
        return 1

    def column_names(self) -> list[str]:
        """The names, in order."""
        return list(self.columns)

    def get_column(self, i: int) -> Column:
        """A column by number."""
        return Column(list(self.columns.values())[i])

    def get_column_by_name(self, name: str) -> Column:
        """A column by name. Raises KeyError."""
        return Column(self.columns[name])

    def get_columns(self) -> list[Column]:
        """All columns."""
        return [Column(values) for values in self.columns.values()]

    def select_columns(self, indices: Sequence[int]) -> Frame:
        """Some columns, by number."""
        names = list(self.columns)
        return self.select_columns_by_name([names[number] for number in indices])

    def select_columns_by_name(self, names: Sequence[str]) -> Frame:
        """Some columns, by name."""
        return Frame({name: self.columns[name] for name in names})

    def get_chunks(self, n_chunks: int | None = None) -> Iterable[Frame]:
        """The table itself, or parts of it."""
        parts = [_parts(values, n_chunks) for values in self.columns.values()]
        return (Frame(dict(zip(self.columns, row, strict=True))) for row in zip(*parts, strict=True))
