"""From a program to an executable, and from an executable to arrays: compile, cache, run.

The cache belongs to the program: programs are compared by identity, never by a hash, and compiled
code is freed with its program. Lowering and compiling happen once per program, device, donation and
configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from inspect import unwrap
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rune import config, counts, float_errors, locks, profiling
from rune.array import CPU, Array, Place, check_range, free_on, put
from rune.backends import Device, device_named
from rune.backends.shared.protocol import Backend, Drafts, Executable, KeepsCode
from rune.core.interpreter import type_of
from rune.core.memo import per_program
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.transforms import late_modules
from rune.transforms.compile.lending import lending
from rune.transforms.compile.stored_programs import key_of
from rune.transforms.compile.trace_cache import count_bytes

if TYPE_CHECKING:
    from rune.lowering.explain import Lowered
    from rune.lowering.plan import Plan

CODE_BYTES = 64 << 10  # estimate for machine code and the memory of LLVM or a driver for it, and ...
TEXT_COPIES = 3  # ... this many bytes more for each byte of its source

Schedules = tuple[tuple[str, str], ...]  # of kernels, by name, as text

_lock = locks.reentrant()


@per_program
def _compiled(
    program: Program,
    device: Device,
    donations: tuple[int, ...],
    schedules: Schedules,
    check: bool,
    profile: bool,
    reproducible: bool,
    flush_denormals: bool,
    search: float | str,
) -> Executable:
    # The last three are only part of the memo's key: lowering and backends read the settings.
    next(counts.compiles)
    if config.current().log_compiles:
        late_modules.compile_log().tell_compilation(program.name, device.name)
    span = profiling.span(f"compile {program.name}", profiling.Kind.COMPILE, device=device.name)
    with span, locks.without_collections():
        # Checks and profiles need the plan, which a stored executable does not have.
        if not check and not profile and not schedules:
            return _stored_or_compiled(program, device, donations)
        lowering = lowered_by(program, device, donations, schedules, check=check)
        if check:
            late_modules.plan_check().check_plan(lowering.plan, lowering.codes.values())
        if profile:
            executable = late_modules.timing().record(lowering, device.name, device.backend)
        else:
            executable = _recorded(device.backend, lowering.plan)
    return _counted(program, executable)


def _counted(program: Program, executable: Executable) -> Executable:
    # The executable lives as long as the program, which holds it.
    count_bytes(program, CODE_BYTES + TEXT_COPIES * sum(map(len, executable.sources().values())))
    return executable


def _stored_or_compiled(program: Program, device: Device, donations: tuple[int, ...]) -> Executable:
    """The executable stored by an earlier process, or a new one, stored for the next."""
    backend, key, settings = device.backend, key_of(program, device, donations), config.current()

    # The backend may lower later, when other settings may be in force.
    def lower() -> Plan:
        with config.setting(reproducible=settings.reproducible, search=settings.search):
            return lowered_by(program, device, donations, ()).plan

    if key is None or not isinstance(backend, KeepsCode):
        return _counted(program, _recorded(backend, lower()))
    earlier = backend.stored(key, lower)
    if earlier is not None:
        count_bytes(program, CODE_BYTES)
        return earlier
    executable = _counted(program, _recorded(backend, lower()))
    backend.keep(key, executable)
    return executable


def _recorded(backend: Backend, plan: Plan) -> Executable:
    # A draft is compiled in less time, and replaced once further calls show its worth (0095).
    return backend.draft(plan) if isinstance(backend, Drafts) else backend.record(plan)


def lowered_by(
    program: Program, device: Device, donations: tuple[int, ...], schedules: Schedules, *, check: bool = False
) -> Lowered:
    """Every stage, with these schedules, or winners of searches if they apply, or defaults."""
    stages, stored_schedules = late_modules.compiler().stages, late_modules.winners().stored(device.target)
    reproducible, choices = config.current().reproducible, dict(schedules)
    return stages(
        program,
        device.target,
        donations,
        schedules=choices,
        stored=stored_schedules,
        check=check,
        reproducible=reproducible,
    )


def compiled(
    program: Program, device: Device, donations: tuple[int, ...] = (), schedules: Schedules = ()
) -> Executable:
    """The executable of `program` on `device`, compiled on first use."""
    settings = config.current()
    # Under a lock, so that two threads do not compile the same program.
    with _lock:
        options = settings.reproducible, settings.flush_denormals, settings.search
        return _compiled(program, device, donations, schedules, settings.check_stages, settings.profile, *options)


def compiled_on(program: Program) -> list[Device]:
    """The devices for which the program has executables."""
    # `per_program` stores results under the function that it decorates.
    keys = cast("Iterable[tuple[Device, ...]]", program.derived.get(unwrap(_compiled), ()))
    return [key[0] for key in keys]


def device_for(device: Device | None) -> Device:
    """The device record: None means the CPU executor."""
    return device_named("cpu:0") if device is None else device


def buffer_on(value: Value, device: Device | None) -> Any:
    """The buffer of `value` on `device` (None: the CPU), copied there if it is elsewhere.

    Native code reads dense arrays: a view from an eager transpose is made dense once, in place.
    """
    if type(value) is not Array:
        value_type = type_of(value)
        # NumPy would wrap a Python integer that does not fit into its dtype.
        if type(value) is int:
            check_range(np.asarray(value), value_type.dtype)
        settings = float_errors.ignore()  # a Python number beyond f32 is infinite there
        try:
            host = np.asarray(value, value_type.dtype, order="C")
        finally:
            float_errors.restore(settings)
        host = host if host.flags.aligned else host.copy()  # a field of a record may be unaligned
        return put(host, value_type, free_on(device)).buffer
    if device is None and value.place.device is None:
        value.make_dense()
    return value.buffer_on(device)


# --- running ----------------------------------------------------------------------------------


def execute(
    program: Program, args: Sequence[Value], place: Place, donations: tuple[int, ...] = (), schedules: Schedules = ()
) -> list[Array]:
    """The results of the compiled program. donations: inputs whose memory results may use."""
    device = place.device
    executable = compiled(program, device_for(device), donations, schedules)
    # First, since the list of buffers would be further references to them, and nothing would be
    # lent.
    lenders = _lent(args, device, donations) if donations else ()
    buffers = [buffer_on(a, device) for a in args]
    if not lenders:
        return run_executable(executable, program.output_types, buffers, place)
    with lending(args, lenders):
        return run_executable(executable, program.output_types, buffers, place, lenders)


def _lent(args: Sequence[Value], device: Device | None, donations: Sequence[int]) -> tuple[int, ...]:
    """The donated arguments whose memory results may use."""
    # An array that is passed twice would be written through one argument and read through another.
    uses = Counter(map(id, args))
    return tuple([n for n in donations if uses[id(args[n])] == 1 and _may_lend(args[n], device)])


def _may_lend(value: Value, device: Device | None) -> bool:
    """Whether a value is an Array that nothing else refers to."""
    return type(value) is Array and value.place.device is device and value.is_sole_owner


def run_executable(
    executable: Executable,
    types: Sequence[ArrayType],
    buffers: Sequence[Any],
    place: Place = CPU,
    donations: tuple[int, ...] = (),
) -> list[Array]:
    """The results, of these types, of compiled code on buffers of its device."""
    results = executable(buffers, donations)
    next(counts.runs)
    return [*map(Array, results, sized(types, results), repeat(place))]


def sized(types: Sequence[ArrayType], buffers: Sequence[Any]) -> list[ArrayType]:
    """The types, with symbolic sizes replaced by those of the buffers."""
    return [t.with_shape(tuple(b.shape)) if t.is_symbolic else t for t, b in zip(types, buffers, strict=True)]
