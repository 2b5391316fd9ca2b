"""`jax._src.traceback_util`: files whose frames errors leave out (Equinox, jaxtyping, Flax)."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from rune.frames import is_passed_over
from rune.frames import pass_over as register_exclusion


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not is_passed_over(frame)


def api_boundary(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function unchanged: rune hides frames only when an error is printed."""
    return fun
