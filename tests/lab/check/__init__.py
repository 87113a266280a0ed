"""Tests of the protocol checker."""

from antecede.lab.check.results import Failure


def require_failure(failure: Failure | None) -> Failure:
    assert failure is not None
    return failure
