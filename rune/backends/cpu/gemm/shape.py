"""The tile of matrix products for one machine and type, and the names of the pieces around it."""

from __future__ import annotations

from rune import dtypes
from rune.backends.cpu.gemm.product import most_columns
from rune.lowering.codegen.machine import Machine
from rune.records import dataclass

BLOCK_BYTES = 1536  # of one row of a packed block of B
WATCHED_OPERATIONS = 1 << 28  # of a product that checks for signals: some milliseconds
ROWS = 8  # the most of a tile: each row of A needs an address register
# Pieces of a product besides two kinds of tiles and a copy for each number of vectors.
PIECES = ("row", "rows", "square", "transposed", "pack_rows", "tiles", "dot")
# The same of products of views alone, besides tiles that walk.
PACKS = ("along_columns", "along_depth", "by_lanes")
VIEWS = ("pack_right", *PACKS, "pack_left", "view_block", "exchanged_block", "view_dot", "narrow_dot")
BYTES = {"float": 4, "double": 8}
SCALARS = {dtypes.f32: "float", dtypes.f64: "double"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The tile for one machine and type."""

    scalar: str
    lanes: int
    sums: int  # vectors of C in registers
    vectors: int  # the most in one panel of B
    width: int  # columns of a packed block, a multiple of a panel's
    masked: bool
    mends: bool = False  # whether sums that meet denormal numbers are made in f64 (mended.py)
    table: int = 0  # address of the addresses of all pieces, in the order of `pieces`, and of a hint

    @property
    def pieces(self) -> tuple[str, ...]:
        """The names of the functions that are compiled when a product needs them (library.py)."""
        # Tiles come first: the number of a tile is its vectors less one (blocks.tiles_function).
        families = [f"{x}{v}" for x in ("tile", "copy", "walk") for v in range(1, self.vectors + 1)]
        narrow = [f"narrow{n}" for n in range(1, most_columns(self.lanes) + 1)]
        return (*families, *narrow, *PIECES, *VIEWS, *(("mend",) if self.mends else ()))

    @property
    def vector(self) -> str:
        """The type of one vector."""
        return f"<{self.lanes} x {self.scalar}>"

    @property
    def panel(self) -> int:
        """Columns of one panel of B."""
        return self.vectors * self.lanes

    def rows(self, vectors: int) -> int:
        """Rows of a tile of so many vectors."""
        return min(ROWS, self.sums // vectors)

    @property
    def bytes(self) -> int:
        """Bytes of one element, to which everything is aligned."""
        return BYTES[self.scalar]


def is_of_views(piece: str) -> bool:
    """Whether only products of views call it."""
    return piece in VIEWS or piece.startswith(("walk", "narrow"))


def shape_for(machine: Machine, scalar: str) -> Shape:
    """The shape with as many sums as registers allow: of 32 on AVX-512 and ARM, of 16 on AVX2.

    Four vectors of AVX-512 are 64 columns of f32, which divide the usual sizes.
    """
    lanes = machine.vector_bytes // BYTES[scalar]
    # Besides the sums, the vectors of one row of B and an element of A are in registers at the same
    # time: 24 + 4 + 1 of 32, 12 + 3 + 1 of 16.
    sums, vectors = {64: (24, 4), 32: (12, 3), 16: (24, 3)}[machine.vector_bytes]
    panel = vectors * lanes
    width = (BLOCK_BYTES // BYTES[scalar]) // panel * panel
    mends = machine.waits_for_denormals and scalar == "float"
    return Shape(scalar, lanes, sums, vectors, width, machine.has_cheap_masks, mends)
