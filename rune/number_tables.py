"""Tables of numbers, written as text with several numbers in a line, as a book prints them.

The digits are read as Python reads a literal, to the same bits. Lines are only layout: the rows of
a table end at semicolons, and a slash divides the two polynomials of a quotient.
"""

from __future__ import annotations

Row = tuple[float, ...]


def numbers(text: str) -> Row:
    """The numbers of a text.

    >>> numbers("0.5 -0.25 1e-3")
    (0.5, -0.25, 0.001)
    """
    return tuple(map(float, text.split()))


def rows(text: str) -> tuple[Row, ...]:
    """The rows of a table, which may have different lengths.

    >>> rows("1 2; 3")
    ((1.0, 2.0), (3.0,))
    """
    return tuple(map(numbers, text.split(";")))


def quotient(text: str) -> tuple[Row, Row]:
    """The coefficients of two polynomials, of which one is divided by the other.

    >>> quotient("1 2 / 3 4")
    ((1.0, 2.0), (3.0, 4.0))
    """
    numerator, denominator = text.split("/")
    return numbers(numerator), numbers(denominator)
