"""The canonical text of Iceberg values: one JSON text for one value, whoever read it.

A cell is written as JSON text by its Iceberg type, never by what an engine returned:

  boolean             true | false
  int, long           a number; a string beyond +-(2^53 - 1)
  float, double       a number; "NaN", "Infinity", "-Infinity" and "-0.0" as strings
  decimal(p, s)       a string with exactly s fraction digits
  date, time          "YYYY-MM-DD", "HH:MM:SS.ffffff"
  timestamp           "YYYY-MM-DDTHH:MM:SS.ffffff", with "Z" for timestamptz, nine digits for _ns
  string, uuid        a string
  binary, fixed       "0x" and hexadecimal digits
  list, map, struct   array, array of [key, value] sorted by key text, object in schema order
"""

import decimal
import functools
import json
import math
import re
import uuid

import pyarrow as pa
import pyarrow.compute as pc

EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
NULL = "null"

quote = json.encoder.encode_basestring


# ---------------------------------------------------------------- leaves: a plain value -> JSON text


@functools.lru_cache(maxsize=65536)
def date_text(days):
    """Civil date of a day number since 1970-01-01, any year (datetime stops at 1 and 9999)."""
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    return f"{year_text}-{month:02d}-{day:02d}"


def time_text(ticks, unit):
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND[unit])
    digits = 9 if unit == "ns" else 6
    return (
        f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"
    )


def timestamp_text(ticks, unit):
    days, rest = divmod(ticks, 86_400 * TICKS_PER_SECOND[unit])
    return f"{date_text(days)}T{time_text(rest, unit)}"


def integer_cell(value):
    value = int(value)
    return str(value) if -(2**53) < value < 2**53 else f'"{value}"'


def float_cell(value):
    value = float(value)
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 and math.copysign(1, value) < 0:
        return '"-0.0"'
    return repr(value)


def decimal_cell(scale):
    step = decimal.Decimal(1).scaleb(-scale)

    def cell(value):
        exact = EXACT.quantize(decimal.Decimal(value), step)
        return f'"{exact if exact else abs(exact):f}"'

    return cell


def string_cell(value):
    return quote(value if isinstance(value, str) else bytes(value).decode())


def uuid_cell(value):
    if isinstance(value, (bytes, bytearray)):
        value = uuid.UUID(bytes=bytes(value))
    return f'"{uuid.UUID(str(value))}"'


def binary_cell(value):
    return f'"0x{value.encode().hex() if isinstance(value, str) else bytes(value).hex()}"'


LEAVES = {
    "boolean": lambda value: "true" if value else "false",
    "int": integer_cell,
    "long": integer_cell,
    "float": float_cell,
    "double": float_cell,
    "date": lambda days: f'"{date_text(days)}"',
    "time": lambda micros: f'"{time_text(micros, "us")}"',
    "timestamp": lambda micros: f'"{timestamp_text(micros, "us")}"',
    "timestamptz": lambda micros: f'"{timestamp_text(micros, "us")}Z"',
    "timestamp_ns": lambda nanos: f'"{timestamp_text(nanos, "ns")}"',
    "timestamptz_ns": lambda nanos: f'"{timestamp_text(nanos, "ns")}Z"',
    "string": string_cell,
    "uuid": uuid_cell,
    "binary": binary_cell,
    "unknown": lambda value: NULL,
}


@functools.lru_cache(maxsize=None)
def leaf(type_name):
    """The function that writes one non-null plain value of a primitive Iceberg type.

    Plain values: int (days, microseconds or nanoseconds for dates and times), float, bool, str,
    bytes, Decimal."""
    if type_name.startswith("decimal"):
        return decimal_cell(int(re.search(r",\s*(\d+)", type_name)[1]))
    if type_name.startswith("fixed"):
        return binary_cell
    if type_name not in LEAVES:
        raise ValueError(f"no canonical form for Iceberg type {type_name}")
    return LEAVES[type_name]


# ---------------------------------------------------------------- nesting


def list_cell(elements):
    return f"[{','.join(elements)}]"


def map_cell(entries):
    return list_cell(f"[{key},{value}]" for key, value in sorted(entries))


def struct_cell(fields, cells):
    return "{" + ",".join(f"{quote(f['name'])}:{c}" for f, c in zip(fields, cells)) + "}"


def empty_nested(iceberg_type, required=False):
    """What a null list, map or struct is in the loose form: ClickHouse has no such nulls, so a null
    struct comes as one of nulls, with a zero or empty value where a field of it is required."""
    if not isinstance(iceberg_type, dict):
        return leaf(iceberg_type)(zero_value(iceberg_type)) if required else NULL
    if iceberg_type["type"] != "struct":
        return "[]"
    fields = iceberg_type["fields"]
    return struct_cell(fields, [empty_nested(f["type"], f["required"]) for f in fields])


def zero_value(type_name):
    if type_name in ("string", "binary"):
        return b""
    if type_name.startswith("fixed"):
        return bytes(int(re.search(r"\d+", type_name)[0]))
    return bytes(16) if type_name == "uuid" else 0


# ---------------------------------------------------------------- Arrow columns -> cells


def arrow_cells(array, iceberg_type, loose=False, cut_nanos=False):
    """Cells of one Arrow array, typed by Iceberg. `loose` writes null nested values as empty ones;
    `cut_nanos` floors nanoseconds to the microseconds of the column instead of refusing them."""
    array = plain_array(array)
    if pa.types.is_null(array.type):
        return [empty_nested(iceberg_type) if loose else NULL] * len(array)
    if isinstance(iceberg_type, dict):
        cells = nested_cells(array, iceberg_type, loose, cut_nanos)
        if array.null_count:
            null = empty_nested(iceberg_type) if loose else NULL
            cells = [c if v else null for c, v in zip(cells, array.is_valid().to_pylist())]
        return cells
    write = leaf(iceberg_type)
    values = leaf_values(array, iceberg_type, cut_nanos)
    return [NULL if value is None else write(value) for value in values]


def plain_array(array):
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        return plain_array(array.storage)
    if pa.types.is_dictionary(array.type):
        return plain_array(array.dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return plain_array(pc.run_end_decode(array))
    return array


def nested_cells(array, iceberg_type, loose, cut_nanos):
    kind = iceberg_type["type"]
    if kind == "struct":
        fields = iceberg_type["fields"]
        if not fields:
            return ["{}"] * len(array)
        columns = [
            arrow_cells(array.field(i), f["type"], loose, cut_nanos)
            for i, f in zip(child_positions(array.type, fields), fields)
        ]
        return [struct_cell(fields, cells) for cells in zip(*columns)]
    spans = list_spans(array)
    if kind == "list":
        elements = arrow_cells(array.values, iceberg_type["element"], loose, cut_nanos)
        return [list_cell(elements[start:end]) for start, end in spans]
    entries = (
        array if pa.types.is_map(array.type) else array.values
    )  # ClickHouse may give list<struct>
    parts = (
        (entries.keys, entries.items)
        if pa.types.is_map(array.type)
        else (entries.field(0), entries.field(1))
    )
    keys = arrow_cells(parts[0], iceberg_type["key"], loose, cut_nanos)
    values = arrow_cells(parts[1], iceberg_type["value"], loose, cut_nanos)
    return [map_cell(zip(keys[start:end], values[start:end])) for start, end in spans]


def child_positions(kind, fields):
    """Where each field of the schema is in an Arrow struct: by name, else by position."""
    names = [kind.field(i).name for i in range(kind.num_fields)]
    wanted = [f["name"] for f in fields]
    if len(names) != len(wanted):
        raise ValueError(f"struct has fields {names}, the schema says {wanted}")
    return [names.index(n) for n in wanted] if set(names) == set(wanted) else range(len(wanted))


def list_spans(array):
    """Start and end of each list in the child array (`values` ignores the array's own offset)."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return [
            ((array.offset + i) * size, (array.offset + i + 1) * size) for i in range(len(array))
        ]
    offsets = array.offsets.to_pylist()
    if hasattr(array, "sizes"):
        return [
            (start, start + (size or 0)) for start, size in zip(offsets, array.sizes.to_pylist())
        ]
    return list(zip(offsets, offsets[1:]))


def leaf_values(array, type_name, cut_nanos):
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        ticks = array.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).to_pylist()
        return change_unit(ticks, kind.unit, "ns" if type_name.endswith("_ns") else "us", cut_nanos)
    if pa.types.is_date(kind):
        return array.cast(pa.date32()).cast(pa.int32()).to_pylist()
    if type_name == "time":
        raise ValueError(
            f"time came as {kind}: chdb cuts it to whole seconds, leave the column out"
        )
    return array.to_pylist()


def change_unit(ticks, unit, wanted, cut):
    source, target = TICKS_PER_SECOND[unit], TICKS_PER_SECOND[wanted]
    if source <= target:
        return [None if t is None else t * (target // source) for t in ticks]
    factor = source // target
    if not cut and any(t is not None and t % factor for t in ticks):
        raise ValueError(f"a value has {unit} digits, its column holds {wanted}")
    return [None if t is None else t // factor for t in ticks]


def guessed_type(kind, binary_is_text=False):
    """The Iceberg type of a result column that is in no schema (an expression of --sql)."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return "uuid" if kind.extension_name == "arrow.uuid" else guessed_type(kind.storage_type)
    if types.is_dictionary(kind):
        return guessed_type(kind.value_type, binary_is_text)
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        return "long"  # a sum is HUGEINT in one engine and BIGINT in another
    if types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if types.is_floating(kind):
        return "double"
    if types.is_date(kind):
        return "date"
    if types.is_time(kind):
        return "time"
    if types.is_timestamp(kind):
        return ("timestamptz" if kind.tz else "timestamp") + ("_ns" if kind.unit == "ns" else "")
    if types.is_struct(kind):
        fields = [
            {"name": f.name, "type": guessed_type(f.type, binary_is_text), "required": False}
            for f in kind
        ]
        return {"type": "struct", "fields": fields}
    if types.is_map(kind):
        parts = (
            guessed_type(kind.key_type, binary_is_text),
            guessed_type(kind.item_type, binary_is_text),
        )
        return {"type": "map", "key": parts[0], "value": parts[1]}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "list", "element": guessed_type(kind.value_type, binary_is_text)}
    if types.is_null(kind):
        return "unknown"
    binary = (
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )
    return "binary" if binary and not binary_is_text else "string"
