"""Kernel code written by hand: one of each kind that the compiler makes."""

from __future__ import annotations

from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse

ELEMENTWISE = """
code gelu(x: read f32[n], y: write f32[n]) sizes n in 0..4096 {
  for i in n grid {
    a: f32 = x[i]
    store y[i] = (a * 0.5_f32) * (1.0_f32 + erf(a * 0.70710677_f32))
  }
}
"""
SOFTMAX = """
code softmax(x: read f32[64*n], y: write f32[64*n]) sizes n in 1..100 {
  for i in n grid {
    alloc e: f32[64] local
    var m: f32 = -inf_f32
    for j in 64 serial {
      m max= x[64*i + j]
    }
    var s: f32 = 0.0_f32
    for j in 64 serial {
      t: f32 = exp(x[64*i + j] - m)
      store e[j] = t
      s add= t
    }
    for j in 64 serial {
      store y[64*i + j] = e[j] / s
    }
  }
}
"""
DOT = """
code dot(a: read f32[216], b: read f32[120], c: write f32[180]) {
  for i in 18 grid {
    for j in 10 grid {
      var acc: f32 = 0.0_f32
      for k in 12 serial {
        acc add= contract a[12*i + k] * b[j + 10*k]
      }
      store c[10*i + j] = acc
    }
  }
}
"""
PAD = """
code pad(x: read f32[8], y: write f32[12]) {
  for i in 12 grid {
    inside: bool = (index(i) >= 2_i64) & (index(i) < 10_i64)
    store y[i] = x[i - 2 if inside]
  }
}
"""
GATHER = """
code gather(x: read f32[10], k: read i32[n], y: write f32[n]) sizes n in 0..50 {
  for i in n grid {
    row: i32 in 0..9 = max(0_i32, min(9_i32, k[i]))
    store y[i] = x[row]
  }
}
"""
SCATTER = """
code scatter(k: read i32[n], u: read f32[n], y: readwrite f32[10]) sizes n in 0..50 {
  for i in n serial {
    row: i32 in -2147483648..2147483647 = k[i]
    if (index(row) >= 0_i64) & (index(row) < 10_i64) {
      update y[row] add= u[i]
    }
  }
}
"""
CUMSUM = """
code cumsum(x: read i32[60], y: write i32[60]) {
  for i in 6 grid {
    var total: i32 = 0_i32
    for j in 10 serial {
      total = total + x[10*i + j]
      store y[10*i + j] = total
    }
  }
}
"""
FOUR_AXES = """
code transpose(x: read f64[120], y: write f64[120]) {
  for a in 2 grid {
    for b in 3 grid {
      for c in 4 grid {
        for d in 5 grid {
          store y[a + 2*b + 6*c + 24*d] = x[60*a + 20*b + 5*c + d]
        }
      }
    }
  }
}
"""
WORKGROUP = """
code reverse(x: read f32[32], y: write f32[32]) {
  for g in 4 grid {
    alloc tile: f32[8] shared
    for t in 8 workgroup {
      store tile[t] = x[8*g + t]
      barrier
      store y[8*g + t] = tile[-t + 7]
    }
  }
}
"""
TEXTS = {
    "elementwise": ELEMENTWISE,
    "softmax": SOFTMAX,
    "dot": DOT,
    "pad": PAD,
    "gather": GATHER,
    "scatter": SCATTER,
    "cumsum": CUMSUM,
    "four_axes": FOUR_AXES,
    "workgroup": WORKGROUP,
}


def example(name: str) -> KernelCode:
    """One of the codes above."""
    return parse(TEXTS[name])
