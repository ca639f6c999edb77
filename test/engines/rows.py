"""Rows of canonical cells, their digest and their file.

A row is an object with its columns sorted by name. A digest is the sum of the rows' SHA-256 modulo
2^256, so it does not depend on their order and still counts duplicates."""

import hashlib
import json

from canonical import quote

SYSTEM_COLUMNS = ("__bucket", "__offset", "__timestamp")


def row_lines(columns):
    """Row texts from {name: cells}; columns sorted by name."""
    names = sorted(columns)
    heads = [f"{quote(name)}:" for name in names]
    for cells in zip(*(columns[name] for name in names)):
        yield "{" + ",".join(map(str.__add__, heads, cells)) + "}"


class RowSet:
    """Counts and digests row texts as they come; keeps them only after keep()."""

    def __init__(self):
        self.lines = None
        self.count = 0
        self.total = 0

    def keep(self):
        self.lines = []

    def add(self, lines):
        for line in lines:
            self.count += 1
            self.total += int.from_bytes(hashlib.sha256(line.encode()).digest(), "big")
            if self.lines is not None:
                self.lines.append(line)

    def digest(self):
        return f"{self.total % 2**256:064x}"

    def write(self, path):
        with open(path, "w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"{line}\n" for line in sorted(self.lines))


class TableRows:
    """The rows of one table in both forms; --rows asks for one of them to be written."""

    def __init__(self, rows_path, write_loose):
        self.exact, self.loose = RowSet(), RowSet()
        self.path = rows_path
        self.written = self.loose if write_loose else self.exact
        if rows_path:
            self.written.keep()

    def add(self, types, cells_of):
        """One batch: Iceberg types by column name, and cells_of(name, loose)."""
        exact = {name: cells_of(name, False) for name in types}
        lines = list(row_lines(exact))
        self.exact.add(lines)
        nested = {n: cells_of(n, True) for n, kind in types.items() if isinstance(kind, dict)}
        self.loose.add(row_lines(exact | nested) if nested else lines)

    def finish(self, engine):
        """Writes the rows that were asked for and returns the report as JSON text."""
        if self.path:
            self.written.write(self.path)
        return json.dumps({
            "engine": engine,
            "rows": self.exact.count,
            "digest": self.exact.digest(),
            "looseDigest": self.loose.digest(),
        })  # fmt: skip
