#!/usr/bin/env python3
"""Answers many filters over one table by one engine: torture_filters.py ENGINE TABLE FILTERS.json

FILTERS is a list of {column, type, operator, value}: `value` is JSON text as an input would have it,
`type` the column's Iceberg type, `operator` one of = < > <= >= null notnull. Prints a JSON list, in
the same order, of the sorted values of the column `id` in the rows that the engine returns.
"""

import base64
import json
import sys

from environment import enter_environment

OPERATORS = ("=", "<", ">", "<=", ">=")


def main(engine, table, filters_file):
    enter_environment("fast")
    from table_metadata import metadata_path

    with open(filters_file, encoding="utf-8") as file:
        filters = json.load(file)
    path = metadata_path(table)
    answers = by_pyiceberg(path, filters) if engine == "pyiceberg" else by_sql(engine, path, filters)
    print(json.dumps([sorted(ids) for ids in answers]))


def by_pyiceberg(path, filters):
    import pyiceberg.expressions as e
    from pyiceberg.table import StaticTable

    comparisons = {"=": e.EqualTo, "<": e.LessThan, ">": e.GreaterThan,
                   "<=": e.LessThanOrEqual, ">=": e.GreaterThanOrEqual}  # fmt: skip
    table = StaticTable.from_metadata(path)
    for each in filters:
        column = e.Reference(each["column"])
        if each["operator"] == "null":
            found = e.IsNull(column)
        elif each["operator"] == "notnull":
            found = e.NotNull(column)
        else:
            found = comparisons[each["operator"]](column, pyiceberg_value(each))
        yield table.scan(row_filter=found, selected_fields=("id",)).to_arrow()["id"].to_pylist()


def pyiceberg_value(each):
    import decimal

    from text_values import timestamp_ticks

    text, kind = plain(each), each["type"]
    if kind == "binary":
        return base64.b64decode(text)
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        return decimal.Context(prec=60).quantize(decimal.Decimal(text), decimal.Decimal(1).scaleb(-scale))
    if kind in ("int", "long"):
        return int(text)
    if kind.startswith("timestamp"):
        return timestamp_ticks(text, kind, False)
    return float(text) if kind in ("float", "double") else text


def by_sql(engine, path, filters):
    """One query for many filters: each part of the union is pruned by itself."""
    from readers import READERS, Request

    names = {"duckdb": '"{}"', "chdb": "`{}`"}[engine]
    literal = {"duckdb": duckdb_literal, "chdb": clickhouse_literal}[engine]
    answers = [[] for _ in filters]
    for start in range(0, len(filters), 40):
        parts = []
        for at, each in enumerate(filters[start : start + 40], start):
            column = names.format(each["column"])
            if each["operator"] in OPERATORS:
                where = f"{column} {each['operator']} {literal(each)}"
            else:
                where = f"{column} IS {'NOT ' if each['operator'] == 'notnull' else ''}NULL"
            parts.append(f"SELECT {at} AS filter, id FROM {{t}} WHERE {where}")
        sql = " UNION ALL ".join(parts)
        for batch in READERS[engine](Request(path, path, None, None, sql, None)):
            for at, number in zip(batch.column("filter").to_pylist(), batch.column("id").to_pylist()):
                answers[at].append(number)
    return answers


def plain(each):
    value = each["value"]
    return json.loads(value) if value.startswith('"') else value


def duckdb_literal(each):
    text, kind = plain(each), each["type"]
    if kind == "binary":
        return f"from_base64('{text}')"
    types = {"int": "INTEGER", "long": "BIGINT", "string": "VARCHAR", "timestamptz": "TIMESTAMPTZ"}
    if kind == "string" and "\0" in text:
        return " || chr(0) || ".join(quoted(part) for part in text.split("\0"))
    return f"CAST({quoted(text)} AS {types.get(kind, kind)})"


def clickhouse_literal(each):
    text, kind = plain(each), each["type"]
    if kind == "binary":
        return f"unhex('{base64.b64decode(text).hex()}')"
    if kind == "string":
        return f"unhex('{text.encode().hex()}')"
    if kind.startswith("decimal"):
        return f"toDecimal128('{text}', {kind.rstrip(')').split(',')[1].strip()})"
    if kind in ("timestamp", "timestamptz"):
        return f"parseDateTime64BestEffort('{text}', 6, 'UTC')"
    functions = {"int": "toInt32", "long": "toInt64", "float": "toFloat32", "double": "toFloat64", "date": "toDate32"}
    return f"{functions[kind]}('{text}')"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    main(*sys.argv[1:])
