"""Pictures as SVG text, in the reader's own text colour, so that they suit light and dark pages.

    svg.py       a picture, its shapes, its colours
    axes.py      round numbers along an axis
    timeline.py  rows of bars over time, and memory below
    curves.py    lines over steps

Functions take plain numbers and return a `Picture`. Nothing here depends on arrays or programs.
"""
