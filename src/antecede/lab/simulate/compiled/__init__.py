"""Compiled engines of the simulator."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.simulate.compiled.hierarchy.engine import run_hierarchy
    from antecede.lab.simulate.compiled.mesh.engine import run_mesh
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"hierarchy.engine": "run_hierarchy", "mesh.engine": "run_mesh"}
    )
