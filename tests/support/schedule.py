"""Which worker runs which file: the order of `--dist loadfile`, in time proportional to the tests.

The scheduler of xdist looks for each test in the list of all, and counts all tests of a worker
after each of them. With 25,800 tests that took the first process 25 s of processor time, which the
two workers lost (decision 0164).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


class FileScheduling(LoadFileScheduling):
    """Files in the order of their first tests; a worker has its next file before it ends one."""

    def schedule(self) -> None:
        """Begin, once all workers have collected the same tests."""
        places = next(iter(self.registered_collections.values()))
        self.places = {name: place for place, name in enumerate(places)}
        super().schedule()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test that has run, and its file with the last test of it."""
        name = self.registered_collections[node][item_index]
        file, work = self._split_scope(name), self.assigned_work[node]
        del work[file][name]
        if not work[file]:
            del work[file]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        file, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][file] = tests
        node.send_runtest_some([self.places[name] for name in tests])
