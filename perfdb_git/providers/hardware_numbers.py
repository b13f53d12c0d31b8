"""Facts of a device as the numbers of a calibration's base, and back."""

from __future__ import annotations

from collections.abc import Mapping

from perfdb_git.errors import InvalidInputError
from perfdb_git.operations.features.hardware import Hardware

_PLAIN = ("multiprocessors", "l2_bytes", "memory_bytes_per_s", "launch_floor_s")
_LINK = "link_bytes_per_s"
_RATES = "operations_per_s."
_MATRIX_ROWS, _MATRIX_COLUMNS = "matrix_tile_rows.", "matrix_tile_columns."
_QUERY = "query_tile_rows."


def hardware_numbers(hardware: Hardware) -> dict[str, float]:
    """Return a device's facts by name, sorted; its sources are for the notes of the calibration.

    Rates are ``operations_per_s.<dtype>``, tiles ``matrix_tile_rows.00`` and so on.
    """
    numbers: dict[str, float] = {name: float(getattr(hardware, name)) for name in _PLAIN}
    if hardware.link_bytes_per_s is not None:
        numbers[_LINK] = hardware.link_bytes_per_s
    numbers |= {f"{_RATES}{dtype}": rate for dtype, rate in hardware.operations_per_s.items()}
    for place, (rows, columns) in enumerate(hardware.matrix_tiles):
        numbers[f"{_MATRIX_ROWS}{place:02d}"] = rows
        numbers[f"{_MATRIX_COLUMNS}{place:02d}"] = columns
    for place, rows in enumerate(hardware.query_tiles):
        numbers[f"{_QUERY}{place:02d}"] = rows
    return {name: float(numbers[name]) for name in sorted(numbers)}


def hardware_from_numbers(
    numbers: Mapping[str, float], *, device: str, document: str, pointer: str = "/base/numbers"
) -> Hardware:
    """Return the facts that `hardware_numbers` wrote.

    Parameters
    ----------
    numbers : Mapping[str, float]
        Of a calibration's base.
    device : str
        Canonical device term.
    document, pointer : str
        Where they stand, for messages.

    Raises
    ------
    InvalidInputError
        'bad-base-numbers' for a fact that is missing, unknown or not positive.
    """
    fault = _fault(numbers)
    if fault is not None:
        raise InvalidInputError(
            fault,
            code="bad-base-numbers",
            document=document,
            pointer=pointer,
            remedy="state the hardware facts that the feature set was fitted with",
        )
    widths = _listed(numbers, _MATRIX_COLUMNS)
    return Hardware(
        device=device,
        multiprocessors=int(numbers["multiprocessors"]),
        l2_bytes=numbers["l2_bytes"],
        memory_bytes_per_s=numbers["memory_bytes_per_s"],
        operations_per_s=_by_ending(numbers, _RATES),
        link_bytes_per_s=numbers.get(_LINK),
        matrix_tiles=tuple(zip(_listed(numbers, _MATRIX_ROWS), widths, strict=True)),
        query_tiles=_listed(numbers, _QUERY),
        launch_floor_s=numbers["launch_floor_s"],
    )


def _fault(numbers: Mapping[str, float]) -> str | None:
    missing = [name for name in _PLAIN if name not in numbers]
    if missing:
        return f"the base does not state {', '.join(missing)}"
    wrong = [name for name, value in numbers.items() if not value > 0]
    if wrong:
        return f"{wrong[0]} is not positive"
    listed = [_by_ending(numbers, prefix) for prefix in (_MATRIX_ROWS, _MATRIX_COLUMNS, _QUERY)]
    known = {*_PLAIN, _LINK, *(f"{_RATES}{dtype}" for dtype in _by_ending(numbers, _RATES))}
    for prefix, found in zip((_MATRIX_ROWS, _MATRIX_COLUMNS, _QUERY), listed, strict=True):
        if sorted(found) != [f"{place:02d}" for place in range(len(found))]:
            return f"{prefix}00 and so on are not numbered without a gap"
        known |= {f"{prefix}{ending}" for ending in found}
    if len(listed[0]) != len(listed[1]):
        return "matrix tiles have other numbers of rows than of columns"
    unknown = sorted(set(numbers) - known)
    if unknown:
        return f"{unknown[0]} is no fact of a device"
    whole = [name for name in numbers if "tile" in name or name == "multiprocessors"]
    broken = [name for name in whole if not float(numbers[name]).is_integer()]
    return f"{broken[0]} is not a whole number" if broken else None


def _by_ending(numbers: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {
        name.removeprefix(prefix): value
        for name, value in numbers.items()
        if name.startswith(prefix)
    }


def _listed(numbers: Mapping[str, float], prefix: str) -> tuple[int, ...]:
    return tuple(int(value) for _, value in sorted(_by_ending(numbers, prefix).items()))
