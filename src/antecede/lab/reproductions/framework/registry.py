"""Registry of reproductions by name. Their modules are imported on request."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from antecede.errors import InputError
from antecede.lab.reproductions.framework.study import Study

STUDIES = {
    "hierarchy": "Evropeytsev et al. 2016: control information of a hierarchy, IDR and DS",
    "clocks": "Tsuneizumi et al.: linear and physical time, by accuracy",
    "topics": "Nakayama 2017: topic vectors and heterogeneous time",
    "semantic": "Bhavanasi and Iyer: replies wait for what they answer",
    "vector": "Sahai et al. 2020: vectors and matrices over the members",
    "scale": "Evropeytsev et al. 2016: up to a hundred thousand peers",
}
"""Name (of the study's folder) -> line in lists."""


def load(name: str) -> Study:
    """Return a study by name, "package.module:NAME" or "FILE.py:NAME". Raises InputError."""
    path = f"antecede.lab.reproductions.{name}.study:STUDY" if name in STUDIES else name
    module, colon, constant = path.rpartition(":")
    if not colon:
        raise InputError(
            f"unknown reproduction {name!r}; choose from {', '.join(STUDIES)}, or name your own as "
            "FILE.py:STUDY or package.module:STUDY"
        )
    if name not in STUDIES:
        module = _make_importable(module)
    try:
        found = getattr(importlib.import_module(module), constant, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a dependency of the module is missing
        raise InputError(
            f"reproduction {name!r}: no module {error.name} in {Path.cwd()} or PYTHONPATH; "
            "change to its folder, or name the file: FILE.py:STUDY"
        ) from error
    if not isinstance(found, Study):
        raise InputError(f"reproduction {name!r}: {path} is not a Study")
    return found


def _make_importable(module: str) -> str:
    """Make a user's module importable here and in workers. Raises InputError."""
    folder = Path.cwd()
    if module.endswith(".py"):
        file = Path(module).absolute()
        if not file.is_file():
            raise InputError("no such file", path=module)
        folder, module = file.parent, file.stem
    path, known = str(folder), os.environ.get("PYTHONPATH", "")
    if path not in sys.path:
        sys.path.append(path)
    if path not in known.split(os.pathsep):  # for worker processes
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (known, path)))
    return module
