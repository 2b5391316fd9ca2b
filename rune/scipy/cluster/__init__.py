"""rune.scipy.cluster: vq, the nearest of a list of codes."""

from rune.scipy.cluster import vq as vq
