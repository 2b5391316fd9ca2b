"""`jax.monitoring`: forwards the events of libraries to listeners. Rune itself records none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from rune.errors import ArgumentError

Listener = Callable[..., object]
_listeners: dict[str, list[Listener]] = defaultdict(list)


def _tell(kind: str, event: str, *values: float, details: dict[str, str | int]) -> None:
    for listener in tuple(_listeners[kind]):
        listener(event, *values, **details)


def _forget(kind: str, callback: Listener) -> None:
    if callback not in _listeners[kind]:
        raise ArgumentError(f"monitoring: cannot unregister {callback!r} (it is not a listener of this kind)")
    _listeners[kind].remove(callback)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners of events."""
    _tell("event", event, details=kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners of durations [s]."""
    _tell("duration", event, duration, details=kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tell the listeners of time spans [s]."""
    _tell("time span", event, start_time, end_time, details=kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Tell the listeners of numbers."""
    _tell("scalar", event, value, details=kwargs)


def register_event_listener(callback: Listener) -> None:
    """Call `callback` for every event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call `callback` for every duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call `callback` for every time span."""
    _listeners["time span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call `callback` for every number."""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Stop calling `callback`."""
    _forget("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Stop calling `callback`."""
    _forget("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Stop calling `callback`."""
    _forget("time span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Stop calling `callback`."""
    _forget("scalar", callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    _listeners.clear()
