"""What the modules of SciPy have, and those of rune.scipy lack."""

from __future__ import annotations

from collections.abc import Mapping

from rune.absent import Table

SAME = "SciPy's serve as well: they compute a few constants once, before any array exists."
SEARCH = "Python loops over values, whose length is not known in advance; use SciPy's."
UNWRITTEN = "Not written, though nothing prevents it; `jax.scipy` has none of them either."
OWN = "They concern SciPy itself: its warnings, errors, tests and error-handling settings."
OLD = "Older names and classes: SciPy's own pages advise against them."

MODULES: Table = {
    "Files, data sets, and wrappers of old Fortran fitting and transforms; use SciPy's.": "datasets fftpack io odr",
    "Numbers, not functions; SciPy's are Python's floats, and weak here.": "constants",
    "Derivatives by finite differences; `rune.grad` and `rune.hessian` are exact.": "differentiate",
    OWN: "LowLevelCallable show_config test",
}
MISSING: Mapping[str, Table] = {
    "cluster": {"Trees of clusters, built by one merge after another; use SciPy's.": "hierarchy", OWN: "test"},
    "cluster.vq": {SEARCH: "kmeans kmeans2", OLD: "py_vq", OWN: "ClusterError"},
    "fft": {
        UNWRITTEN: "fht fhtoffset ifht",
        "SciPy's threads and choice of a library; a rune program runs on its device.": """
            get_workers register_backend set_backend set_global_backend set_workers skip_backend
            """,
        OWN: "test",
    },
    "integrate": {
        "Classes that step through an equation, and stiff methods; `solve_ivp` has RK23, RK45 and "
        "DOP853, `odeint` an adjoint.": """
            BDF DOP853 DenseOutput LSODA OdeSolver RK23 RK45 Radau complex_ode ode solve_bvp
            """,
        "They call a Python function at points that they choose as they go; use SciPy's.": """
            cubature dblquad nquad nsum qmc_quad quad_vec tanhsinh tplquad
            """,
        UNWRITTEN: "cumulative_simpson fixed_quad romb",
        SAME: "lebedev_rule newton_cotes",
        OWN: "IntegrationWarning ODEintWarning test",
    },
    "interpolate": {
        "Scattered points, which need a triangulation or a tree.": """
            CloughTocher2DInterpolator LinearNDInterpolator NearestNDInterpolator RBFInterpolator
            Rbf griddata
            """,
        "Splines in several dimensions, and FITPACK's choice of knots; `make_interp_spline` makes splines in one.": """
            BivariateSpline InterpolatedUnivariateSpline LSQBivariateSpline LSQSphereBivariateSpline
            LSQUnivariateSpline NdBSpline NdPPoly RectBivariateSpline RectSphereBivariateSpline
            SmoothBivariateSpline SmoothSphereBivariateSpline UnivariateSpline generate_knots
            make_lsq_spline make_smoothing_spline make_splprep make_splrep
            """,
        UNWRITTEN: """
            AAA BPoly FloaterHormannInterpolator KroghInterpolator approximate_taylor_polynomial
            interpn krogh_interpolate lagrange pade pchip_interpolate
            """,
        OLD: "bisplev bisplrep insert interp2d pchip spalde splantider splder splev splint splprep splrep sproot",
        OWN: "test",
    },
    "linalg": {
        UNWRITTEN: """
            clarkson_woodruff_transform cossin eigvals_banded expm_cond ldl matrix_balance ordqz
            pinvh qr_delete qr_insert qr_update qz rq solve_continuous_are solve_discrete_are
            solve_lyapunov
            """,
        "They name LAPACK routines; rune's own compiler generates its programs.": """
            blas cython_blas cython_lapack find_best_blas_type get_blas_funcs get_lapack_funcs
            interpolative lapack
            """,
        "Compiled programs cannot raise: a singular matrix gives infinities or NaN.": """
            LinAlgError LinAlgWarning
            """,
        OWN: "test",
    },
    "ndimage": {
        "Morphology, and the labelling of objects: iterations that run until nothing changes.": """
            binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
            binary_opening binary_propagation black_tophat distance_transform_bf
            distance_transform_cdt distance_transform_edt find_objects generate_binary_structure
            grey_closing grey_dilation grey_erosion grey_opening iterate_structure label
            morphological_gradient morphological_laplace value_indices watershed_ift white_tophat
            """,
        "Statistics of labelled regions; `rune.ops.segment_sum` and similar functions compute them.": """
            center_of_mass extrema histogram labeled_comprehension maximum maximum_position mean
            median minimum minimum_position standard_deviation sum sum_labels variance
            """,
        "They call a Python function at each element; `vmap` does that.": """
            generic_filter generic_filter1d generic_gradient_magnitude generic_laplace
            geometric_transform vectorized_filter
            """,
        "Splines of order 2 to 5 between elements; `order` is 0 or 1 here, as in JAX.": "spline_filter spline_filter1d",
        UNWRITTEN: """
            fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform maximum_filter1d
            minimum_filter1d percentile_filter rank_filter
            """,
        OWN: "test",
    },
    "optimize": {
        "Searches for global minima, and integer programs: their tables grow as they run.": """
            basinhopping brute differential_evolution direct dual_annealing linear_sum_assignment
            milp quadratic_assignment shgo
            """,
        "Minimisation under constraints.": """
            Bounds LinearConstraint NonlinearConstraint fmin_cobyla fmin_slsqp fmin_tnc
            isotonic_regression linprog lsq_linear nnls
            """,
        "Other forms of `minimize`, `root`, `least_squares` and `brentq`, which are here.": """
            anderson brenth broyden1 broyden2 diagbroyden excitingmixing fmin fmin_bfgs fmin_cg
            fmin_l_bfgs_b fmin_ncg fmin_powell fminbound fsolve leastsq linearmixing newton_krylov
            ridder toms748
            """,
        "Derivatives by finite differences; `rune.grad` is exact.": "approx_fprime check_grad",
        "The state of a minimiser as an object, for SciPy's own use; here it is a tree of arrays.": """
            BFGS BroydenFirst HessianUpdateStrategy InverseJacobian KrylovJacobian
            LbfgsInvHessProduct SR1
            """,
        UNWRITTEN: """
            bracket brent curve_fit elementwise fixed_point line_search minimize_scalar root_scalar
            rosen rosen_der rosen_hess rosen_hess_prod
            """,
        OWN: "NoConvergence OptimizeResult OptimizeWarning cython_optimize linprog_verbose_callback show_options test",
    },
    "signal": {
        "Filter design: use SciPy's, and pass the coefficients to `lfilter`, `sosfilt` or `filtfilt`.": """
            BadCoefficients band_stop_obj bessel besselap bilinear bilinear_zpk buttap butter
            buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 ellip ellipap ellipord findfreqs
            firls firwin firwin2 firwin_2d gammatone iircomb iirdesign iirfilter iirnotch iirpeak
            kaiser_atten kaiser_beta kaiserord lfiltic lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp
            lp2hp_zpk lp2lp lp2lp_zpk minimum_phase normalize remez sosfilt_zi
            """,
        "Representations of linear systems and their responses; `lfilter` and a scan compute these.": """
            StateSpace TransferFunction ZerosPolesGain abcd_normalize bode cont2discrete dbode
            dfreqresp dimpulse dlsim dlti dstep freqresp freqs freqs_zpk freqz freqz_sos freqz_zpk
            group_delay impulse invres invresz lsim lti place_poles residue residuez sos2tf sos2zpk
            sosfreqz ss2tf ss2zpk step tf2sos tf2ss tf2zpk unique_roots zpk2sos zpk2ss zpk2tf
            """,
        "Peaks: their number depends on the data.": """
            argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences peak_widths
            """,
        UNWRITTEN: """
            CZT ShortTimeFFT ZoomFFT check_COLA check_NOLA chirp closest_STFT_dual_window cspline1d
            cspline1d_eval cspline2d czt czt_points decimate deconvolve envelope gauss_spline
            gausspulse hilbert2 lombscargle max_len_seq medfilt medfilt2d order_filter qspline1d
            qspline1d_eval qspline2d resample_poly sawtooth sepfir2d sosfiltfilt spline_filter
            square sweep_poly symiirorder1 symiirorder2 unit_impulse upfirdn vectorstrength
            whittaker_henderson wiener zoom_fft
            """,
        OWN: "test",
    },
    "signal.windows": {UNWRITTEN: "chebwin dpss kaiser_bessel_derived taylor"},
    "sparse": {
        "Sparse formats, and functions that build them; solvers here take the product with a matrix as a function.": """
            block_array block_diag bmat bsr_array bsr_matrix coo_array coo_matrix csc_array csc_matrix
            csr_array csr_matrix dia_array dia_matrix diags diags_array dok_array dok_matrix expand_dims
            eye eye_array find get_index_dtype hstack identity issparse isspmatrix isspmatrix_bsr
            isspmatrix_coo isspmatrix_csc isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil kron kronsum
            lil_array lil_matrix load_npz permute_dims rand random random_array
            safely_cast_index_arrays save_npz spdiags sparray spmatrix swapaxes tril triu vstack
            """,
        OWN: "SparseEfficiencyWarning SparseWarning test",
    },
    "sparse.linalg": {
        "Factorisations and other direct methods for sparse matrices; use SciPy's.": """
            MatrixRankWarning SuperLU factorized inv is_sptriangular matrix_power norm spbandwidth spilu
            splu spsolve spsolve_triangular use_solver
            """,
        "Eigenvalues, singular values and matrix functions from products; `linalg` has them for dense matrices.": """
            ArpackError ArpackNoConvergence LaplacianNd eigs eigsh expm expm_multiply
            funm_multiply_krylov lobpcg onenormest svds
            """,
        "Other Krylov methods; `gmres` and `bicgstab` solve the same systems.": """
            bicg cgs gcrotmk lgmres lsmr lsqr minres qmr tfqmr
            """,
        "A function is an operator here, and so is any object with `@` and a shape.": "LinearOperator aslinearoperator",
        OWN: "test",
    },
    "spatial": {
        "Trees and tilings of space: their size depends on the data.": """
            ConvexHull Delaunay HalfspaceIntersection KDTree QhullError Rectangle SphericalVoronoi
            Voronoi cKDTree convex_hull_plot_2d delaunay_plot_2d tsearch voronoi_plot_2d
            """,
        "`distance.cdist` computes the same.": "distance_matrix minkowski_distance minkowski_distance_p",
        UNWRITTEN: "geometric_slerp procrustes",
        OWN: "test",
    },
    "spatial.distance": {
        "The distance of two points is an element of `cdist`.": """
            braycurtis canberra chebyshev cityblock correlation cosine dice euclidean hamming
            jaccard jensenshannon mahalanobis minkowski rogerstanimoto russellrao seuclidean
            sokalsneath sqeuclidean yule
            """,
        UNWRITTEN: "directed_hausdorff",
        "They check the form of an argument; here a wrong one is refused.": """
            is_valid_dm is_valid_y num_obs_dm num_obs_y
            """,
    },
    "spatial.transform": {UNWRITTEN: "RigidTransform RotationSpline", OWN: "test"},
    "special": {
        "Bessel functions of real order and of complex numbers, related functions and their derivatives. "
        "Those of orders 0 and 1, and `bessel_jn`, are here.": """
            airy airye bei beip ber berp besselpoly h1vp h2vp hankel1 hankel1e hankel2 hankel2e
            it2i0k0 it2j0y0 it2struve0 itairy iti0k0 itj0y0 itmodstruve0 itstruve0 iv ive ivp jn jv
            jve jvp kei keip kelvin ker kerp kn kv kve kvp lmbda modstruve riccati_jn riccati_yn
            spherical_in spherical_jn spherical_kn spherical_yn struve wright_bessel
            log_wright_bessel yn yv yve yvp
            """,
        "Zeros of functions: tables; use SciPy's.": """
            ai_zeros bei_zeros beip_zeros ber_zeros berp_zeros bi_zeros erf_zeros fresnel_zeros
            fresnelc_zeros fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros
            keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros yn_zeros
            ynp_zeros
            """,
        "Wave functions of ellipses, spheroids and parabolas.": """
            ellip_harm ellip_harm_2 ellip_normal mathieu_a mathieu_b mathieu_cem mathieu_even_coef
            mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 mathieu_odd_coef
            mathieu_sem modfresnelm modfresnelp obl_ang1 obl_ang1_cv obl_cv obl_cv_seq obl_rad1
            obl_rad1_cv obl_rad2 obl_rad2_cv pbdn_seq pbdv pbdv_seq pbvv pbvv_seq pbwa pro_ang1
            pro_ang1_cv pro_cv pro_cv_seq pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv
            """,
        "Distribution functions under their old names, and their inverses with respect to any argument; "
        "`rune.scipy.stats` has `cdf`, `sf` and `ppf`.": """
            bdtr bdtrc bdtri bdtrik bdtrin btdtria btdtrib chdtr chdtrc chdtri chdtriv chndtr
            chndtridf chndtrinc chndtrix fdtr fdtrc fdtri fdtridfd gdtr gdtrc gdtria gdtrib gdtrix
            kolmogi kolmogorov nbdtr nbdtrc nbdtri nbdtrik nbdtrin ncfdtr ncfdtri ncfdtridfd
            ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit nrdtrimn nrdtrisd pdtr pdtrc
            pdtri pdtrik smirnov smirnovi stdtr stdtridf stdtrit tklmbda
            """,
        "Orthogonal polynomials as objects, and quadrature points and weights: constants; use SciPy's.": """
            c_roots cg_roots chebyc chebys chebyt chebyu gegenbauer genlaguerre h_roots he_roots
            hermite hermitenorm j_roots jacobi js_roots l_roots la_roots laguerre legendre p_roots
            ps_roots roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer
            roots_genlaguerre roots_hermite roots_hermitenorm roots_jacobi roots_laguerre
            roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi roots_sh_legendre s_roots
            sh_chebyt sh_chebyu sh_jacobi sh_legendre t_roots ts_roots u_roots us_roots
            """,
        "Legendre, Jacobi and Laguerre functions of any degree.": """
            assoc_laguerre assoc_legendre_p assoc_legendre_p_all eval_chebyc eval_chebys
            eval_gegenbauer eval_genlaguerre eval_jacobi eval_sh_chebyt eval_sh_chebyu
            eval_sh_jacobi eval_sh_legendre legendre_p legendre_p_all lpmv lqmn lqn sph_harm_y_all
            sph_legendre_p sph_legendre_p_all
            """,
        UNWRITTEN: """
            agm cbrt cosdg cotdg diric ellipeinc ellipj ellipkinc elliprc elliprd elliprf elliprg
            elliprj euler exp10 exp2 factorial2 factorialk hyp0f1 hyperu powm1 radian rgamma round
            shichi sinc sindg softplus stirling2 tandg voigt_profile wrightomega zetac
            """,
        OWN: "SpecialFunctionError SpecialFunctionWarning errstate geterr seterr test",
    },
    "stats": {
        "Hypothesis tests and confidence intervals: the end of an analysis, which nobody "
        "compiles or differentiates; use SciPy's.": """
            BootstrapMethod DegenerateDataWarning MonteCarloMethod PermutationMethod alexandergovern
            anderson anderson_ksamp ansari barnard_exact bartlett bayes_mvs binomtest bootstrap
            boschloo_exact brunnermunzel bws_test chatterjeexi chi2_contingency chisquare
            combine_pvalues contingency cramervonmises cramervonmises_2samp dunnett ecdf
            epps_singleton_2samp f_oneway false_discovery_control fisher_exact fligner
            friedmanchisquare goodness_of_fit jarque_bera kruskal ks_1samp ks_2samp kstest
            kurtosistest levene logrank mannwhitneyu median_test monte_carlo_test mood
            multiscale_graphcorr mvsdist normaltest page_trend_test permutation_test
            poisson_means_test power power_divergence quantile_test ranksums shapiro skewtest
            sobol_indices tiecorrect ttest_1samp ttest_ind ttest_ind_from_stats ttest_rel tukey_hsd
            wilcoxon
            """,
        "Distributions that have not been written; JAX does not have them either.": """
            alpha anglit argus betanbinom boltzmann bradford burr burr12 cosine crystalball dgamma
            dirichlet_multinomial dpareto_lognorm erlang exponpow exponweib fatiguelife foldcauchy
            foldnorm gausshyper genexpon genextreme gengamma genhalflogistic genhyperbolic
            geninvgauss genlogistic genpareto gibrat halfgennorm halflogistic hypergeom hypsecant
            invweibull invwishart irwinhall jf_skew_t johnsonsb johnsonsu kappa3 kappa4 ksone kstwo
            kstwobign landau laplace_asymmetric levy_l levy_stable loguniform matrix_normal matrix_t
            mielke moyal multivariate_hypergeom multivariate_t nakagami ncf nchypergeom_fisher
            nchypergeom_wallenius nct ncx2 nhypergeom normal_inverse_gamma norminvgauss pearson3
            planck poisson_binom powerlognorm powernorm rdist recipinvgauss reciprocal
            rel_breitwigner rice semicircular skellam skewcauchy studentized_range trapezoid
            truncexpon truncpareto truncweibull_min tukeylambda vonmises_fisher vonmises_line wald
            wishart yulesimon zipfian
            """,
        "Random matrices and directions; `rune.random` has `orthogonal`.": """
            ortho_group qmc random_correlation random_table sampling special_ortho_group
            uniform_direction unitary_group
            """,
        "Classes that distributions are built from, and fits of them: here each distribution is a module of "
        "functions, fitted with `grad`.": """
            Binomial CensoredData Covariance FitError Logistic Mixture Normal Uniform abs exp fit
            log make_distribution order_statistic rv_continuous rv_discrete rv_histogram truncate
            """,
        "Sample statistics that have not been written.": """
            binned_statistic binned_statistic_2d binned_statistic_dd boxcox boxcox_llf
            boxcox_normmax boxcox_normplot circmean circstd circvar cumfreq differential_entropy
            directional_stats energy_distance entropy estimated_cdf expectile gstd gzscore
            kendalltau kstat kstatvar linregress lmoment median_abs_deviation obrientransform
            percentileofscore pmean pointbiserialr ppcc_max ppcc_plot probplot quantile relfreq
            scoreatpercentile siegelslopes sigmaclip somersd spearmanrho theilslopes tmax tmean tmin
            trim1 trim_mean trimboth tsem tstd tvar variation wasserstein_distance
            wasserstein_distance_nd weightedtau yeojohnson yeojohnson_llf yeojohnson_normmax
            yeojohnson_normplot
            """,
        "Masked arrays, which rune does not have.": "mstats",
        OWN: "ConstantInputWarning NearConstantInputWarning test",
    },
    "stats.gaussian_kde": {
        "Draws, and integrals over boxes in many dimensions; the density is here.": """
            integrate_box marginal resample
            """,
        "The bandwidth is chosen when the estimate is made (`bw_method`), and an estimate never changes.": """
            covariance_factor scotts_factor set_bandwidth silverman_factor
            """,
    },
}
