"""rune.scipy.spatial: rotations of space, and distances of points."""

from rune.scipy.spatial import distance as distance
from rune.scipy.spatial import transform as transform
