"""Finite-element structures with contact, condensed to their contact nodes."""

from jfric.structures.condensation import CondensedStructure, condense
from jfric.structures.reduction import ReducedStructure, reduce_structure
from jfric.structures.structure import Structure, load_structure

__all__ = [
    "CondensedStructure",
    "ReducedStructure",
    "Structure",
    "condense",
    "load_structure",
    "reduce_structure",
]
