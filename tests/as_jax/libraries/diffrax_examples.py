"""Diffrax: ordinary, stochastic and controlled differential equations, and their adjoints."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optimistix as optx

_DECAY = dfx.ODETerm(lambda t, y, args: -y)
_SPRING = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -args * y[0]]))
_START = jnp.array([1.0, 0.0])


def _end(term=_SPRING, solver=None, y0=_START, args=2.0, t1=1.0, dt0=0.05, **options):
    return dfx.diffeqsolve(term, solver or dfx.Tsit5(), 0.0, t1, dt0, y0, args, **options).ys


def quick_start_of_the_readme():
    def f(t, y, args):
        return -y

    term, solver = dfx.ODETerm(f), dfx.Dopri5()
    solution = dfx.diffeqsolve(term, solver, t0=0, t1=1, dt0=0.1, y0=jnp.array([2.0, 3.0]))
    return {"ts": solution.ts, "ys": solution.ys, "steps": solution.stats["num_steps"]}


def quick_start_with_saves_and_steps_by_error():
    term = dfx.ODETerm(lambda t, y, args: -y)
    saveat = dfx.SaveAt(ts=[0.0, 1.0, 2.0, 3.0])
    controller = dfx.PIDController(rtol=1e-5, atol=1e-5)
    sol = dfx.diffeqsolve(term, dfx.Dopri5(), t0=0, t1=3, dt0=0.1, y0=1, saveat=saveat, stepsize_controller=controller)
    return {"ts": sol.ts, "ys": sol.ys, "steps": sol.stats["num_steps"]}


def explicit_solvers():
    names = ("Euler", "Heun", "Midpoint", "Ralston", "Bosh3", "Tsit5", "Dopri5", "Dopri8")
    return {name: _end(solver=getattr(dfx, name)()) for name in names}


def implicit_solvers():
    root = dfx.VeryChord(rtol=1e-5, atol=1e-5)
    names = ("ImplicitEuler", "Kvaerno3", "Kvaerno4", "Kvaerno5")
    return {name: _end(solver=getattr(dfx, name)(root_finder=root)) for name in names}


def solvers_of_split_equations():
    terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -y * 5.0), dfx.ODETerm(lambda t, y, args: jnp.sin(t) * y))
    root = dfx.VeryChord(rtol=1e-5, atol=1e-5)
    names = ("KenCarp3", "KenCarp4", "KenCarp5", "Sil3")
    return {name: _end(terms, getattr(dfx, name)(root_finder=root), dt0=0.1) for name in names}


def symplectic_solvers():
    terms = (dfx.ODETerm(lambda t, p, args: p), dfx.ODETerm(lambda t, q, args: -q))
    start = (jnp.array(1.0), jnp.array(0.0))
    return {name: _end(terms, getattr(dfx, name)(), start) for name in ("SemiImplicitEuler",)}


def reversible_leapfrog():
    return _end(solver=dfx.LeapfrogMidpoint())


def stiff_equations_of_robertson():
    def robertson(t, y, args):
        k1, k2, k3 = args
        f0 = -k1 * y[0] + k3 * y[1] * y[2]
        f1 = k1 * y[0] - k2 * y[1] ** 2 - k3 * y[1] * y[2]
        return jnp.stack([f0, f1, k2 * y[1] ** 2])

    return dfx.diffeqsolve(
        dfx.ODETerm(robertson),
        dfx.Kvaerno5(),
        0.0,
        100.0,
        0.0002,
        jnp.array([1.0, 0.0, 0.0]),
        (0.04, 3e7, 1e4),
        saveat=dfx.SaveAt(ts=jnp.array([0.0, 1.0, 10.0, 100.0])),
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-7),
    ).ys


def saves_of_each_kind():
    steps = _end(_DECAY, dt0=0.25, saveat=dfx.SaveAt(steps=True), max_steps=8)
    both = _end(_DECAY, dt0=0.25, saveat=dfx.SaveAt(t0=True, t1=True, ts=jnp.array([0.3, 0.7])))
    function = _end(_DECAY, dt0=0.25, saveat=dfx.SaveAt(ts=jnp.array([0.3, 0.7]), fn=lambda t, y, args: y.sum() + t))
    several = dfx.SaveAt(subs=[dfx.SubSaveAt(t1=True), dfx.SubSaveAt(ts=jnp.array([0.5]), fn=lambda t, y, args: y[0])])
    return {"steps": steps, "both": both, "function": function, "several": _end(_DECAY, dt0=0.25, saveat=several)}


def dense_output_and_its_derivative():
    solution = dfx.diffeqsolve(_SPRING, dfx.Dopri5(), 0.0, 2.0, 0.1, _START, 2.0, saveat=dfx.SaveAt(dense=True))
    return {
        "values": jax.vmap(solution.evaluate)(jnp.linspace(0, 2, 7)),
        "derivative": solution.derivative(0.55),
        "change": solution.evaluate(0.3, 1.1),
    }


def controllers_of_the_step():
    controllers = {
        "proportional": dfx.PIDController(rtol=1e-4, atol=1e-4),
        "with memory": dfx.PIDController(rtol=1e-4, atol=1e-4, pcoeff=0.2, icoeff=0.4),
        "bounded": dfx.PIDController(rtol=1e-3, atol=1e-3, dtmax=0.1),
        "given": dfx.StepTo(ts=jnp.array([0.0, 0.1, 0.4, 1.0])),
    }
    return {name: _end(stepsize_controller=c, dt0=None if name == "given" else 0.05) for name, c in controllers.items()}


def controller_that_meets_a_jump():
    term = dfx.ODETerm(lambda t, y, args: jnp.where(t < 0.5, -y, 2 * y))
    controller = dfx.ClipStepSizeController(dfx.PIDController(rtol=1e-4, atol=1e-4), jump_ts=jnp.array([0.5]))
    return _end(term, stepsize_controller=controller)


def events_end_an_integration():
    term = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.81]))
    event = dfx.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-5, 1e-5, optx.rms_norm))
    solution = dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, jnp.inf, 0.1, jnp.array([10.0, 0.0]), event=event)
    return {"t": solution.ts, "y": solution.ys, "event": solution.result == dfx.RESULTS.event_occurred}


def derivative_of_an_event():
    def time(height):
        term = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.81]))
        event = dfx.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-5, 1e-5, optx.rms_norm))
        return dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 5.0, 0.1, jnp.stack([height, 0.0]), event=event).ts[0]

    return jax.value_and_grad(time)(jnp.array(10.0))


def steady_state():
    term = dfx.ODETerm(lambda t, y, args: args - y)
    controller = dfx.PIDController(rtol=1e-4, atol=1e-4)
    event = dfx.Event(dfx.steady_state_event(rtol=1e-2, atol=1e-3))
    solution = dfx.diffeqsolve(
        term,
        dfx.Tsit5(),
        0.0,
        jnp.inf,
        0.1,
        jnp.array(0.0),
        jnp.array(2.0),
        stepsize_controller=controller,
        event=event,
    )
    return solution.ys


def adjoints_of_each_kind():
    adjoints = {
        "checkpoints": dfx.RecursiveCheckpointAdjoint(),
        "few checkpoints": dfx.RecursiveCheckpointAdjoint(checkpoints=3),
        "direct": dfx.DirectAdjoint(),
        "backsolve": dfx.BacksolveAdjoint(),
    }
    loss = lambda args, adjoint: jnp.sum(_end(args=args, adjoint=adjoint, max_steps=64) ** 2)  # noqa: E731
    return {name: jax.grad(loss)(2.0, adjoint) for name, adjoint in adjoints.items()}


def adjoint_of_steps_by_error():
    def loss(y0):
        controller = dfx.PIDController(rtol=1e-5, atol=1e-6)
        return jnp.sum(_end(y0=y0, stepsize_controller=controller, max_steps=64) ** 2)

    return jax.jit(jax.value_and_grad(loss))(_START)


def forward_mode_derivative():
    function = lambda args: _end(args=args, adjoint=dfx.ForwardMode())  # noqa: E731
    return jax.jvp(function, (2.0,), (1.0,))


def batch_of_initial_values_and_parameters():
    ends = jax.vmap(lambda y0, args: _end(y0=y0, args=args))(jnp.eye(2), jnp.array([1.0, 2.0]))
    controller = dfx.PIDController(rtol=1e-4, atol=1e-4)
    adaptive = jax.jit(jax.vmap(lambda args: _end(args=args, stepsize_controller=controller)))(jnp.array([1.0, 30.0]))
    return {"ends": ends, "adaptive": adaptive}


def states_that_are_trees():
    term = dfx.ODETerm(lambda t, y, args: {"a": -y["a"], "b": (y["a"].sum() - y["b"][0],)})
    return _end(term, y0={"a": jnp.arange(3.0), "b": (jnp.array(0.5),)})


def complex_states():
    return _end(dfx.ODETerm(lambda t, y, args: 1j * y), y0=jnp.array([1.0 + 0j, 0.5j]))


def lotka_volterra():
    def field(t, y, args):
        prey, predator = y
        alpha, beta, gamma, delta = args
        return alpha * prey - beta * prey * predator, -gamma * predator + delta * prey * predator

    saveat = dfx.SaveAt(ts=jnp.linspace(0, 14, 8))
    return _end(dfx.ODETerm(field), y0=(10.0, 10.0), args=(0.1, 0.02, 0.4, 0.02), t1=14, dt0=0.1, saveat=saveat)


def brownian_motion_by_path():
    path = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=jr.key(0))
    exact = dfx.UnsafeBrownianPath(shape=(2,), key=jr.key(0))
    return {"tree": path.evaluate(0.1, 0.7), "unsafe": exact.evaluate(0.1, 0.7), "end": path.evaluate(0.0, 1.0)}


def brownian_motion_with_space_time_area():
    path = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=jr.key(3), levy_area=dfx.SpaceTimeLevyArea)
    increment = path.evaluate(0.2, 0.5, use_levy=True)
    return {"W": increment.W, "H": increment.H}


def stochastic_equation_of_the_readme():
    brownian = dfx.VirtualBrownianTree(0, 1, tol=1e-3, shape=(), key=jr.PRNGKey(0))
    terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -y), dfx.ControlTerm(lambda t, y, args: 0.1 * t, brownian))
    solution = dfx.diffeqsolve(terms, dfx.Euler(), 0, 1, dt0=0.05, y0=1.0, saveat=dfx.SaveAt(ts=[0.0, 0.5, 1.0]))
    return solution.ys


def stochastic_solvers():
    brownian = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jr.key(1), levy_area=dfx.SpaceTimeLevyArea)
    terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -y), dfx.ControlTerm(lambda t, y, args: 0.3, brownian))
    names = ("EulerHeun", "ItoMilstein", "StratonovichMilstein", "ShARK", "SEA", "SRA1", "SPaRK")
    return {name: _end(terms, getattr(dfx, name)(), jnp.array(1.0), dt0=0.1) for name in names}


def interpolations_of_data():
    ts, ys = jnp.array([0.0, 0.5, 2.0, 3.0]), jnp.array([[0.0, 1.0], [1.0, -1.0], [0.5, 0.5], [2.0, 0.0]])
    cubic = dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, ys))
    linear = dfx.LinearInterpolation(ts, ys)
    at = jnp.linspace(0, 3, 7)
    return {
        "cubic": jax.vmap(cubic.evaluate)(at),
        "linear": jax.vmap(linear.evaluate)(at),
        "slope": cubic.derivative(0.7),
        "gaps": dfx.linear_interpolation(ts, ys.at[1, 0].set(jnp.nan)),
        "rectilinear": dfx.rectilinear_interpolation(ts, ys),
    }


def controlled_equation():
    ts = jnp.linspace(0, 1, 6)
    control = dfx.LinearInterpolation(ts, jnp.stack([ts, jnp.sin(5 * ts)], 1))
    term = dfx.ControlTerm(lambda t, y, args: jnp.outer(y, jnp.array([0.5, -0.2])), control).to_ode()
    return _end(term, y0=jnp.array([1.0, 2.0]))


def neural_ordinary_equation():
    class Field(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, t, y, args):
            return self.mlp(y)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(field, ts, y0, ys):
        controller = dfx.PIDController(rtol=1e-3, atol=1e-6)
        solve = lambda y: _end(dfx.ODETerm(field), y0=y, saveat=dfx.SaveAt(ts=ts), stepsize_controller=controller)  # noqa: E731
        return jnp.mean((jax.vmap(solve)(y0) - ys) ** 2)

    field = Field(eqx.nn.MLP(2, 2, 16, 2, activation=jax.nn.softplus, key=jr.key(0)))
    ts, y0 = jnp.linspace(0, 1, 5), jnp.array([[1.0, 0.0], [0.0, 1.0], [-0.5, 0.5]])
    ys, losses = y0[:, None] * jnp.exp(-ts)[:, None], []
    for _ in range(3):
        value, gradient = loss(field, ts, y0, ys)
        field = eqx.apply_updates(field, jax.tree.map(lambda g: -0.1 * g, gradient))
        losses.append(value)
    return losses


def failure_by_too_few_steps():
    solution = dfx.diffeqsolve(_DECAY, dfx.Tsit5(), 0.0, 1.0, 0.01, _START, max_steps=5, throw=False)
    return {"success": solution.result == dfx.RESULTS.successful, "ys": solution.ys}


def steps_by_hand():
    solver, tprev, tnext, y, state = dfx.Tsit5(), 0.0, 0.1, _START, None
    state = solver.init(_SPRING, tprev, tnext, y, 2.0)
    for _ in range(5):
        y, _, _, state, _ = solver.step(_SPRING, tprev, tnext, y, 2.0, state, made_jump=False)
        tprev, tnext = tnext, tnext + 0.1
    return y


TOLERANCES = {
    "stiff_equations_of_robertson": (1e-3, "steps within a tolerance of 1e-5"),
    "steady_state": (1e-3, "it ends where the derivative is below a tolerance"),
}
