"""Framework for studies: runs, engines, stored results, pages."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.reproductions.framework.execute import run_locally
    from antecede.lab.reproductions.framework.local_runner import Processes, cores
    from antecede.lab.reproductions.framework.page_builder import findings_from_tables, read_page
    from antecede.lab.reproductions.framework.registry import STUDIES, load
    from antecede.lab.reproductions.framework.runner import Conducted, Engine, Interrupted, conduct
    from antecede.lab.reproductions.framework.runs import Run
    from antecede.lab.reproductions.framework.spark_runner import spark_engine
    from antecede.lab.reproductions.framework.study import (
        Metrics,
        Study,
        make_simulation_run,
        simulate_run,
    )
    from antecede.lab.reproductions.framework.summary import read_summary, write_summary
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "execute": "run_locally",
            "local_runner": "Processes cores",
            "page_builder": "findings_from_tables read_page",
            "registry": "STUDIES load",
            "runner": "Conducted Engine Interrupted conduct",
            "runs": "Run",
            "spark_runner": "spark_engine",
            "study": "Metrics Study simulate_run make_simulation_run",
            "summary": "read_summary write_summary",
        },
    )
