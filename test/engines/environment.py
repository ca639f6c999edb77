"""Runs a program in the environment that its set of engines was installed into."""

import os
import sys

FAILED, NOT_INSTALLED = 2, 3
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def enter_environment(engine_set):
    """Starts this program again in the interpreter of the set, unless it already runs there.
    Exits with status 3 where the set is not installed."""
    home = os.environ.setdefault("SLUICE_ENGINES_HOME", os.path.join(REPOSITORY, ".engines"))
    folder = os.path.join(home, engine_set)
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        print(f"{folder} is not installed: run test/engines/setup.sh {engine_set}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python, *sys.argv])
