"""Pictures as SVG text: in the reader's own text colour, so that they suit light and dark pages.

    svg.py       a picture, its shapes, its colours
    axes.py      round numbers along an axis
    timeline.py  rows of bars over time, and memory below
    curves.py    lines over steps

A function takes plain numbers and gives a `Picture`. Nothing here knows of arrays or programs.
"""
