"""Settings: those of the process, and the blocks that override them in one thread or task.

The statement `rune.configure(check_nans=True)` changes the whole process; `with
rune.configure(check_nans=True):` changes only the block, in its own thread or task. A call cannot
tell which of the two it is, so it stays pending: it becomes a statement when its thread reads a
setting, or when its result is dropped or shown. So no thread ever sees the setting of a block in
another. RUNE_X64=1, RUNE_CHECK_NANS=1, ... give the initial values.

Settings are part of every cache key, so no cached result goes stale. The contents of a trace do not
depend on six of them, which are left out: `symbolic` decides which traces are made, `cache_dir`
where compiled code is kept and `compiled_bytes` how much of it, `cpu_devices` and `xla_flags` how
many devices there are, and `log_compiles` what is logged.

>>> with setting(check_nans=True):
...     current().check_nans
True
"""

from __future__ import annotations

import functools
import inspect
import os
import typing as _typing
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, Generic, ParamSpec, TypeVar

from rune import locks, profiling
from rune.absent import of as _absent
from rune.errors import ArgumentError
from rune.options import Config, Value, from_environment
from rune.records import dataclass

_NAMES = tuple(f.name for f in fields(Config))
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


# --- storing settings -------------------------------------------------------------------------


@functools.cache
def _interned(**settings: Value) -> Config:
    return Config(**settings)  # type: ignore[arg-type]


def _changed(settings: Config, changes: Mapping[str, Value]) -> Config:
    return _varied(settings, *changes.items())


@functools.cache
def _varied(settings: Config, *changes: tuple[str, Value]) -> Config:
    """The settings with these changes; cached, because every large eager call needs them."""
    values = dict(changes)
    return _interned(**{name: values.get(name, getattr(settings, name)) for name in _NAMES})


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The changes of one block, and the random keys that were used in it."""

    setting: Setting[Any]
    changes: Mapping[str, Value]
    used_keys: dict[Hashable, object]


class Scope:
    """The open blocks of a thread or task, the innermost last, and the resulting settings.

    `settings` is unset while a `configure` call of this thread is pending. Native code reads the
    slot, too, and leaves calls to Python while it is unset.
    """

    __slots__ = ("__weakref__", "layers", "settings")
    settings: Config

    def __init__(self, layers: tuple[_Layer, ...]):
        self.layers = layers


class _Waiting(Scope):
    """The scope of a thread whose last call of `configure` is not yet a block or a statement."""

    __slots__ = ("outer", "setting")

    def __init__(self, outer: Scope, setting: Setting[Any]):
        super().__init__(outer.layers)
        self.outer, self.setting = outer, weakref.ref(setting)


class _Process:
    """The changes by statements, in order, and all scopes that override them.

    A statement can be taken back while its result is referenced, so it is stored separately.
    """

    def __init__(self) -> None:
        begin = {"profile": profiling.is_asked_for(os.environ), **from_environment(os.environ)}
        self.base = _changed(Config(), begin)
        self.statements: list[tuple[weakref.ref[Setting[Any]], Mapping[str, Value]]] = []
        self.scope = Scope(())
        self.used_keys: dict[Hashable, object] = {}
        self._scopes = weakref.WeakSet[Scope]()
        self._actions: deque[Callable[[], None]] = deque()
        self.begin()

    def begin(self) -> None:
        """Create the lock anew: in a forked child, a thread that no longer exists may hold it."""
        self._lock, self._is_acting = locks.reentrant(), False
        self._do(self._renew)

    def set(self, setting: Setting[Any], changes: Mapping[str, Value]) -> None:
        """Add a statement, which overrides earlier ones."""
        reference = weakref.ref(setting)
        self._do(lambda: self._add(reference, changes))

    def take_back(self, setting: Setting[Any]) -> None:
        """Remove a statement, and restore what holds without it."""
        self._do(lambda: self._remove(setting))

    def opened(self, layers: tuple[_Layer, ...]) -> Scope:
        """A scope with these open blocks."""
        if not layers:
            return self.scope
        scope = Scope(layers)
        self._do(lambda: self._open(scope))
        return scope

    def _do(self, action: Callable[[], None]) -> None:
        self._actions.append(action)
        with self._lock:
            if self._is_acting:
                return  # called by a finaliser within the loop below, which will run the action
            self._is_acting = True
            try:
                while self._actions:
                    self._actions.popleft()()
            finally:
                self._is_acting = False

    def _add(self, reference: weakref.ref[Setting[Any]], changes: Mapping[str, Value]) -> None:
        statements = self.statements[:1]
        for statement, more in (*self.statements[1:], (reference, changes)):
            if statements and statement() is None and statements[-1][0]() is None:
                statements[-1] = (statement, {**statements[-1][1], **more})
            else:
                statements.append((statement, more))
        self.statements = statements
        self._renew()

    def _remove(self, setting: Setting[Any]) -> None:
        self.statements = [s for s in self.statements if s[0]() is not setting]
        self._renew()

    def _open(self, scope: Scope) -> None:
        self._scopes.add(scope)
        self._settle(scope)

    def _renew(self) -> None:
        """Recompute the settings of the process and of every scope."""
        settings = self.base
        for _, changes in self.statements:
            settings = _changed(settings, changes)
        self.scope.settings = settings
        if not settings.check_keys:
            self.used_keys.clear()
        for scope in list(self._scopes):
            self._settle(scope)

    def _settle(self, scope: Scope) -> None:
        settings = self.scope.settings
        for layer in scope.layers:
            settings = _changed(settings, layer.changes)
        scope.settings = settings


_process = _Process()
_scope: ContextVar[Scope] = ContextVar("rune_config", default=_process.scope)
if _process.base.profile:
    profiling.profile_process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.begin)


def current() -> Config:
    """The current settings."""
    try:
        return _scope.get().settings
    except AttributeError:  # a call is pending, and its thread continues: it was a statement
        return _settled().settings


def _settled() -> Scope:
    """The scope of this thread, after making a pending call a statement."""
    scope = _scope.get()
    if isinstance(scope, _Waiting):
        setting = scope.setting()
        if setting is not None:
            setting.act()
        scope = scope.outer
        _scope.set(scope)
    return scope


def of_environment(name: str) -> Value:
    """The initial value of a setting, whatever has been set since."""
    return getattr(_process.base, name)


def variable() -> ContextVar[Scope]:
    """The context variable that holds the scope, for native code."""
    return _scope


_NEUTRAL_NAMES = "symbolic cache_dir compiled_bytes cpu_devices xla_flags log_compiles callback_errors"
_NEUTRAL = {n: getattr(Config(), n) for n in _NEUTRAL_NAMES.split()}


@functools.cache
def for_traces(settings: Config) -> Config:
    """The settings as part of a trace's cache key: those that no trace depends on are reset."""
    return _changed(settings, _NEUTRAL)


def used_keys() -> dict[Any, Any]:
    """The random keys that were used since `check_keys` was switched on, and where."""
    if _process.scope.settings.check_keys:
        return _process.used_keys
    watching = (x for x in _settled().layers if x.changes.get("check_keys"))
    return next((x.used_keys for x in watching), {})


# --- changing settings ------------------------------------------------------------------------


class Setting(Generic[T]):
    """What `rune.configure` and similar functions return: a statement unless it is entered.

    A statement changes the process; the latest one wins. Entering takes the statement back, so that
    the block ends with the settings from before the call. The block may be entered again, nested in
    itself or by several threads, and it also decorates functions.
    """

    __slots__ = ("__weakref__", "_acts", "_changes", "_is_open", "_result")

    def __init__(self, changes: Mapping[str, Value], result: Callable[[Config], T]) -> None:
        """result: maps the settings in the block to the value that `with ... as` binds."""
        self._changes, self._result = changes, result
        self._is_open, self._acts = True, False  # may become a statement; is one
        _scope.set(_Waiting(_settled(), self))

    def act(self) -> None:
        """Become a statement, unless it is a block."""
        if self._is_open:
            self._is_open, self._acts = False, True
            _process.set(self, self._changes)

    def _take_back(self) -> None:
        scope = _scope.get()
        if isinstance(scope, _Waiting) and scope.setting() is self:
            _scope.set(scope.outer)
        self._is_open = False
        if self._acts:
            self._acts = False
            _process.take_back(self)

    def __enter__(self) -> T:
        self._take_back()
        layers = (*_settled().layers, _Layer(self, self._changes, {}))
        scope = _process.opened(layers)
        _scope.set(scope)
        return self._result(scope.settings)

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        layers = _settled().layers
        depths = [k for k, layer in enumerate(layers) if layer.setting is self]
        if depths:  # else a generator ends in a different thread from where it began
            _scope.set(_process.opened((*layers[: depths[-1]], *layers[depths[-1] + 1 :])))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, with each call in a block of its own."""
        self._take_back()
        is_late = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        if not callable(function) or any(test(function) for test in is_late):
            raise ArgumentError(
                f"{self!r}: cannot wrap {function!r} (a function that runs when it is called)",
                hint="use `with` inside of it",
            )

        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return wrapped

    def __del__(self) -> None:
        self.act()  # dropping the result makes it a statement

    def __repr__(self) -> str:
        self.act()  # a notebook that shows the result also keeps it
        return f"configure({', '.join(f'{k}={v!r}' for k, v in self._changes.items())})"


def setting(**changes: Value) -> Setting[Config]:
    """A Setting with changes that need no check; `with ... as` binds the settings in the block."""
    return Setting(changes, lambda settings: settings)


if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
