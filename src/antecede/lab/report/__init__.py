"""HTML pages and plots of reproductions."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.report.atomic_files import write_whole
    from antecede.lab.report.drawing import inline_svg
    from antecede.lab.report.model import (
        NO_METRICS,
        Claim,
        Findings,
        Plot,
        Row,
        Section,
        Series,
        check_findings,
        drop_empty_sections,
    )
    from antecede.lab.report.notebook import curves
    from antecede.lab.report.page import Figure, render
    from antecede.lab.report.pictures import as_picture
    from antecede.lab.report.plots import draw_plot, slots_of
    from antecede.lab.report.study import look, write_overview, write_study
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "atomic_files": "write_whole",
            "drawing": "inline_svg",
            "model": "Claim Findings NO_METRICS Plot Row Section Series check_findings "
            "drop_empty_sections",
            "notebook": "curves",
            "page": "Figure render",
            "pictures": "as_picture",
            "plots": "draw_plot slots_of",
            "study": "look write_overview write_study",
        },
    )
