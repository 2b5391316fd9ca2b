"""rune.scipy.special"""
from rune.scipy.special.gammas import *
from rune.scipy.special.error_functions import *
from rune.scipy.special.incomplete_gamma import *
from rune.scipy.special.incomplete_beta import *
from rune.scipy.special.elementary import *
from rune.scipy.special.combinatorial import *
from rune.scipy.special.integrals import *
from rune.scipy.special.bessel import *
from rune.scipy.special.bessel_waves import *
from rune.scipy.special.elliptic import *
from rune.scipy.special.hypergeometric import *
