"""rune.data: from files and arrays to batches on a device, while the device computes.

    batches = (
        data.arrays({"image": images, "label": labels})
        .shuffle(rune.random.key(0))
        .map(augmented, workers=4)
        .batch(64)
        .prefetch("cuda:0")
    )
    for batch in batches:
        ...

sources  arrays, file, sequence, iterable, folder
stages   methods of Pipeline: shuffle, shard, repeat, map, enumerate, batch, prefetch
runs     iter(pipeline) is an Iterator: state, close; pipeline.restore(state) continues there

Only keys and the numbers of elements decide their order: a pipeline gives the same elements,
however many workers it has and wherever a run starts.
"""

from rune.data.iterator import Iterator as Iterator
from rune.data.pipeline import Pipeline as Pipeline
from rune.data.progress import progress as progress
from rune.data.sources import arrays as arrays
from rune.data.sources import file as file
from rune.data.sources import folder as folder
from rune.data.sources import iterable as iterable
from rune.data.sources import sequence as sequence
from rune.data.stages import Processes as Processes
from rune.data.stages import Threads as Threads
from rune.listing import names as _names

__all__ = ["Iterator", "Pipeline", "Processes", "Threads", "arrays", "file", "folder", "iterable", "progress"]
__all__ += ["sequence"]

__dir__ = _names(globals())
