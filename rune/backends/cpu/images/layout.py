"""Makes an image of an ELF object file: sections in order, references between them resolved.

    image = image_of(object_code, lambda name: None)

    code, constants, table, stubs  |  data  |  data that begins as zeros

Code reaches symbols outside of the object through a table of addresses that the loader fills in: it
loads from the table, and it calls stubs that jump to a table entry. Code is position independent
(`model` in conventions.py), so the loader has nothing else to do.

The layout knows only what LLVM writes for our code. Anything else raises Unplaced.

Source: System V ABI, AMD64 supplement 1.0, 4.4 "Relocation".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import field

from rune.backends.cpu.images.loader import PAGE, Image
from rune.records import dataclass

_HEADER, _SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_WORD, _HALF = struct.Struct("<Q"), struct.Struct("<i")
_ELF64 = b"\x7fELF\x02\x01"
_X86_64 = 62
_SYMBOLS, _RELA, _NOBITS, _REL = 2, 4, 8, 9  # types of sections
_WRITE, _ALLOC, _TLS = 0x1, 0x2, 0x400  # flags of sections
_ABSENT, _SPECIAL = 0, 0xFF00  # section numbers of symbols: undefined, and the first reserved one
_GLOBAL, _WEAK, _IS_SECTION = 1, 2, 3
_UNWINDING = ".eh_frame"  # left out: nothing unwinds through our code

# Kinds of relocations, R_X86_64_...
_64, _PC32, _PLT32, _GOTPCREL, _PC64, _GOTPCRELX, _REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
_BY_TABLE = frozenset({_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX})
_STUB = b"\xff\x25"  # jmp *(%rip + 32 bits)
_STUB_BYTES = 8


class Unplaced(Exception):
    """The object has something that the layout does not know; the message says what."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A symbol: its section, or None if it is outside of the object, and its offset in the
    section."""

    name: str
    section: int | None
    value: int
    is_seen: bool  # outside of the object


@dataclass(slots=True)
class _Layout:
    """An image being made."""

    code: bytes
    sections: list[_Section]
    symbols: list[_Symbol]
    number: Callable[[str], int | None]  # of the caller's addresses, by the symbol's name
    places: dict[int, int] = field(default_factory=dict)  # of sections
    slots: dict[int, int] = field(default_factory=dict)  # of the table, by symbol
    stubs: dict[int, int] = field(default_factory=dict)  # by symbol
    outside: dict[int | str, int] = field(default_factory=dict)
    words: list[tuple[int, int, int]] = field(default_factory=list)
    memory: bytearray = field(default_factory=bytearray)

    def image(self) -> Image:
        """Place the sections, then the table, then resolve the relocations."""
        in_memory = [(k, s) for k, s in enumerate(self.sections) if s.flags & _ALLOC and s.name != _UNWINDING]
        constant = [(k, s) for k, s in in_memory if not s.flags & _WRITE]
        data = [(k, s) for k, s in in_memory if s.flags & _WRITE and s.type != _NOBITS]
        zeros = [(k, s) for k, s in in_memory if s.flags & _WRITE and s.type == _NOBITS]
        # Data begins on a page of its own: the loader makes the pages before it executable.
        table = self._put(constant, 0)
        code_bytes = -(-self._put_table(-(-table // 8) * 8) // PAGE) * PAGE
        data_end = self._put(data, code_bytes)
        all_bytes = max(self._put(zeros, data_end), 1)
        self._fill(data_end, [*constant, *data])
        for place, kind, symbol, addend in self._relocations():
            self._relocate(place, kind, symbol, addend)
        names = {s.name: self._place(s) for s in self.symbols if s.is_seen and s.section is not None}
        memory = bytes(self.memory).rstrip(b"\0")  # pages are zeros when the loader gets them
        return Image(memory, code_bytes, all_bytes, names, tuple(self.outside), tuple(self.words))

    def _put(self, sections: list[tuple[int, _Section]], place: int) -> int:
        """Place sections from `place` on; returns their end."""
        for number, section in sections:
            alignment = max(section.alignment, 1)
            if alignment > PAGE or section.flags & _TLS:
                raise Unplaced(f"section {section.name} is aligned to {alignment} B, or of a thread")
            self.places[number] = -(-place // alignment) * alignment
            place = self.places[number] + section.size
        return place

    def _put_table(self, place: int) -> int:
        """Place the slots of symbols used through the table, and slots and stubs of outside
        calls."""
        references = [(kind, symbol) for _, kind, symbol, _ in self._relocations()]
        calls = dict.fromkeys(s for k, s in references if k == _PLT32 and self.symbols[s].section is None)
        for symbol in dict.fromkeys([*(s for k, s in references if k in _BY_TABLE), *calls]):
            self.slots[symbol], place = place, place + _WORD.size
        for symbol in calls:
            self.stubs[symbol], place = place, place + _STUB_BYTES
        return place

    def _fill(self, nbytes: int, sections: list[tuple[int, _Section]]) -> None:
        """Copy sections, and write table and stubs."""
        self.memory = bytearray(nbytes)
        for number, s in sections:
            place = self.places[number]
            self.memory[place : place + s.size] = self.code[s.offset : s.offset + s.size]
        for symbol, slot in self.slots.items():
            self._put_word(slot, symbol, 0)
        for symbol, stub in self.stubs.items():
            end = stub + len(_STUB) + _HALF.size
            self.memory[stub:end] = _STUB + _HALF.pack(self.slots[symbol] - end)

    def _put_word(self, place: int, number: int, addend: int) -> None:
        """Record that the loader must write a symbol's address at this place."""
        symbol = self.symbols[number]
        if symbol.section is not None:
            self.words.append((place, -1, self._place(symbol) + addend))
            return
        known = self.number(symbol.name)
        name = symbol.name if known is None else known
        self.words.append((place, self.outside.setdefault(name, len(self.outside)), addend))

    def _place(self, symbol: _Symbol) -> int:
        assert symbol.section is not None
        if symbol.section not in self.places:
            raise Unplaced(f"symbol {symbol.name} is in section {symbol.section}, which is not in memory")
        return self.places[symbol.section] + symbol.value

    def _relocations(self) -> Iterator[tuple[int, int, int, int]]:
        """The place of each relocation, its kind, its symbol and its addend."""
        for section in self.sections:
            # LLVM writes no REL for x86-64: their addends would be in the code itself.
            if section.type == _REL and section.info in self.places:
                raise Unplaced(f"section {section.name} has relocations without addends")
            if section.type == _RELA and section.info in self.places:
                rows = self.code[section.offset : section.offset + section.size]
                for offset, info, addend in _RELOCATION.iter_unpack(rows):
                    yield self.places[section.info] + offset, info & 0xFFFFFFFF, info >> 32, addend

    def _relocate(self, place: int, kind: int, number: int, addend: int) -> None:
        symbol = self.symbols[number]
        if kind == _64:
            self._put_word(place, number, addend)
        elif kind in _BY_TABLE:
            self._put_half(place, self.slots[number] + addend - place)
        elif kind == _PLT32 and symbol.section is None:
            self._put_half(place, self.stubs[number] + addend - place)
        elif kind in (_PC32, _PLT32) and symbol.section is not None:
            self._put_half(place, self._place(symbol) + addend - place)
        elif kind == _PC64 and symbol.section is not None:
            self.memory[place : place + 8] = struct.pack("<q", self._place(symbol) + addend - place)
        else:
            where = "outside" if symbol.section is None else "inside"
            raise Unplaced(f"relocation {kind} refers to {symbol.name or 'a section'}, {where} of the object")

    def _put_half(self, place: int, distance: int) -> None:
        if not -(1 << 31) <= distance < 1 << 31:
            raise Unplaced(f"two places are {distance} B apart, which 32 bits do not hold")
        self.memory[place : place + _HALF.size] = _HALF.pack(distance)


def image_of(code: bytes, number: Callable[[str], int | None]) -> Image:
    """The image of an object file for x86-64.

    number: gives the number of the caller's address for a symbol's name, or None if the symbol is
            a function of the C library
    Errors: Unplaced.
    """
    if not code.startswith(_ELF64) or _HEADER.unpack_from(code)[2] != _X86_64:
        raise Unplaced("the object is not an ELF file for x86-64")
    sections = _sections(code)
    tables = [s for s in sections if s.type == _SYMBOLS]
    symbols = [symbol for table in tables for symbol in _symbols(code, table, sections[table.link])]
    return _Layout(code, sections, symbols, number).image()


def _sections(code: bytes) -> list[_Section]:
    header = _HEADER.unpack_from(code)
    start, count, names = header[6], header[12], header[13]
    rows = [_SECTION.unpack_from(code, start + k * _SECTION.size) for k in range(count)]
    return [_Section(_name(code, rows[names][4], r[0]), r[1], r[2], r[4], r[5], r[6], r[7], r[8]) for r in rows]


def _symbols(code: bytes, table: _Section, names: _Section) -> Iterator[_Symbol]:
    for row in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
        start, info, _, section, value, _ = row
        name = _name(code, names.offset, start)
        if section >= _SPECIAL and info & 0xF != 4:  # the name of the file may be absolute
            raise Unplaced(f"symbol {name} is in the special section {section}")
        is_outside = section == _ABSENT or section >= _SPECIAL
        yield _Symbol(name, None if is_outside else section, value, info >> 4 in (_GLOBAL, _WEAK))


def _name(code: bytes, table: int, start: int) -> str:
    begin = table + start
    return code[begin : code.index(b"\0", begin)].decode()
