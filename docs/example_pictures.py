"""Pictures of the worked examples, drawn by what their pages say.

python -m docs.example_pictures [NAME...]      docs/examples/NAME.png; without names, all of them
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from docs.pictures import GREY, HERE, plain
from docs.snippets import namespace

FOLDER = HERE / "examples"
BLUE, ORANGE, GREEN = "#6478e8", "#e6912c", "#35a374"  # seen on light and on dark pages
FOUR = (BLUE, ORANGE, GREEN, "#cc6fa5")
Names = Mapping[str, Any]


def side_by_side(count: int, height: float = 3.2) -> tuple[Figure, list[Any]]:
    """A figure of several places, from left to right."""
    figure = Figure(figsize=(8, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, count)))


def explained(axes: Any, title: str) -> None:
    """A legend without a frame, on a plain place."""
    plain(axes, title)
    axes.legend(frameon=False, labelcolor=GREY, fontsize=8)


def draw_image(axes: Any, image: Any, title: str, **how: Any) -> None:
    """An image without ticks."""
    axes.imshow(np.asarray(image), **how)
    axes.set_title(title, fontsize=9, color=GREY)
    axes.set_axis_off()


def gaussian_process(names: Names) -> Figure:
    """Measurements, the mean, and two spreads around it."""
    figure, (axes,) = side_by_side(1)
    new, mean, spread = names["new"], np.asarray(names["mean"]), np.asarray(names["spread"])
    axes.fill_between(new, mean - 2 * spread, mean + 2 * spread, color=BLUE, alpha=0.25, lw=0, label="two spreads")
    axes.plot(new, mean, color=BLUE, label="mean")
    axes.plot(new, np.sin(2 * new), color=GREY, lw=0.8, ls="--", label="truth")
    axes.plot(names["places"], names["values"], "o", ms=4, color=ORANGE, label="measured")
    explained(axes, "What 27 measurements say of a function")
    return figure


def hamiltonian_monte_carlo(names: Names) -> Figure:
    """Draws over the exact density, and their autocorrelation."""
    figure, (plane, decay) = side_by_side(2)
    draws, mean, covariance = names["draws"], names["exact_mean"], names["exact_covariance"]
    plane.scatter(*draws[0].T, s=3, color=BLUE, alpha=0.5, lw=0, label="draws of one chain")
    angle = np.linspace(0, 2 * np.pi, 200)
    for radius in (1, 2):
        ellipse = mean + radius * np.stack([np.cos(angle), np.sin(angle)], 1) @ np.linalg.cholesky(covariance).T
        plane.plot(*ellipse.T, color=ORANGE, lw=1.2, label="one and two spreads, exact" if radius == 1 else None)
    explained(plane, "weights of the regression")
    centred = draws - draws.mean(axis=(0, 1))
    lags = range(20)
    products = [np.mean(centred[:, : draws.shape[1] - n] * centred[:, n:], axis=(0, 1)) for n in lags]
    for number, colour in enumerate((BLUE, ORANGE)):
        decay.plot(lags, [p[number] / products[0][number] for p in products], "o-", ms=3, color=colour)
    decay.axhline(0, color=GREY, lw=0.6)
    plain(decay, "autocorrelation of each weight, by lag")
    return figure


def ode_parameters(names: Names) -> Figure:
    """Counts, the fitted curves, and the cost of each step."""
    figure, (course, descent) = side_by_side(2)
    fine = np.linspace(0, 12, 241, dtype="f")
    states = np.asarray(names["solve"](names["place"], names["params"], fine, 2))
    for number, (name, colour) in enumerate((("hares", BLUE), ("lynxes", ORANGE))):
        course.plot(fine, states[:, number], color=colour, label=name)
        course.plot(names["hours"], names["counts"][:, number], "o", ms=3.5, color=colour)
    explained(course, "counts and the fitted curves, over time")
    descent.semilogy(names["costs"], "o-", ms=4, color=BLUE)
    plain(descent, "cost after each step")
    return figure


def kalman_filter(names: Names) -> Figure:
    """Measurements, the true path, and the filtered one with its spread."""
    figure, (axes,) = side_by_side(1)
    means, spread = np.asarray(names["means"])[:, 0], np.sqrt(np.asarray(names["covariances"])[:, 0, 0])
    steps = np.arange(len(means))
    axes.fill_between(steps, means - 2 * spread, means + 2 * spread, color=BLUE, alpha=0.25, lw=0)
    axes.plot(steps, means, color=BLUE, label="filtered, and two spreads")
    axes.plot(steps, names["states"][:, 0], color=GREY, ls="--", lw=1, label="truth")
    axes.plot(steps, names["measured"][:, 0], "o", ms=3, color=ORANGE, label="measured")
    explained(axes, "place, by step")
    return figure


def deconvolution(names: Names) -> Figure:
    """The truth, the picture as taken, and the ways back."""
    divided = names["divided"]
    images = {"truth": names["sharp"], "as taken": names["blurred"], "divided": divided(1e-9)}
    images |= {"Tikhonov": divided(0.02), "few edges": names["restored"]}
    figure, places = side_by_side(5, 1.9)
    for axes, (title, image) in zip(places, images.items()):
        draw_image(axes, image, title, cmap="gray", vmin=0, vmax=1)
    return figure


def normalising_flow(names: Names) -> Figure:
    """The density that was learned, and draws from it."""
    figure, (density, draws) = side_by_side(2)
    side = len(names["ticks"])
    heights = np.asarray(names["densities"](names["trained"], names["plane"])).reshape(side, side)
    draw_image(density, heights, "density", cmap="magma", origin="lower", extent=(-4, 4, -4, 4))
    draws.scatter(*names["unseen"][:1500].T, s=4, lw=0, color=ORANGE, alpha=0.7, label="crescents")
    draws.scatter(*names["drawn"][:1500].T, s=4, lw=0, color=BLUE, alpha=0.7, label="draws")
    for axes in (density, draws):
        axes.set(xlim=(-2.5, 2.5), ylim=(-1.5, 2), aspect="equal")
    explained(draws, "points and draws")
    return figure


def variational_autoencoder(names: Names) -> Figure:
    """Points, what the decoder makes of z, and the bound as it rises."""
    figure, (plane, rise) = side_by_side(2)
    z = np.linspace(-3, 3, 400, dtype="f")[:, None]
    decoded = np.asarray(names["apply"](names["params"]["decoder"], z))
    plane.scatter(*np.asarray(names["points"]).T, s=10, lw=0, color=ORANGE, label="points")
    plane.plot(*decoded.T, color=BLUE, label="decoded z, -3 to 3")
    plane.set_aspect("equal")
    explained(plane, "the plane")
    rise.plot(names["bounds"], color=BLUE, lw=0.7)
    rise.axhline(float(names["exact"].mean()), color=GREY, ls="--", lw=1, label="evidence, in the end")
    rise.set_ylim(-8, 1)
    explained(rise, "bound of each batch, nats a point")
    return figure


def pole_balancing(names: Names) -> Figure:
    """How long episodes last as learning goes on, and the angle of the pole in one."""
    figure, (rise, course) = side_by_side(2)
    rise.plot(names["lengths"], color=BLUE)
    plain(rise, "mean length of an episode, by step of learning")
    key = names["unseen"][0]
    for name, weights, colour in (("learned", 1e3 * names["weights"], BLUE), ("random", 0 * names["weights"], ORANGE)):
        states, _, alive = names["episode"](weights, key)
        angles = np.where(alive, np.asarray(states)[:, 2], np.nan)
        course.plot(np.degrees(angles), color=colour, label=name)
    for limit in (-0.21, 0.21):
        course.axhline(np.degrees(limit), color=GREY, ls="--", lw=0.8)
    explained(course, "angle of the pole, in degrees")
    return figure


def recurrent_network(names: Names) -> Figure:
    """A series, and what the network expected at each step."""
    figure, (axes,) = side_by_side(1, 2.8)
    values = np.asarray(names["unseen"][0])
    axes.plot(values, "o", ms=3.5, color=ORANGE, label="the series")
    expected = np.asarray(names["predict"](names["params"], values[:-1]))
    axes.plot(np.arange(1, len(values)), expected, color=BLUE, label="expected from the values before")
    axes.set_ylim(-1.3, 1.9)
    explained(axes, "a series that was not seen in training")
    return figure


def hanging_chain(names: Names) -> Figure:
    """The chain at first, as designed, and what was wanted."""
    figure, (axes, descent) = side_by_side(2)
    shape, params = names["shape"], names["params"]
    designed = shape({**params, "length": names["length"]})
    for title, nodes, style in (("at first", shape(params), "o-"), ("as designed", designed, "o-")):
        line = np.concatenate([[[0, 0]], np.asarray(nodes), [[names["SPAN"], 0]]])
        axes.plot(*line.T, style, ms=4, label=title, color=ORANGE if title == "at first" else BLUE)
    axes.plot(*np.asarray(names["wanted"]).T, "x", ms=8, color=GREY, label="wanted")
    axes.set_aspect("equal")
    explained(axes, "the chain")
    descent.semilogy(np.asarray(names["misses"]) ** 0.5, color=BLUE)
    plain(descent, "off by, after each step")
    return figure


def heat_from_measurements(names: Names) -> Figure:
    """The temperature that was learned, its error, and k as it was learned."""
    figure, (field, error, course) = side_by_side(3, 2.6)
    learned, side = np.asarray(names["learned"]).reshape(31, 41), (0, 1, 0, 0.3)
    exact = names["exact"](names["xs"], names["ts"]).reshape(31, 41)
    draw_image(field, learned, "u(x, t), and the readings", cmap="inferno", origin="lower", extent=side, aspect="auto")
    field.plot(*names["places"].T, "o", ms=3, mfc="none", color="white")
    draw_image(error, learned - exact, "", cmap="RdBu", origin="lower", extent=side, aspect="auto")
    error.set_title(f"error, at most {np.abs(learned - exact).max():.3f}", fontsize=9, color=GREY)
    course.plot(names["ks"], color=BLUE)
    course.axhline(names["TRUE_K"], color=GREY, ls="--", lw=0.8)
    plain(course, "k, by step")
    return figure


def quantum_control(names: Names) -> Figure:
    """The field of each spin, and the probabilities of the four states."""
    figure, (fields, chances) = side_by_side(2)
    times = names["DT"] * np.arange(1, names["STEPS"] + 1)
    for number, colour in enumerate((BLUE, ORANGE)):
        fields.step(times, np.asarray(names["field"])[:, number], color=colour, label=f"at spin {number + 1}")
    explained(fields, "the field, over time")
    shares = np.abs(np.asarray(names["states"])) ** 2
    for share, name, colour in zip(shares.T, ("up, up", "up, down", "down, up", "down, down"), FOUR):
        chances.plot(times, share, color=colour, label=name)
    explained(chances, "the probability of each state")
    return figure


def hidden_markov(names: Names) -> Figure:
    """The series and the hidden states, and the posterior of each state."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    series, shares = figure.subplots(2, 1, sharex=True)
    means, hours = names["params"]["mean"], np.arange(len(names["observations"]))
    series.plot(hours, names["observations"], "o", ms=2.5, color=ORANGE, label="seen")
    series.step(hours, means[names["hidden"]], where="mid", color=GREY, lw=1, label="mean of the hidden state")
    course = np.asarray(names["best"](names["params"], names["scores"])).argmax(axis=1)
    series.step(hours, means[course], where="mid", color=BLUE, lw=1.2, label="likeliest course")
    series.set_ylim(-3, 9)
    series.legend(frameon=False, labelcolor=GREY, fontsize=8, ncols=3, loc="upper right")
    plain(series, "")
    posterior = np.asarray(names["posterior"](names["params"], names["scores"]))
    shares.stackplot(hours, posterior.T, colors=FOUR[:3], alpha=0.7, lw=0)
    plain(shares, "probability of each state, by hour")
    return figure


def molecular_dynamics(names: Names) -> Figure:
    """The particles at the end, and the energies as time goes on."""
    figure, (box, energies) = side_by_side(2)
    side, dt = names["BOX"], 0.002
    for places, colour, title in ((names["places"], GREY, "at first"), (names["there"], BLUE, "later")):
        box.plot(*(np.asarray(places) % side).T, "o", ms=6, mfc="none", color=colour, label=title)
    box.set(xlim=(0, side), ylim=(0, side), aspect="equal")
    box.legend(frameon=False, labelcolor=GREY, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    plain(box, "particles")
    records = names["run"](names["places"], names["speeds"], dt, 1500)[2]
    total, kinetic = np.asarray(records[0]), np.asarray(records[1])
    times = dt * np.arange(1, 1501)
    for values, name, colour in (
        (kinetic, "kinetic", ORANGE),
        (total - kinetic, "potential", BLUE),
        (total, "sum", GREY),
    ):
        energies.plot(times, values, color=colour, lw=1.2, label=name)
    explained(energies, "energies, over time")
    return figure


PICTURES: Mapping[str, Callable[[Names], Figure]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        gaussian_process,
        hamiltonian_monte_carlo,
        ode_parameters,
        kalman_filter,
        deconvolution,
        normalising_flow,
        variational_autoencoder,
        pole_balancing,
        recurrent_network,
        hanging_chain,
        heat_from_measurements,
        quantum_control,
        hidden_markov,
        molecular_dynamics,
    )
}


def draw(name: str) -> Path:
    """Draw one picture beside its page."""
    figure = PICTURES[name](namespace([FOLDER / f"{name}.md"]))
    file = FOLDER / f"{name}.png"
    figure.savefig(file, dpi=100, transparent=True)
    return file


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PICTURES:
        print(draw(chosen))
