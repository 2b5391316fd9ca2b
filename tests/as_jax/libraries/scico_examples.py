"""SCICO: operators, functionals and solvers of imaging."""

import numpy as np
import scico.numpy as snp
from scico import functional, linop, loss, metric, operator, random
from scico.optimize import PDHG, LinearizedADMM
from scico.optimize.admm import ADMM, LinearSubproblemSolver
from scico.optimize.pgm import PGM, AcceleratedPGM

SHAPE = (16, 16)
TRUE = np.zeros(SHAPE, "float32")
TRUE[4:12, 4:12] = 1.0
NOISY = snp.array(TRUE + 0.1 * np.random.default_rng(0).normal(size=SHAPE).astype("float32"))


def total_variation_by_admm():
    difference = linop.FiniteDifference(input_shape=SHAPE, append=0)
    solver = ADMM(
        f=loss.SquaredL2Loss(y=NOISY),
        g_list=[0.2 * functional.L21Norm()],
        C_list=[difference],
        rho_list=[1.0],
        x0=NOISY,
        maxiter=10,
        subproblem_solver=LinearSubproblemSolver(cg_kwargs={"tol": 1e-3, "maxiter": 20}),
    )
    x = solver.solve()
    return {"x": x, "psnr": metric.psnr(TRUE, x), "objective": solver.objective()}


def total_variation_by_primal_and_dual():
    difference = linop.FiniteDifference(input_shape=SHAPE, append=0)
    tau, sigma = 0.35, 0.35
    pdhg = PDHG(
        f=loss.SquaredL2Loss(y=NOISY), g=0.2 * functional.L1Norm(), C=difference, tau=tau, sigma=sigma, maxiter=20
    )
    ladmm = LinearizedADMM(
        f=loss.SquaredL2Loss(y=NOISY), g=0.2 * functional.L1Norm(), C=difference, mu=0.1, nu=0.9, x0=NOISY, maxiter=20
    )
    return {"pdhg": pdhg.solve(), "linearized": ladmm.solve()}


def sparse_coding_by_proximal_gradients():
    matrix, _ = random.randn((12, 20), seed=3)
    y = matrix[:, 2] - 0.5 * matrix[:, 7]
    f = loss.SquaredL2Loss(y=y, A=linop.MatrixOperator(matrix))
    g = 0.3 * functional.L1Norm()
    options = {"f": f, "g": g, "L0": 80.0, "x0": snp.zeros(20), "maxiter": 25}
    return {"plain": PGM(**options).solve(), "accelerated": AcceleratedPGM(**options).solve()}


def operators_and_their_adjoints():
    kernel = snp.array(np.random.default_rng(1).normal(size=(3, 3)).astype("float32"))
    blur = linop.Convolve(h=kernel, input_shape=SHAPE)
    circular = linop.CircularConvolve(h=kernel, input_shape=SHAPE)
    chain = linop.Sum(input_shape=circular.output_shape, axis=0) @ circular
    return {
        "blur": blur(NOISY),
        "adjoint": blur.adj(blur(NOISY)),
        "circular": circular(NOISY),
        "gram": circular.gram(NOISY),
        "chain": chain(NOISY),
        "norm": linop.operator_norm(linop.MatrixOperator(kernel), maxiter=50),
        "fourier": linop.DFT(input_shape=SHAPE, axes=(0, 1))(NOISY.astype(snp.complex64)),
    }


def functionals_and_their_proximal_maps():
    kinds = {
        "l1": functional.L1Norm(),
        "l2": functional.L2Norm(),
        "zero": functional.L0Norm(),
        "huber": functional.HuberNorm(0.1),
        "nuclear": functional.NuclearNorm(),
        "box": functional.NonNegativeIndicator(),
    }
    return {name: {"value": f(NOISY), "prox": f.prox(NOISY, 0.2)} for name, f in kinds.items()}


def arrays_in_blocks():
    blocks = snp.blockarray([NOISY[:3], snp.arange(4.0)])
    return {
        "scaled": list(blocks * 2.0),
        "sum": snp.sum(blocks),
        "norms": list(snp.abs(blocks)),
        "draw": random.randn((5,), seed=2)[0],
    }


def operators_that_are_not_linear():
    square = operator.Operator(input_shape=(5,), eval_fn=lambda x: x**2 + snp.sin(x))
    x = snp.linspace(0, 1, 5)
    tangent, pull = square.jvp(x, snp.ones(5)), square.vjp(x)
    return {"value": square(x), "tangent": tangent, "cotangent": pull[1](snp.ones(5))}
