"""Values as text files spell them (JSON, CSV) -> canonical cells, by the column's Iceberg type.

The rules are those of the product's documentation, written again here from that text: numbers are
judged by their digits and never pass through a double on the way to an integer or a decimal."""

import base64
import datetime as dt
import decimal
import re
import struct

import canonical

EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
DATE = r"(\d{4})-(\d\d)-(\d\d)"
TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
DATE_PATTERN = re.compile(DATE)
TIME_PATTERN = re.compile(TIME)
TIMESTAMP_PATTERN = re.compile(rf"{DATE}[Tt ]{TIME}\s*([Zz]|[+-]\d\d(?::?\d\d)?)?")
SPECIAL_FLOATS = {"NaN", "Infinity", "-Infinity"}


class Number(str):
    """A number by its text in the input."""


def full_match(pattern, text, what):
    found = pattern.fullmatch(text)
    if not found:
        raise ValueError(f"{text[:80]!r} is no {what}")
    return found


def integer(text):
    value = canonical.EXACT.create_decimal(text)
    if value != value.to_integral_value():
        raise ValueError(f"{text[:80]} is no integer")
    return int(value)


def single(text):
    """The nearest float of the nearest double, as every language with one `Number(text)` has it."""
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def day_number(year, month, day):
    return dt.date(int(year), int(month), int(day)).toordinal() - EPOCH_DAY


def time_ticks(hour, minute, second, fraction, digits, cut):
    fraction = fraction or ""
    if fraction[digits:].strip("0") and not cut:
        raise ValueError(f"{fraction} has more than {digits} fraction digits")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second or 0)
    return seconds * 10**digits + int(fraction[:digits].ljust(digits, "0"))


def timestamp_ticks(text, type_name, cut):
    digits = 9 if type_name.endswith("_ns") else 6
    found = full_match(TIMESTAMP_PATTERN, text, "timestamp")
    zone = found[8]
    if bool(zone) != type_name.startswith("timestamptz"):
        raise ValueError(f"{text} {'has a' if zone else 'lacks a'} zone, its column is {type_name}")
    ticks = time_ticks(*found.groups()[3:7], digits, cut)
    ticks += day_number(*found.groups()[:3]) * 86_400 * 10**digits
    if zone and zone not in "Zz":
        minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
        ticks -= (minutes if zone[0] == "+" else -minutes) * 60 * 10**digits
    return ticks


def plain_value(value, type_name, cut):
    """A JSON scalar (str, Number, bool) or a CSV field -> the plain value that a leaf writes."""
    if type_name == "string":
        return ("true" if value else "false") if isinstance(value, bool) else value
    if type_name == "boolean":
        if isinstance(value, bool):
            return value
        if value in ("true", "false") and isinstance(value, CsvField):
            return value == "true"
        raise ValueError(f"{value!r} is no boolean")
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no {type_name}")
    numeric = isinstance(value, (Number, CsvField))
    if type_name in ("int", "long") and numeric:
        return integer(value)
    if type_name in ("float", "double") and (numeric or value in SPECIAL_FLOATS):
        return single(value) if type_name == "float" else float(value)
    if type_name.startswith("decimal"):
        return decimal.Decimal(value)
    if type_name == "date":
        return day_number(*full_match(DATE_PATTERN, value, "date").groups())
    if type_name == "time":
        return time_ticks(*full_match(TIME_PATTERN, value, "time").groups(), 6, cut)
    if type_name.startswith("timestamp"):
        return timestamp_ticks(value, type_name, cut)
    if type_name == "binary" or type_name.startswith("fixed"):
        return base64.b64decode(value, validate=True)
    if type_name == "uuid":
        return value
    raise ValueError(f"{value!r} is no {type_name}")


class CsvField(str):
    """A field of a CSV file: text that may stand for a number or a boolean."""


def cell(value, iceberg_type, loose=False, cut=False):
    """The canonical cell of one parsed value. Raises ValueError where it does not fit."""
    if value is None:
        return canonical.empty_nested(iceberg_type) if loose else canonical.NULL
    if not isinstance(iceberg_type, dict):
        if iceberg_type == "string" and isinstance(value, (dict, list)):
            return canonical.quote(json_text(value))
        return canonical.leaf(iceberg_type)(plain_value(value, iceberg_type, cut))
    kind = iceberg_type["type"]
    if not isinstance(value, list if kind == "list" else dict):
        raise ValueError(f"{str(value)[:80]!r} is no {kind}")
    if kind == "list":
        return canonical.list_cell(cell(v, iceberg_type["element"], loose, cut) for v in value)
    if kind == "map":
        key, item = iceberg_type["key"], iceberg_type["value"]
        return canonical.map_cell(
            (cell(k, key), cell(v, item, loose, cut)) for k, v in value.items()
        )
    fields = iceberg_type["fields"]
    refuse_unknown(value, fields)
    return canonical.struct_cell(
        fields, [cell(value.get(f["name"]), f["type"], loose, cut) for f in fields]
    )


def refuse_unknown(record, fields):
    """A field that the table lacks may only be one that says nothing: null, [] or {}."""
    known = {f["name"] for f in fields}
    for name, value in record.items():
        if name not in known and value not in (None, [], {}):
            raise ValueError(f"the schema has no field {name}")


def json_text(value):
    """Compact JSON text of a parsed value, its numbers as they were spelled."""
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{canonical.quote(k)}:{json_text(v)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return value if isinstance(value, Number) else canonical.quote(value)
