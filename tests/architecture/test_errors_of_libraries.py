"""A call for each place that raises in scipy, optim, tree, control, dims, transforms and sparse.

errors_of_libraries.txt is the golden text. Errors that the calls of test_errors.py or the tests of
a function already provoke are left out.
"""

from __future__ import annotations

import sys

import pytest

import rune
from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke, works_as_before
from tests.architecture.sources import HERE
from tests.support.expect import expect_file

LINALG: list[tuple[str, str]] = [
    ("a matrix of a convolution of no elements", "rune.scipy.linalg.convolution_matrix(x, 0)"),
    (
        "an unknown method of Sylvester's equation",
        "rune.scipy.linalg.solve_sylvester(rnp.eye(2), rnp.eye(2), rnp.eye(2), method='magic')",
    ),
    ("Sylvester's equation of other sizes", "rune.scipy.linalg.solve_sylvester(rnp.eye(2), rnp.eye(3), rnp.eye(2))"),
    (
        "an unknown method of Lyapunov's equation",
        "rune.scipy.linalg.solve_discrete_lyapunov(rnp.eye(2), rnp.eye(2), method='magic')",
    ),
    ("Lyapunov's equation of other sizes", "rune.scipy.linalg.solve_discrete_lyapunov(rnp.eye(2), rnp.eye(3))"),
    (
        "an unknown method of a derivative of expm",
        "rune.scipy.linalg.expm_frechet(rnp.eye(2), rnp.eye(2), method='magic')",
    ),
    ("a factored system of other rows", "rune.scipy.linalg.lu_solve(rune.scipy.linalg.lu_factor(rnp.eye(2)), x)"),
    (
        "a factored system transposed three times",
        "rune.scipy.linalg.lu_solve(rune.scipy.linalg.lu_factor(rnp.eye(3)), x, trans=3)",
    ),
    ("an unknown mode of qr", "rune.scipy.linalg.qr(rnp.eye(2), mode='magic')"),
    ("real eigenvectors of complex eigenvalues", "rune.scipy.linalg.cdf2rdf(rnp.ones(2) * 1j, rnp.eye(2))"),
    ("a function of a matrix that sums", "rune.scipy.linalg.funm(rnp.eye(2), rnp.sum)"),
    ("Hadamard's matrix of size 3", "rune.scipy.linalg.hadamard(3)"),
    ("an exact inverse that is too large", "rune.scipy.linalg.invhilbert(15, exact=True)"),
    ("an unknown kind of Pascal's matrix", "rune.scipy.linalg.pascal(3, kind='magic')"),
    ("an unknown scale of Fourier's matrix", "rune.scipy.linalg.dft(3, scale='magic')"),
    ("products of columns of other numbers", "rune.scipy.linalg.khatri_rao(rnp.eye(2), rnp.eye(3))"),
    ("a triangular system transposed three times", "rune.scipy.linalg.solve_triangular(rnp.eye(3), x, trans=3)"),
    ("a right-hand side that is a number", "rune.scipy.linalg.solve_triangular(rnp.eye(3), x[0])"),
    ("a triangular system of other rows", "rune.scipy.linalg.solve_triangular(rnp.eye(2), x)"),
    ("an unknown assumption about a matrix", "rune.scipy.linalg.solve(rnp.eye(3), x, assume_a='magic')"),
    ("diagonals of equal lengths", "rune.scipy.linalg.eigh_tridiagonal(x, x)"),
    ("a selection of eigenvalues without a range", "rune.scipy.linalg.eigh_tridiagonal(x, x[1:], select='i')"),
    ("bands of several matrices", "rune.scipy.linalg.eig_banded(rnp.ones((2, 2, 2)))"),
    ("homogeneous eigenvalues", "rune.scipy.linalg.eig(rnp.eye(2), homogeneous_eigvals=True)"),
    ("a row and a column of other lengths", "rune.scipy.linalg.solve_toeplitz((x, rnp.ones(2)), rnp.ones(2))"),
    ("an unknown side of a polar factor", "rune.scipy.linalg.polar(rnp.eye(2), side='above')"),
    ("a number of columns that is negative", "rune.scipy.linalg.orth(rnp.eye(2), size=-1)"),
    ("angles of subspaces of other spaces", "rune.scipy.linalg.subspace_angles(rnp.eye(2), rnp.eye(3))"),
    ("a Fourier matrix of reals", "rune.scipy.linalg.dft(3, dtype='f4')"),
    ("as many survivals as births", "rune.scipy.linalg.leslie(x, x)"),
]

SIGNALS: list[tuple[str, str]] = [
    ("a window in two axes", "rune.scipy.signal.welch(x, window=rnp.ones((2, 2)))"),
    ("no codes to choose from", "rune.scipy.cluster.vq.vq(rnp.ones((3, 2)), rnp.ones((0, 2)))"),
    ("an unknown mode of a border", "rune.scipy.ndimage.gaussian_filter(x, 1.0, mode='magic')"),
    ("widths for too many axes", "rune.scipy.ndimage.median_filter(x, size=(3, 3))"),
    ("a median of complex numbers", "rune.scipy.ndimage.median_filter(x * 1j)"),
    (
        "an unknown continuation of a signal",
        "rune.scipy.signal.filtfilt(rnp.ones(1), rnp.ones(1), rnp.ones(9), padtype='magic')",
    ),
    ("an unknown use of weights", "rune.scipy.signal.savgol_coeffs(3, 1, use='magic')"),
    ("an unknown mode of smoothing", "rune.scipy.signal.savgol_filter(x, 3, 1, mode='magic')"),
    ("segments without samples", "rune.scipy.signal.welch(x, nperseg=0)"),
]

CALCULUS: list[tuple[str, str]] = [
    ("a running integral of no values", "rune.scipy.integrate.cumulative_trapezoid(x[:0])"),
    (
        "an unknown method of an initial value problem",
        "rune.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), x, method='magic')",
    ),
    ("times of two axes", "rune.scipy.integrate.odeint(lambda y, t: -y, x, rnp.ones((2, 2)))"),
    ("fewer points than values", "rune.scipy.integrate.trapezoid(x, x[1:])"),
    ("an interval in no parts", "rune.scipy.integrate.quad(rnp.exp, 0.0, 1.0, limit=0)"),
    ("too few knots", "rune.scipy.interpolate.BSpline(x, x, 3)"),
    ("too few coefficients", "rune.scipy.interpolate.BSpline(rnp.arange(9.0), x, 3)"),
    ("knots of another number", "rune.scipy.interpolate.make_interp_spline(rnp.arange(5.0), rnp.ones(5), t=x)"),
    ("slopes of another shape", "rune.scipy.interpolate.CubicHermiteSpline(x, x, x[1:])"),
    ("an unknown condition at the ends", "rune.scipy.interpolate.CubicSpline(x, x, bc_type='magic')"),
    ("an unknown kind of interpolation", "rune.scipy.interpolate.interp1d(x, x, kind='magic')"),
    ("an error outside the grid", "rune.scipy.interpolate.RegularGridInterpolator((x,), x, bounds_error=True)"),
    (
        "points of another rank than the grid",
        "rune.scipy.interpolate.RegularGridInterpolator((x,), x, bounds_error=False)(rnp.ones((2, 2)))",
    ),
    ("a start that is a matrix", "rune.scipy.optimize.least_squares(rnp.sin, rnp.eye(2))"),
    ("a bracket of four numbers", "rune.scipy.optimize.golden(rnp.cos, brack=(0.0, 1.0, 2.0, 3.0))"),
    ("a Bessel function of a negative order", "rune.scipy.special.bessel_jn(x, v=-1)"),
    ("an exact number of choices", "rune.scipy.special.comb(5, 2, exact=True)"),
    ("an exact number of orders", "rune.scipy.special.perm(5, 2, exact=True)"),
    ("an exact factorial", "rune.scipy.special.factorial(5, exact=True)"),
    ("half a branch", "rune.scipy.special.lambertw(x, 0.5)"),
]

SPACE: list[tuple[str, str]] = [
    ("an unknown metric", "rune.scipy.spatial.distance.cdist(rnp.eye(2), rnp.eye(2), metric='magic')"),
    ("distances between other spaces", "rune.scipy.spatial.distance.cdist(rnp.eye(2), rnp.eye(3))"),
    ("distances of three axes", "rune.scipy.spatial.distance.squareform(rnp.ones((2, 2, 2)))"),
    ("distances of half a pair", "rune.scipy.spatial.distance.squareform(rnp.ones(2))"),
    ("axes that are none", "rune.scipy.spatial.transform.Rotation.from_euler('abc', x)"),
    ("angles of another number", "rune.scipy.spatial.transform.Rotation.from_euler('xy', x)"),
    ("angles about two axes", "rune.scipy.spatial.transform.Rotation.from_euler('xyz', x).as_euler('xy')"),
    ("an index of one rotation", "rune.scipy.spatial.transform.Rotation.from_euler('xyz', x)[0]"),
    ("weights of other rotations", "rune.scipy.spatial.transform.Rotation.from_euler('x', x).mean(rnp.ones(2))"),
]

STATISTICS: list[tuple[str, str]] = [
    ("a description of no numbers", "rune.scipy.stats.describe(x[:0])"),
    ("a parameter that a distribution has not", "rune.scipy.stats.norm.pdf(x, shape=1.0)"),
    ("a moment without a closed form", "rune.scipy.stats.skewnorm.entropy(1.0)"),
    ("weights of another number", "rune.scipy.stats.gaussian_kde(x, weights=rnp.ones(2))"),
    ("points of another space", "rune.scipy.stats.gaussian_kde(rnp.ones((2, 3))).logpdf(rnp.ones((3, 3)))"),
    ("an interval of a plane", "rune.scipy.stats.gaussian_kde(rnp.ones((2, 3))).integrate_box_1d(0.0, 1.0)"),
    ("an unknown bandwidth", "rune.scipy.stats.gaussian_kde(x, bw_method='magic')"),
    ("too many shares", "rune.scipy.stats.dirichlet.logpdf(rnp.ones(4), x[:2])"),
    ("a singular covariance", "rune.scipy.stats.multivariate_normal.logpdf(x, x, rnp.eye(3), allow_singular=True)"),
    ("a covariance of another size", "rune.scipy.stats.multivariate_normal.logpdf(x, x, rnp.eye(2))"),
    ("a covariance that is not square", "rune.scipy.stats.multivariate_normal.entropy(0.0, rnp.ones((2, 3)))"),
    ("an unknown method of ranks", "rune.scipy.stats.rankdata(x, method='magic')"),
    ("the commonest of one number", "rune.scipy.stats.mode(x[0])"),
    ("ranks of complex numbers", "rune.scipy.stats.spearmanr(x * 1j, x)"),
    (
        "a normal density of other dimensions",
        "rune.scipy.stats.gaussian_kde(rnp.array([1.0, 2.0, 4.0])).integrate_gaussian(rnp.ones(2), rnp.eye(2))",
    ),
    (
        "densities of different dimensions",
        "rune.scipy.stats.gaussian_kde(rnp.array([1.0, 2.0,"
        " 4.0])).integrate_kde(rune.scipy.stats.gaussian_kde(rnp.array([[1.0, 2.0, 4.0], [0.0, 1.0,"
        " 0.5]])))",
    ),
    ("Dirichlet parameters in a matrix", "rune.scipy.stats.dirichlet.mean(rnp.ones((2, 2)))"),
]

OPTIMIZERS: list[tuple[str, str]] = [
    (
        "an update without the parameters",
        "(lambda clip: clip.update(x, clip.init(x)))(rune.optim.deprecated.adaptive_grad_clip(0.1))",
    ),
    ("a decay by nothing", "rune.optim.exponential_decay(1.0, 2, 0.0)"),
    ("cycles of unknown length", "rune.optim.deprecated.sgdr_schedule([{'init_value': 0.0}])"),
    ("steps that only grow", "rune.optim.deprecated.scale_by_rprop(0.5, eta_minus=2.0)"),
    ("parts without names", "rune.optim.deprecated.named_chain(rune.optim.sgd(0.1))"),
    ("a condition that is not a function", "rune.optim.deprecated.conditionally_transform(rune.optim.sgd(0.1), True)"),
]

FUNCTIONS: list[tuple[str, str]] = [
    ("a setting that is a number", "rune.enable_x64(1)"),
    ("batches of no rows", "rune.map(rnp.sin, x, batch_size=0)"),
    ("rules for arguments that are none", "rune.custom_jvp(rnp.power, nondiff_argnums=(1,)).defjvps(None)"),
    ("an argument by another name", "rune.custom_jvp(lambda v: v, nondiff_argnames=('w',))"),
    (
        "a name that a function with a rule takes only so",
        "custom_jvp(lambda p, t: (p[0], t[0]), lambda v, *, k=1: v)(x, k=2)",
    ),
    ("a keyword of a builtin with a rule", "custom_jvp(lambda p, t: (p[0], t[0]), max)(x, key=1)"),
    ("an auxiliary result that is missing", "rune.grad(rnp.sum, has_aux=True)(x)"),
    ("the inner of no trees", "rune.tree.transpose(rune.tree.structure([]), None, [])"),
    ("a separator that is a number", "rune.tree.keystr((), separator=1)"),
    ("a class that cannot be taken apart", "rune.tree.register_node_class(int)"),
    ("a class of unknown fields", "rune.tree.register_dataclass(int)"),
    ("a dimension without a name", "rune.dims.symbol('2n')"),
]

SPARSE: list[tuple[str, str]] = [
    ("a multiple of a matrix of coordinates by an array", "rune.sparse.COO.fromdense(rnp.eye(2)) * rnp.ones(2)"),
    ("another permutation of a matrix of coordinates", "rune.sparse.COO.fromdense(rnp.eye(2)).transpose((0, 0))"),
    ("coordinates of a vector", "rune.sparse.coo_fromdense(x)"),
    (
        "sparse arrays whose shapes differ where they meet",
        "rune.sparse.BCOO.fromdense(rnp.eye(2)) @ rune.sparse.BCOO.fromdense(rnp.eye(3))",
    ),
    ("an unknown format of sparse arrays", "rune.sparse.eye(2, sparse_format='magic')"),
    ("elements of another shape", "rune.sparse.bcoo_extract(rune.sparse.BCOO.fromdense(rnp.eye(2)), rnp.eye(3))"),
    (
        "an unknown way with inefficient layouts",
        "rune.sparse.bcoo_update_layout(rune.sparse.BCOO.fromdense(rnp.eye(2)), n_batch=1, on_inefficient='magic')",
    ),
    ("rows of a vector", "rune.sparse.BCSR.from_bcoo(rune.sparse.BCOO.fromdense(x))"),
    (
        "a slice beyond a sparse array",
        "rune.sparse.bcoo_slice(rune.sparse.BCOO.fromdense(rnp.eye(2)), start_indices=(0, 0), limit_indices=(3, 3))",
    ),
    (
        "a sparse part that is too large",
        "rune.sparse.bcoo_dynamic_slice(rune.sparse.BCOO.fromdense(rnp.eye(2)), (0, 0), (3, 3))",
    ),
    (
        "long axes of a sparse array dropped",
        "rune.sparse.bcoo_squeeze(rune.sparse.BCOO.fromdense(rnp.eye(2)), dimensions=(0,))",
    ),
    ("more batch and dense axes than axes", "rune.sparse.bcoo_update_layout(rune.sparse.eye(2), n_batch=2, n_dense=1)"),
    ("rows and columns of different lengths", "rune.sparse.COO((x, rnp.arange(2), rnp.arange(3)), shape=(3, 3))"),
    ("a sparse reshape to another size", "rune.sparse.bcoo_reshape(rune.sparse.eye(2), new_sizes=(3,))"),
    (
        "a layout of sparse elements",
        "rune.sparse.bcoo_broadcast_in_dim(rune.sparse.eye(2), shape=(2, 3, 2),"
        " broadcast_dimensions=(0, 2), sharding='rows')",
    ),
    (
        "a sparse broadcast to other sizes",
        "rune.sparse.bcoo_broadcast_in_dim(rune.sparse.eye(2), shape=(2, 3, 5), broadcast_dimensions=(0, 2))",
    ),
    (
        "sparse arrays of different layouts, joined",
        "rune.sparse.bcoo_concatenate([rune.sparse.eye(2), rune.sparse.bcoo_fromdense(rnp.eye(2),"
        " n_batch=1)], dimension=0)",
    ),
    (
        "sparse arrays of different widths, joined",
        "rune.sparse.bcoo_concatenate([rune.sparse.eye(2), rune.sparse.eye(3)], dimension=0)",
    ),
    ("more indices than sparse axes", "rune.sparse.eye(2)[0, 0, 0]"),
    ("a sparse row that is not there", "rune.sparse.eye(2)[2]"),
    (
        "positions in another number of axes",
        "rune.sparse.bcoo_dot_general_sampled(rnp.ones((2, 3)), rnp.ones((3, 4)), rnp.array([[1]]),"
        " dimension_numbers=(((1,), (0,)), ((), ())))",
    ),
    ("pointers of other rows", "rune.sparse.BCSR((x, rnp.arange(3), rnp.array([0, 3])), shape=(3, 3))"),
    ("batches of a matrix of SciPy", "rune.sparse.BCSR.from_scipy_sparse(None, n_batch=1)"),
    ("a quotient of sparse arrays", "rune.sparse.BCSR.fromdense(rnp.eye(2)) / rune.sparse.eye(2)"),
]

ROOMS: list[tuple[str, str]] = [
    ("an image resized by an unknown method", "rune.image.resize(rnp.eye(2), (4, 4), 'magic')"),
    (
        "an image moved by its nearest pixels",
        "rune.image.scale_and_translate(rnp.eye(2), (2, 2), (0, 1), rnp.ones(2), rnp.zeros(2), 'nearest')",
    ),
    (
        "an image moved by other axes",
        "rune.image.scale_and_translate(rnp.eye(2), (2, 2), (0, 1), rnp.ones(3), rnp.zeros(2), 'linear')",
    ),
    (
        "a loop counted from an integer to a float that is traced",
        "rune.jit(lambda n: rune.lax.fori_loop(0, n, lambda i, v: v, x))(2.5)",
    ),
    ("a reference in a reference", "rune.new_ref(rune.new_ref(x))"),
    ("a reference written by more than it holds", "rune.new_ref(x).__setitem__(..., rnp.ones((2, 3)))"),
    ("a reference beyond its end", "rune.new_ref(x)[7]"),
    ("one reference twice", "rune.jit(lambda a, b: a[...] + b[...])(*[rune.new_ref(x)] * 2)"),
    ("options of another compiler", "rune.jit(lambda v: v, compiler_options={'xla': 1})(x)"),
    ("an array described without a dtype", "rune.ShapeDtypeStruct((2,), None)"),
    ("an unknown kind of checks", "rune.checkify.checkify(lambda v: v, errors='magic')(x)"),
    ("an error that is not one", "rune.checkify.check_error(x)"),
    ("random bits from a state of another shape", "rune.lax.rng_bit_generator(rnp.zeros(3, 'u4'), (2,))"),
    (
        "groups of a ragged product in two axes",
        "rune.lax.ragged_dot(rnp.eye(3), rnp.ones((2, 3, 2)), rnp.ones((2, 2), 'i4'))",
    ),
    ("schedules joined at too many steps", "rune.optim.join_schedules([lambda s: s], [1, 2])"),
    ("vectors of other lengths drawn", "rune.viz.curves({'loss': (rnp.ones(3), rnp.ones(2))})"),
    ("a file that is a number", "rune.export.load(3)"),
    ("a class that trees do not know", "rune.export.register_node(int, name='whole')"),
    ("a dict with a tuple as key, exported", "rune.export(lambda v: {(1, 2): v})(x).serialize()"),
    ("a note under a number", "rune.tree.save('never.safetensors', x, {1: 'a'})"),
    ("a checkpoint of a traced array", "rune.jit(lambda v: rune.distributed.save_checkpoint('never', v))(x)"),
]

CALLS = [*LINALG, *SIGNALS, *CALCULUS, *SPACE, *STATISTICS, *OPTIMIZERS, *FUNCTIONS, *SPARSE, *ROOMS]


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "errors_of_libraries.txt", golden_text(CALLS))


@pytest.mark.parametrize("code", [c for _, c in CALLS], ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar(code: str):
    has_the_form_of_the_grammar(str(provoke(code)))


def test_everything_works_after_all_these_errors():
    for _, code in CALLS:
        provoke(code)

    works_as_before()


def test_a_size_too_deep_to_read_is_shown_by_its_beginning():
    with pytest.raises(rune.errors.DimensionError, match=r"parse: cannot read '-{40}'"):
        rune.dims.parse("-" * 100_000 + "1", {})


def test_a_size_deeper_than_pythons_stack_is_not_a_recursion_error():
    depth = sys.getrecursionlimit()  # the grammar goes three times as deep

    with pytest.raises(rune.errors.DimensionError, match="too deep"):
        rune.dims.parse("-" * depth + "1", {})


def test_a_single_rotation_has_no_length():
    with pytest.raises(TypeError, match="a single rotation has no length"):
        len(rune.scipy.spatial.transform.Rotation.from_euler("x", 1.0))


def test_a_shape_without_axes_has_no_length():
    with pytest.raises(TypeError, match="without axes"):
        len(rune.ShapeDtypeStruct((), "f32"))
