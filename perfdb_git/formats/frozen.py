"""Immutable, hashable stand-ins for JSON objects and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

Item = TypeVar("Item")


class FrozenMap(Mapping[str, Item]):
    """Mapping that cannot change; equal to, and hashed like, any other with the same items.

    Parameters
    ----------
    items : Mapping
        Copied; hashing needs hashable values.
    """

    __slots__ = ("_items",)
    _items: dict[str, Item]

    def __init__(self, items: Mapping[str, Item]) -> None:
        object.__setattr__(self, "_items", dict(items))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a FrozenMap cannot change: {name}")

    def __reduce__(self) -> tuple[type[FrozenMap[Item]], tuple[dict[str, Item]]]:
        return FrozenMap, (dict(self._items),)

    def __getitem__(self, key: str) -> Item:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


def freeze(value: object) -> object:
    """JSON value with `FrozenMap` and `tuple` for its objects and arrays."""
    if isinstance(value, Mapping):
        return FrozenMap({key: freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value
