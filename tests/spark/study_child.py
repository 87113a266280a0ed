"""Child process: a study on Spark that is killed, or completes.

    python study_child.py FOLDER MASTER [PY_FILES]

The runs are in FOLDER/runs (one per line), results go to FOLDER/study, and FOLDER/pids holds the
pids of this process and its JVM.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from antecede.lab.reproductions.framework import runner
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.spark_runner import spark_engine
from antecede.spark.session import cluster_session, quiet_failures
from tests.lab.reproductions import toy


def main(folder: Path, master: str, py_files: list[str]) -> None:
    if master.startswith("local"):  # sources may be edited between the two starts of one test
        vars(runner)["code_digest"] = lambda modules: "the same"
    settings = {"spark.executor.memory": "512m", "spark.sql.codegen.wholeStage": "false"}
    spark = cluster_session(
        master,
        py_files=py_files,
        java_options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        settings=settings,
    )
    quiet_failures(spark)
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.lang.ProcessHandle.current().pid()
    (folder / "pids").write_text(f"{os.getpid()} {java}")
    runs = [Run.from_text(line) for line in (folder / "runs").read_text().splitlines()]
    done = conduct(toy.with_runs(*runs), spark_engine(spark), folder / "study")
    print(f"carried out {done.carried_out}, stored {done.stored}, failed {done.findings.failed}")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
