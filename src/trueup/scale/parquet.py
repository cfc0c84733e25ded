"""Parquet files read row group by row group, without a database in between.

Only plain columns: numbers as floats, whole-number ids, answers as text or whole
numbers. What is anything else goes through DuckDB, which converts it; both give the
same batches (a test compares them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from trueup.data.convert import is_numeric
from trueup.scale.stream import BY_PAGES, damaged

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
PLACES_A_FILE = 1 << 40
"""Rows are numbered file by file, so many numbers apart; files from one."""
_FEWEST_GROUPS = 8
"""Row groups that a sample takes at least."""
_ALIKE = 0.8
"""Share of a column's range that each row group covers, if they are alike."""


@dataclass(frozen=True, slots=True, eq=False)
class ParquetTable:
    """Files that hold one table, their schemas and sizes."""

    paths: tuple[str, ...]
    metadata: tuple[Any, ...]
    schemas: tuple[Any, ...]

    @classmethod
    def open(cls, paths: tuple[str, ...]) -> Self:
        """Read the footers; what cannot be read is an error that names the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        footers, schemas = [], []
        for path in paths:
            try:
                with pq.ParquetFile(path) as file:
                    footers.append(file.metadata)
                    schemas.append(file.schema_arrow)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise damaged(path, "", error) from error
        return cls(paths, tuple(footers), tuple(schemas))

    @property
    def n_items(self) -> int:
        """Rows of all files."""
        return sum(footer.num_rows for footer in self.metadata)

    def columns(self) -> dict[str, bool]:
        """Column names of the first file, and whether they hold numbers."""
        return {field.name: is_numeric(field.type) for field in self.schemas[0]}

    def is_plain(self, floats: list[str], texts: list[str], number: str | None) -> bool:
        """Whether all files hold these columns in types that need no conversion."""
        import pyarrow as pa

        types = pa.types
        wanted = dict.fromkeys(floats, types.is_floating)
        wanted |= dict.fromkeys(texts, _is_answer)
        if number is not None:
            wanted[number] = types.is_signed_integer
        return all(
            schema.get_field_index(name) >= 0 and holds(schema.field(name).type)
            for schema in self.schemas
            for name, holds in wanted.items()
        )

    def sampled(self, columns: list[str], share: int) -> list[tuple[int, RowGroup]]:
        """One row group in ``share``, evenly spaced; all, if groups are not alike.

        In files that are sorted by a report, groups differ and a few would not do. The
        footers tell: groups are alike where each one's reports range almost as widely
        as all.
        """
        everything = list(self.groups())
        n_wanted = max(_FEWEST_GROUPS, -(-len(everything) // share))
        if n_wanted >= len(everything) or not self._is_alike(columns):
            return everything
        step = len(everything) / n_wanted
        return [everything[int((i + 0.5) * step)] for i in range(n_wanted)]

    def _is_alike(self, columns: list[str]) -> bool:
        """Whether in every row group every column ranges almost as widely as in all."""
        ranges = []
        for footer in self.metadata:
            names = [footer.schema.column(i).path for i in range(footer.num_columns)]
            places = [names.index(column) for column in columns]
            for g in range(footer.num_row_groups):
                group = footer.row_group(g)
                found = [group.column(place).statistics for place in places]
                if not all(one is not None and one.has_min_max for one in found):
                    return False
                ranges.append([(one.min, one.max) for one in found])
        low, high = np.array(ranges, dtype=np.float64).transpose(2, 0, 1)
        widest = high.max(axis=0) - low.min(axis=0)
        return bool((high - low >= _ALIKE * widest).all())

    def groups(self) -> Iterator[tuple[int, RowGroup]]:
        """Rows before it, and each row group, in order."""
        n_before = 0
        for index, footer in enumerate(self.metadata):
            first = 0
            for group in range(footer.num_row_groups):
                yield (
                    n_before,
                    RowGroup(
                        self.paths[index],
                        footer,
                        group,
                        (index + 1) * PLACES_A_FILE + first,
                    ),
                )
                n_rows = footer.row_group(group).num_rows
                n_before, first = n_before + n_rows, first + n_rows


@dataclass(frozen=True, slots=True, eq=False)
class RowGroup:
    """One row group of one file."""

    path: str
    metadata: Any
    group: int
    first: int
    """Number of its first row."""

    @property
    def n_rows(self) -> int:
        """Rows of this group."""
        return int(self.metadata.row_group(self.group).num_rows)

    def batches(
        self, columns: list[str], number: str | None
    ) -> Iterator[list[pa.Array]]:
        """Numbers of the rows and columns as they stand, a batch at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = list(dict.fromkeys([*columns, *([number] if number else [])]))
        first = self.first
        try:
            with pq.ParquetFile(self.path, metadata=self.metadata, **BY_PAGES) as file:
                for batch in file.iter_batches(
                    BATCH_ROWS,
                    row_groups=[self.group],
                    columns=names,
                    use_threads=False,
                ):
                    if number is None:
                        numbers = pa.array(np.arange(first, first + len(batch)))
                    else:
                        numbers = batch.column(number)
                    yield [numbers, *(batch.column(name) for name in columns)]
                    first += len(batch)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(self.path, f"row group {self.group} of ", error) from error


def _is_answer(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind)
    return bool(text or types.is_integer(kind))
