"""What NumPy and jax.numpy 0.10.2 have, and rune.numpy lacks."""

from __future__ import annotations

from rune.absent import Table

# Names by reason. What one version of NumPy has and another lacks may stand here too.
MISSING: Table = {
    "They write into an array, and arrays are immutable; `x.at[...]` gives a changed copy.": "copyto putmask",
    "They concern the memory of an array: its order, sharing, iteration over it. A rune array has "
    "no visible layout.": """
        ascontiguousarray asfortranarray broadcast flatiter isfortran may_share_memory memmap
        ndenumerate ndindex nditer nested_iters require shares_memory
        """,
    "Other classes of arrays: matrices, records, strings, objects, masked arrays.": """
        asmatrix bmat bytes_ matrix poly1d recarray record str_ void
        """,
    "Dates and times, which are not numbers; compute with integers.": """
        busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data
        is_busday isnat timedelta64
        """,
    "The state of NumPy's own error handling and buffers. Compiled programs cannot raise; "
    "`rune.debug.checks` finds NaN and infinities, and where they arise.": """
        errstate getbufsize geterr geterrcall setbufsize seterr seterrcall
        """,
    "They describe NumPy itself; `rune.doctor()` describes rune.": "get_include info show_config show_runtime test",
    "C's names of number types, and types that no executor has; use names with a width.": """
        byte clongdouble complex192 complex256 float128 float96 intc intp long longdouble longlong
        mintypecode min_scalar_type short typename ubyte uintc uintp ulong ulonglong ushort
        """,
    "NumPy's internal tools; `rune.numpy` has those that NumPy's main namespace has. Sliding windows are "
    "`x[rune.numpy.arange(n)[:, None] + rune.numpy.arange(width)]`.": "lib",
    "Parsers of text files with missing values and mixed columns; read with NumPy or pandas.": "fromregex genfromtxt",
    "NumPy has deprecated or removed them: `vstack`, `trapezoid` and `isin` do the same.": "row_stack trapz in1d",
}
OF_JAX: Table = {
    "Number types that no executor has: fp8 variants other than e4m3fn and e5m2, fp6, fp4, 1 and 2 bits.": """
        float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
        float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int1 int2 uint1 uint2
        """,
    "A warning, which is an error here.": "ComplexWarning",
}
