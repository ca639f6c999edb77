#!/usr/bin/env python3
"""Compares what the manifests of a table say about its files with the files, read by pyarrow.

Usage: torture_statistics.py TABLE. Prints {"files", "rowGroups", "fields", "bounds", "problems"}: how
much was looked at, and a line for each value of a manifest that differs from the one recomputed here.
"""

import json
import math
import os
import sys
from urllib.parse import unquote

from environment import enter_environment

CUT = 16


def main(table):
    enter_environment("fast")
    from pyiceberg.table import StaticTable
    from table_metadata import metadata_path

    opened = StaticTable.from_metadata(metadata_path(table))
    seen = {"files": 0, "rowGroups": 0, "fields": 0, "bounds": 0, "problems": []}
    for manifest in opened.current_snapshot().manifests(opened.io):
        entries = manifest.fetch_manifest_entry(opened.io)
        for entry in entries:
            check_file(opened.schema(), entry.data_file, seen)
        if manifest.added_rows_count + manifest.existing_rows_count != sum(e.data_file.record_count for e in entries):
            seen["problems"].append(f"{manifest.manifest_path}: row counts of the manifest list")
    seen["problems"] = seen["problems"][:20]
    print(json.dumps(seen))


def check_file(schema, data_file, seen):
    import pyarrow.parquet as pq

    path = data_file.file_path.removeprefix("file://")
    path = path if os.path.exists(path) else unquote(path)
    file = pq.ParquetFile(path)
    footer = file.metadata
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    seen["files"] += 1
    seen["rowGroups"] += len(groups)

    def expect(what, found, wanted):
        if found != wanted:
            seen["problems"].append(f"{os.path.basename(path)}: {what} is {found!r}, recomputed {wanted!r}")

    expect("record_count", data_file.record_count, footer.num_rows)
    expect("file_size_in_bytes", data_file.file_size_in_bytes, os.path.getsize(path))
    starts = [group_start(group) for group in groups]
    expect("split_offsets", list(data_file.split_offsets), starts)
    expect("the order of split_offsets", starts, sorted(set(starts)))
    if any(group.num_rows == 0 for group in groups):
        expect("empty row groups", 1, 0)
    table = file.read()
    bucket = data_file.partition[0]
    expect("__bucket", set(table["__bucket"].to_pylist()), {bucket})
    for at, (field_id, name, column, is_repeated) in enumerate(leaves(table)):
        seen["fields"] += 1
        chunks = [group.column(at) for group in groups]
        expect(f"{name} column_sizes", data_file.column_sizes[field_id], sum(c.total_compressed_size for c in chunks))
        expect(f"{name} value_counts", data_file.value_counts[field_id], sum(c.num_values for c in chunks))
        if is_repeated:
            expect(f"{name} has bounds", field_id in data_file.lower_bounds or field_id in data_file.upper_bounds, False)
            continue
        values = column
        expect(f"{name} null counts", data_file.null_value_counts[field_id], sum(v is None for v in values))
        kind = schema.find_field(field_id).field_type
        if str(kind) in ("float", "double"):
            nans = sum(v is not None and math.isnan(v) for v in values)
            expect(f"{name} nan counts", data_file.nan_value_counts[field_id], nans)
        elif field_id in (data_file.nan_value_counts or {}):
            expect(f"{name} has nan counts", True, False)
        lower, upper = bounds_of(kind, [v for v in values if v is not None and v == v])
        for what, found, wanted in (
            ("lower", data_file.lower_bounds.get(field_id), lower),
            ("upper", data_file.upper_bounds.get(field_id), upper),
        ):
            seen["bounds"] += wanted is not None
            expect(f"{name} {what} bound", found, wanted)


def group_start(group):
    offsets = []
    for at in range(group.num_columns):
        chunk = group.column(at)
        offsets += [o for o in (chunk.dictionary_page_offset, chunk.data_page_offset) if o is not None]
    return min(offsets)


def leaves(table):
    """(field id, dotted name, values or None, below a list or map) of each leaf, in file order."""
    for name, field in zip(table.schema.names, table.schema):
        yield from leaves_of(name, field, table[name].combine_chunks(), False)


def leaves_of(path, field, array, is_repeated):
    import pyarrow as pa

    kind = field.type
    children = []
    if pa.types.is_struct(kind):
        # flatten() carries the nulls of the struct over to its fields.
        children = list(zip(kind, array.flatten() if array is not None and not is_repeated else [None] * kind.num_fields))
    elif pa.types.is_map(kind):
        children, is_repeated = [(kind.key_field, None), (kind.item_field, None)], True
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children, is_repeated = [(kind.value_field, None)], True
    if pa.types.is_nested(kind):
        for child, values in children:
            yield from leaves_of(f"{path}.{child.name}", child, values, is_repeated)
        return
    yield int(field.metadata[b"PARQUET:field_id"]), path, plain(array), is_repeated


def plain(array):
    """Days and microseconds as integers, others as Python has them."""
    import pyarrow as pa

    if array is None:
        return None
    kind = array.type
    if pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        assert kind.unit == "us", kind
        array = array.cast(pa.int64())
    return array.to_pylist()


def bounds_of(kind, values):
    """Bounds in the single-value form of the specification, written here from its text."""
    import struct

    if not values:
        return None, None
    name = str(kind)
    if name == "string":
        least, most = (pick(values, key=lambda v: v.encode()) for pick in (min, max))
        upper = most if len(most) <= CUT else next_text(most[:CUT])
        return least[:CUT].encode(), None if upper is None else upper.encode()
    if name == "binary":
        least, most = min(values), max(values)
        return least[:CUT], most if len(most) <= CUT else next_bytes(most[:CUT])
    least, most = min(values), max(values)
    if name in ("float", "double"):
        # Zeros of either sign are equal to Python, not to the order of the specification.
        least, most = (-0.0 if least == 0 else least), (0.0 if most == 0 else most)
    forms = {"boolean": "<?", "int": "<i", "date": "<i", "float": "<f", "double": "<d"}
    if name.startswith("decimal"):
        return tuple(decimal_bytes(v, kind.scale) for v in (least, most))
    form = forms.get(name, "<q")
    return struct.pack(form, least), struct.pack(form, most)


def decimal_bytes(value, scale):
    import decimal

    unscaled = int(value.scaleb(scale, decimal.Context(prec=60)))
    length = 1
    while not -(1 << (8 * length - 1)) <= unscaled < 1 << (8 * length - 1):
        length += 1
    return unscaled.to_bytes(length, "big", signed=True)


def next_text(text):
    """The least text above all that begin so, or None."""
    for at in range(len(text) - 1, -1, -1):
        point = ord(text[at]) + 1
        point = 0xE000 if 0xD800 <= point <= 0xDFFF else point
        if point <= 0x10FFFF:
            return text[:at] + chr(point)
    return None


def next_bytes(data):
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


if __name__ == "__main__":
    main(*sys.argv[1:])
