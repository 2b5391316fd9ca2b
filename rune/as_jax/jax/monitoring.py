"""`jax.monitoring`: what a library records reaches the listeners. rune itself records nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from rune.errors import ArgumentError

Listener = Callable[..., object]
_listeners: dict[str, list[Listener]] = defaultdict(list)


def _record(kind: str, event: str, /, *values: float, **details: str | int) -> None:
    for listener in tuple(_listeners[kind]):
        listener(event, *values, **details)


def _register(kind: str, callback: Listener) -> None:
    _listeners[kind].append(callback)


def _unregister(kind: str, callback: Listener) -> None:
    if callback not in _listeners[kind]:
        raise ArgumentError(f"monitoring: cannot unregister {callback!r} (no listener of this kind)")
    _listeners[kind].remove(callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    _listeners.clear()


record_event = partial(_record, "event")
record_event_duration_secs = partial(_record, "duration")
record_event_time_span = partial(_record, "time span")
record_scalar = partial(_record, "scalar")
register_event_listener = partial(_register, "event")
register_event_duration_secs_listener = partial(_register, "duration")
register_event_time_span_listener = partial(_register, "time span")
register_scalar_listener = partial(_register, "scalar")
unregister_event_listener = partial(_unregister, "event")
unregister_event_duration_listener = partial(_unregister, "duration")
unregister_event_time_span_listener = partial(_unregister, "time span")
unregister_scalar_listener = partial(_unregister, "scalar")
