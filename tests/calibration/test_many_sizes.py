"""A form that cannot take so many sizes says so, and the others are tried."""

from __future__ import annotations

import numpy as np

from perfdb_git.analysis.curves import MOST_STEP_SIZES
from perfdb_git.calibration.fit_forms import fit_slice_forms
from perfdb_git.calibration.slice_fits import SliceRequest


def test_step_table_over_too_many_sizes_is_left_out() -> None:
    sizes = np.arange(1.0, MOST_STEP_SIZES + 2)
    request = SliceRequest(
        name="many",
        columns={"bytes_read": sizes},
        latency=1e-6 + sizes * 1e-9,
        inputs=("bytes_read",),
        forms=("affine", "step-table"),
        features=None,
        hardware=None,
        level=0.9,
        seed=0,
    )
    found = {item.form: item for item in fit_slice_forms(request).tried}
    assert found["step-table"].note == f"more than {MOST_STEP_SIZES} sizes"
    assert found["affine"].chosen
