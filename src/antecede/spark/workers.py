"""Check that Spark's Python workers can import antecede.

Workers run PYSPARK_PYTHON (or `spark.pyspark.python`), else `python3`. On a local master without a
configured interpreter, they get the driver's. In all other cases one task per session checks the
import, because every task would fail with ModuleNotFoundError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from antecede.errors import SetupError

_checked: WeakSet[Any] = WeakSet()


def check_workers(session: SparkSession) -> None:
    """Check that workers can import antecede. Raises SetupError with the setting to change."""
    from antecede.spark.session import is_local  # see `python -m antecede.spark.java`

    context: Any = getattr(session, "_sc", None)  # a remote session (Spark Connect) has none
    if context is None or context in _checked:
        return
    local = is_local(str(context.master))
    settings = ("spark.pyspark.python", "spark.pyspark.driver.python")
    named = os.environ.get("PYSPARK_PYTHON") or any(map(context.getConf().get, settings))
    if local and not named:
        context.pythonExec = sys.executable
    if not (local and context.pythonExec == sys.executable):
        error_text = _try_import(context)
        if error_text:
            raise SetupError(
                f"Spark's Python workers run {context.pythonExec}, which lacks antecede "
                f"({error_text}): set "
                f"PYSPARK_PYTHON={sys.executable if local else '/path/to/python'} before the "
                "session is made, to an interpreter that has antecede and its extra [spark]"
                + (", or use antecede.spark.session.local_session()" if local else "")
            )
    _checked.add(context)


def _try_import(context: Any) -> str:
    def try_import(_: Iterable[int]) -> list[str]:  # pickled by value
        try:
            import antecede.tables.order.table  # noqa: F401
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
        return [""]

    try:
        return str(context.parallelize([0], 1).mapPartitions(try_import).collect()[0])
    except Exception as error:  # the interpreter does not start or has another version
        lines = [line.strip() for line in str(error).splitlines()]
        lines = [line for line in lines if line and not line.startswith("at ")]
        begin = [k + 1 for k, line in enumerate(lines) if "from python worker" in line]
        first_line = lines[begin[0]] if begin and begin[0] < len(lines) else (lines or [""])[0]
        return first_line[:200] or type(error).__name__
