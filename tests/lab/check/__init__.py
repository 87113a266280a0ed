"""Checks of the checker; `refuted` is what most of them begin with."""

from antecede.lab.check.results import Failure


def refuted(failure: Failure | None) -> Failure:
    assert failure is not None
    return failure
