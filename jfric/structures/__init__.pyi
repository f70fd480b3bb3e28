"""Finite-element structures with contact, condensed to their contact nodes."""

from .condensation import CondensedStructure as CondensedStructure
from .condensation import condense as condense
from .reduction import ReducedStructure as ReducedStructure
from .reduction import reduce_structure as reduce_structure
from .structure import Structure as Structure
from .structure import load_structure as load_structure
