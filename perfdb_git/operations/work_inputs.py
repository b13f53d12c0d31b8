"""Work in place of a shape: what a calibration reads that answers for every shape of its work.

A calibration that declares ``bytes_read``, ``bytes_written`` or ``operations`` as an input states
that nothing else of the shape matters: two kinds of norm that move the same bytes take the same
time. That holds where launching a kernel costs more than its work, and lets one model answer for
shapes and kinds that nobody has measured.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from perfdb_git.errors import InvalidInputError
from perfdb_git.model.vocabulary import Vocabulary
from perfdb_git.operations.queries import shape_dimensions
from perfdb_git.operations.work import Coordinates, work_of

WORK_INPUTS = ("operations", "bytes_read", "bytes_written")


def reads_work(inputs: Collection[str]) -> bool:
    """Tell whether some inputs stand for the whole shape."""
    return any(name in inputs for name in WORK_INPUTS)


def in_work_terms(
    coordinates: Coordinates, inputs: Collection[str], vocabulary: Vocabulary
) -> dict[str, Any]:
    """Return coordinates with their shape replaced by the work that a calibration reads.

    Parameters
    ----------
    coordinates : Mapping[str, Scalar or ndarray]
        Known dimensions by flat name, the operation among them; columns ``(n,)`` for many
        queries. Work that the caller states is kept as stated.
    inputs : collection of str
        What the calibration declares; without work among it nothing changes.
    vocabulary : Vocabulary
        Names the operation's shape and its formula.

    Raises
    ------
    InvalidInputError
        'missing-input' where a dimension is unknown that the formula needs, or what `work_of`
        raises.
    """
    operation = str(coordinates["operation"])
    formula = vocabulary.operations[operation].work
    if not reads_work(inputs):
        return dict(coordinates)
    try:
        work = work_of(formula, coordinates)
    except KeyError as error:
        raise InvalidInputError(
            f"the work of {operation} is unknown without {error.args[0]}",
            code="missing-input",
            document="query",
        ) from error
    shape = shape_dimensions(operation, vocabulary)
    kept = {name: value for name, value in coordinates.items() if name not in shape}
    return {**{name: getattr(work, name) for name in WORK_INPUTS if name in inputs}, **kept}
