"""Types of the arrays that kernels take and return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.int8]
