"""Finds a table's metadata.json, on local disk or S3, and its schema, without any engine."""

import glob
import gzip
import json
import os
import re
import urllib.parse
from dataclasses import dataclass


@dataclass(frozen=True)
class S3:
    """How a test server is reached."""

    endpoint: str
    key: str
    secret: str

    def filesystem(self):
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=self.key,
            secret_key=self.secret,
            endpoint_override=self.endpoint,
            region="us-east-1",
        )


def s3_of(options):
    if options.s3_endpoint is None:
        return None
    return S3(options.s3_endpoint, options.s3_key, options.s3_secret)


def is_s3(location):
    return location.startswith("s3://")


def local_path(location):
    """A file: URL or a plain path -> a plain path. Only URLs are percent-decoded."""
    if location.startswith("file:"):
        return urllib.parse.unquote(re.sub(r"^file:/+", "/", location))
    return os.path.abspath(location)


def metadata_path(table, s3=None):
    """The metadata.json of a table folder (version hint, else the highest version), or itself."""
    if is_s3(table):
        return s3_metadata_path(table, s3)
    path = local_path(table)
    if path.endswith(".metadata.json"):
        return path
    folder = os.path.join(path, "metadata")
    names = sorted(
        os.path.basename(p) for p in glob.glob(os.path.join(glob.escape(folder), "*.metadata.json"))
    )
    if not names:
        raise FileNotFoundError(f"{folder} holds no *.metadata.json")
    hint = hinted_version(folder)
    hinted = [n for n in names if n in (f"v{hint}.metadata.json", f"v{hint}.gz.metadata.json")]
    return os.path.join(folder, hinted[0] if hinted else max(names, key=version_of))


def s3_metadata_path(table, s3):
    """The highest version; the hint is not needed, and a list shows all there are."""
    from pyarrow.fs import FileSelector

    if table.endswith(".metadata.json"):
        return table
    folder = f"{table.removeprefix('s3://').rstrip('/')}/metadata"
    found = s3.filesystem().get_file_info(FileSelector(folder))
    names = [f.base_name for f in found if f.base_name.endswith(".metadata.json")]
    if not names:
        raise FileNotFoundError(f"{folder} holds no *.metadata.json")
    return f"s3://{folder}/{max(names, key=version_of)}"


def hinted_version(folder):
    try:
        with open(os.path.join(folder, "version-hint.text"), encoding="utf-8") as hint:
            return hint.read().strip()
    except FileNotFoundError:
        return None


def version_of(name):
    found = re.match(r"v?(\d+)", name)
    return int(found[1]) if found else -1


def load_metadata(path, s3=None):
    if is_s3(path):
        with s3.filesystem().open_input_file(path.removeprefix("s3://")) as file:
            data = file.read()
    else:
        with open(path, "rb") as file:
            data = file.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def schema_of(metadata, snapshot_id=None):
    """The table's current schema, or the one that a snapshot was written with."""
    wanted = metadata.get("current-schema-id", 0)
    for snapshot in metadata.get("snapshots", []):
        if snapshot_id is not None and snapshot["snapshot-id"] == snapshot_id:
            wanted = snapshot.get("schema-id", wanted)
    schemas = metadata.get("schemas") or [metadata["schema"]]
    return next(s for s in schemas if s.get("schema-id", 0) == wanted)


def current_snapshot(metadata):
    snapshot = metadata.get("current-snapshot-id")
    return None if snapshot in (None, -1) else snapshot
