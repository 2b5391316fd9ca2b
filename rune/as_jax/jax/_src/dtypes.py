"""`jax._src.dtypes`: Equinox catches the error of dtypes that have no common one."""

from rune.errors import DtypeError as TypePromotionError
