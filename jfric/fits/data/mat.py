"""Arrays of numbers in MAT files of level 5 (MATLAB 5 to 7.2).

SciPy's reader ends the whole process on some damaged files; this one checks every length.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: Types of data elements that hold numbers, and their NumPy names.
_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
_MATRIX, _COMPRESSED = 14, 15
#: Classes of arrays that hold numbers: double to 64-bit integers.
_NUMERIC = range(6, 16)
_COMPLEX = 0x0800
_HEADER = 128
#: Most bytes of a compressed array.
_LARGEST = 2**32


class Damaged(ValueError):
    """Error for a MAT file that cannot be read; the message tells why."""


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a MAT file by name, axes of length one removed; an array without numbers is an
    empty array of objects. Raises ``ValueError`` for damaged files."""
    content = path.read_bytes()
    if len(content) < _HEADER:
        raise Damaged("it is too short for a MAT file")
    if 0 in content[:4]:  # level 4 has no text at its beginning
        from scipy.io import loadmat

        found = loadmat(path)
        return {k: np.squeeze(v) for k, v in found.items() if not k.startswith("__")}
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise Damaged("it is no MAT file")
    if struct.unpack(f"{order}H", content[124:126])[0] >> 8 != 1:
        raise Damaged("only MAT files up to version 7 can be read; save it with -v7")
    elements = _elements(memoryview(content)[_HEADER:], order)
    return dict(_array(_unpacked(element, order), order) for element in elements)


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """The consecutive data elements in ``data``."""
    while len(data) >= 8:
        kind, size = struct.unpack(f"{order}II", data[:8])
        start, padded = 8, size if kind == _COMPRESSED else 8 * math.ceil(size / 8)
        if kind >> 16:  # up to four bytes in the tag itself
            kind, size, start, padded = kind & 0xFFFF, kind >> 16, 4, 4
        if size > padded or start + size > len(data):
            raise Damaged("an array is longer than the file")
        yield _Element(kind, data[start : start + size])
        data = data[start + padded :]


def _unpacked(element: _Element, order: str) -> _Element:
    if element.kind != _COMPRESSED:
        return element
    try:
        plain = zlib.decompressobj().decompress(element.data, _LARGEST)
    except zlib.error:
        raise Damaged("a compressed array is damaged") from None
    found = next(_elements(memoryview(plain), order), None)
    if found is None:
        raise Damaged("a compressed array is empty")
    return found


def _array(element: _Element, order: str) -> tuple[str, np.ndarray]:
    """Name and values of an array."""
    parts = list(_elements(element.data, order)) if element.kind == _MATRIX else []
    if len(parts) < 3 or len(parts[0].data) < 8 or len(parts[1].data) % 4:
        raise Damaged("an array has no size and name")
    flags = struct.unpack(f"{order}I", parts[0].data[:4])[0]
    shape = np.frombuffer(parts[1].data, f"{order}i4")
    name = bytes(parts[2].data).decode("ascii", "replace")
    if flags & 0xFF not in _NUMERIC or flags & _COMPLEX:
        return name, np.empty(0, object)
    if len(parts) < 4 or parts[3].kind not in _NUMBERS:
        raise Damaged(f"the array {name!r} has no numbers")
    kind = np.dtype(f"{order}{_NUMBERS[parts[3].kind]}")
    # Python's own integers: sizes of a damaged file may be of any magnitude.
    count = math.prod(int(n) for n in shape)
    if np.any(shape < 0) or count * kind.itemsize != len(parts[3].data):
        raise Damaged(f"the size of the array {name!r} does not fit its numbers")
    values = np.frombuffer(parts[3].data, kind).reshape(shape.tolist(), order="F")
    return name, np.squeeze(values).astype(kind.newbyteorder("="))
