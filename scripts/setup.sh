#!/bin/sh
# Make .venv and install the project into it: "user" for the demo, "dev" for tests and checks.
# Brings a Java runtime through pip when the machine has none of version 17 or newer.
set -eu
cd "$(dirname "$0")/.."
want=$1

say() { printf '  %s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
        if new_enough "$python"; then echo "$python"; return; fi
    done
    say "antecede needs Python 3.11, 3.12 or 3.13 (set PYTHON=/path/to/python3.12 if it is not on the PATH)"
    exit 1
}

make_venv() {
    python=$(find_python)
    say "making .venv with $("$python" --version)"
    "$python" -m venv .venv 2>/dev/null || {
        # Debian's python3 comes without ensurepip; virtualenv does not need it.
        rm -rf .venv
        "$python" -m pip install --quiet --user virtualenv
        "$python" -m virtualenv --quiet .venv
    }
    .venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
}

[ -x .venv/bin/python ] && new_enough .venv/bin/python || make_venv

say "installing antecede (about a minute; PySpark is 450 MB)"
if [ "$want" = dev ]; then
    .venv/bin/python -m pip install --quiet --group dev --editable '.[all]'
else
    .venv/bin/python -m pip install --quiet --editable '.[all]'
fi

if ! .venv/bin/python -m antecede.spark.java --quiet; then
    say "no Java 17 or newer here: bringing one through pip"
    .venv/bin/python -m pip install --quiet --editable '.[all,java]'
    .venv/bin/python -m antecede.spark.java --quiet || {
        say "still no usable Java; see the message of: .venv/bin/python -m antecede.spark.java"
        exit 1
    }
fi
say "compiling the kernels, once"
.venv/bin/antecede compile >/dev/null

touch .venv/.user
[ "$want" = dev ] && touch .venv/.dev || true
