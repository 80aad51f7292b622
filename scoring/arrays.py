"""Types of the arrays that estimates are made of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]
Matrix: TypeAlias = "sparse.csr_array"
