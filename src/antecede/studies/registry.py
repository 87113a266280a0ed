"""The studies by name; a study's module is loaded only when it is asked for.

Besides these names `load` takes "package.module:NAME" of a study that is not ours.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

from antecede.errors import InputError
from antecede.studies.study import Study


class Entry(NamedTuple):
    """A study's constant, as "module:NAME", and a line for lists."""

    place: str
    line: str


STUDIES = {
    "hierarchy": Entry(
        "antecede.studies.hierarchy:STUDY", "000: control information of a hierarchy, IDR and DS"
    ),
    "clocks": Entry("antecede.studies.clocks:STUDY", "002: linear and physical time, by accuracy"),
    "topics": Entry("antecede.studies.topics:STUDY", "004: topic vectors and heterogeneous time"),
    "semantic": Entry("antecede.studies.semantic:STUDY", "003: replies wait for what they answer"),
    "vector": Entry("antecede.studies.vector:STUDY", "001: vectors and matrices over the members"),
    "scale": Entry("antecede.studies.scale:STUDY", "000: up to a hundred thousand peers"),
}


def load(name: str) -> Study:
    """Return a study by its name or place. Raises InputError where there is none."""
    place = STUDIES[name].place if name in STUDIES else name
    module, colon, constant = place.partition(":")
    if not colon:
        raise InputError(f"there is no study {name!r}; there are {', '.join(STUDIES)}")
    try:
        found = getattr(importlib.import_module(module), constant, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and something that it needs is not
        raise InputError(f"study {name!r}: there is no module {error.name}") from error
    if not isinstance(found, Study):
        raise InputError(f"study {name!r}: {place} is no Study")
    return found
