"""What the tests of the matrix protocol share."""

from __future__ import annotations

from typing import Any

from antecede.protocols.base import Transmit
from antecede.protocols.matrix.matrix import Matrix
from antecede.protocols.matrix.messages import MatrixMessage


def sent(member: Matrix, payload: object = None) -> MatrixMessage:
    (effect,) = member.send(payload, now=0)
    assert isinstance(effect, Transmit)
    message: MatrixMessage = effect.message
    return message


def group(size: int, **options: Any) -> list[Matrix]:
    return [Matrix(k, range(size), **options) for k in range(size)]
