"""A sum of known times with weights that are not negative, close to measured times in ratio."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def fit_nonnegative_sum(parts: ArrayLike, wanted: ArrayLike) -> NDArray[np.float64]:
    """Return the weights whose sum of parts misses the wanted values least, relative to them.

    Parameters
    ----------
    parts : array_like
        Shape ``(n_samples, n_parts)``, finite, not negative.
    wanted : array_like
        Shape ``(n_samples,)``, positive, in the unit of the parts.

    Returns
    -------
    ndarray of float64
        Shape ``(n_parts,)``, not negative, many of them 0; the same for any order of the rows.

    Raises
    ------
    ValueError
        For shapes that do not fit, no rows, or numbers that are not finite.

    Notes
    -----
    Minimises the sum of ``(parts @ weights / wanted - 1)**2``. Source: Lawson & Hanson, Solving
    least squares problems, SIAM 1995, chapter 23.
    """
    from scipy.optimize import nnls

    table, values = np.asarray(parts, np.float64), np.asarray(wanted, np.float64)
    if table.ndim != 2 or values.shape != table.shape[:1] or not table.size:
        raise ValueError(f"parts of shape {table.shape} and wanted of shape {values.shape}")
    if not np.isfinite(table).all() or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("parts must be finite, and wanted values positive")
    ratios = table / values[:, None]
    ratios = ratios[np.lexsort(ratios.T[::-1])]
    # More steps than the default of three a part: parts that grow alike are exchanged often.
    weights, _ = nnls(ratios, np.ones(len(ratios)), maxiter=100 * ratios.shape[1])
    return np.asarray(weights, np.float64)
