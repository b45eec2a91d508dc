"""Integer intrinsics, bit casts and vector types."""

import numpy as np

_RNG = np.random.default_rng(1)
A = np.concatenate(
  [np.array([0, 1, -1, 2**31 - 1, -(2**31), 0x80, 255, 12345]),
   _RNG.integers(-(2**31), 2**31, 24)]
).astype(np.int32)  # fmt: skip
B = np.roll(A, 5)


def _bits(a):
  return [f"{int(v) & 0xFFFFFFFF:032b}" for v in a]


def test_integer_intrinsics(lab):
  expressions = {
    "__popc(a)": [s.count("1") for s in _bits(A)],
    "__clz(a)": [len(s) - len(s.lstrip("0")) for s in _bits(A)],
    "__ffs(a)": [s[::-1].find("1") + 1 for s in _bits(A)],
    "__brev(a)": [int(s[::-1], 2) for s in _bits(A)],
    "__mulhi(a, b)": [
      (int(a) * int(b)) >> 32 for a, b in zip(A, B, strict=True)
    ],
    "__umulhi(a, b)": [
      ((int(a) % 2**32) * (int(b) % 2**32)) >> 32
      for a, b in zip(A, B, strict=True)
    ],
    "__mul24(a, b)": [
      ((int(a) << 8) % 2**32 - (((int(a) << 8) % 2**32) >> 31 << 32) >> 8)
      * ((int(b) << 8) % 2**32 - (((int(b) << 8) % 2**32) >> 31 << 32) >> 8)
      for a, b in zip(A, B, strict=True)
    ],
    "__umul24(a, b)": [
      (int(a) & 0xFFFFFF) * (int(b) & 0xFFFFFF)
      for a, b in zip(A, B, strict=True)
    ],
    "__sad(a, b, 7u)": [
      abs(int(a) - int(b)) + 7 for a, b in zip(A, B, strict=True)
    ],
    "__usad(a, b, 7u)": [
      abs(int(a) % 2**32 - int(b) % 2**32) + 7
      for a, b in zip(A, B, strict=True)
    ],
    "__hadd(a, b)": [(int(a) + int(b)) >> 1 for a, b in zip(A, B, strict=True)],
    "__rhadd(a, b)": [
      (int(a) + int(b) + 1) >> 1 for a, b in zip(A, B, strict=True)
    ],
    "__uhadd(a, b)": [
      (int(a) % 2**32 + int(b) % 2**32) >> 1 for a, b in zip(A, B, strict=True)
    ],
    "__funnelshift_l(a, b, 37)": [
      (((int(b) % 2**32) << 32 | int(a) % 2**32) << 5) >> 32
      for a, b in zip(A, B, strict=True)
    ],
    "__funnelshift_r(a, b, 3)": [
      ((int(b) % 2**32) << 32 | int(a) % 2**32) >> 3
      for a, b in zip(A, B, strict=True)
    ],
    "__funnelshift_lc(a, b, 40)": [int(a) for a in A],
    "min(a, b)": np.minimum(A, B),
    "max(a, b)": np.maximum(A, B),
    "abs(a >> 1)": np.abs(A >> 1),
    "a * b + a": (A.astype(np.int64) * B + A),  # wraps
    "(unsigned)a >> 3": [(int(a) % 2**32) >> 3 for a in A],
    "__float_as_int(__int_as_float(a))": A,
    "__ldg(x + t)": A,
  }
  text = "__global__ void k(const int* x, const int* y, int* out) {\n"
  text += "  int t = threadIdx.x, a = x[t], b = y[t];\n"
  for i, e in enumerate(expressions):
    text += f"  out[{32 * i} + t] = {e};\n"
  got = lab.out(
    text + "}", "int32", 32 * len(expressions), inputs={"x": A, "y": B}
  ).reshape(-1, 32)
  for row, (expression, expected) in zip(got, expressions.items(), strict=True):
    wrapped = [int(v) % 2**32 for v in expected]
    np.testing.assert_array_equal(
      row.view(np.uint32), np.array(wrapped, np.uint32), expression
    )


def test_bytes_of_words(lab):
  text = """
  __global__ void k(const int* x, const int* y, int* out) {
    int t = threadIdx.x, a = x[t], b = y[t];
    out[t] = __byte_perm(a, b, 0x5140); out[32 + t] = __byte_perm(a, b, 0xb908);
    out[64 + t] = __dp4a(a, b, 5); out[96 + t] = __dp4a((unsigned)a,
                                                        (unsigned)b, 5u);
    out[128 + t] = __dp2a_lo(a, b, 1); out[160 + t] = __dp2a_hi(a, b, 1);
    out[192 + t] = __fns(a, 0, 2);
  }"""
  got = lab.out(text, "int32", 224, inputs={"x": A, "y": B}).reshape(7, 32)
  a8, b8 = (v.view(np.uint8).reshape(-1, 4) for v in (A, B))
  both = np.concatenate([a8, b8], axis=1)
  expected = both[:, [0, 4, 1, 5]].copy().view(np.int32)[:, 0]
  np.testing.assert_array_equal(got[0], expected)
  signs = np.where(both[:, [0, 1, 3]] & 128, 255, 0).astype(np.uint8)
  expected = np.stack([signs[:, 0], both[:, 0], signs[:, 1], signs[:, 2]], 1)
  np.testing.assert_array_equal(got[1], expected.copy().view(np.int32)[:, 0])
  sa, sb = a8.view(np.int8).astype(int), b8.view(np.int8).astype(int)
  np.testing.assert_array_equal(got[2], (sa * sb).sum(1) + 5)
  np.testing.assert_array_equal(
    got[3], (a8.astype(int) * b8.astype(int)).sum(1) + 5
  )
  a16 = A.view(np.int16).reshape(-1, 2).astype(int)
  np.testing.assert_array_equal(got[4], (a16 * sb[:, :2]).sum(1) + 1)
  np.testing.assert_array_equal(got[5], (a16 * sb[:, 2:]).sum(1) + 1)
  second = [
    ([i for i in range(32) if int(v) >> i & 1] + [-1, -1])[1] for v in A
  ]
  np.testing.assert_array_equal(got[6], second)


def test_64_bits(lab):
  text = """
  __global__ void k(const long long* x, long long* out) {
    int t = threadIdx.x;
    long long v = x[t];
    out[t] = __popcll(v); out[4 + t] = __clzll(v); out[8 + t] = __ffsll(v);
    out[12 + t] = __brevll(v); out[16 + t] = __mul64hi(v, v);
    out[20 + t] = __umul64hi(v, v);
    out[24 + t] = __double_as_longlong(__longlong_as_double(v));
    out[28 + t] = __double_as_longlong(
      __hiloint2double(__double2hiint(__longlong_as_double(v)),
                       __double2loint(__longlong_as_double(v))));
  }"""
  x = np.array([1, -2, 0x123456789ABCDEF0, 1 << 62], np.int64)
  got = lab.out(
    text, "int64", 32, inputs={"x": x}, launch="grid=(1) block=(4)"
  ).reshape(8, 4)
  bits = [f"{int(v) % 2**64:064b}" for v in x]
  signed = lambda v: (v + 2**63) % 2**64 - 2**63
  expected = [
    [s.count("1") for s in bits],
    [len(s) - len(s.lstrip("0")) for s in bits],
    [s[::-1].find("1") + 1 for s in bits],
    [signed(int(s[::-1], 2)) for s in bits],
    [signed((int(v) * int(v)) >> 64) for v in x],
    [signed((int(v) % 2**64) ** 2 >> 64) for v in x],
    x,
    x,
  ]
  np.testing.assert_array_equal(got, np.array(expected, np.int64))


# type: (size, alignment), as in the toolkit's vector_types.h
_VECTORS = {
  "char1": (1, 1), "char2": (2, 2), "char3": (3, 1), "char4": (4, 4),
  "uchar4": (4, 4), "short2": (4, 4), "short3": (6, 2), "ushort4": (8, 8),
  "int1": (4, 4), "int2": (8, 8), "int3": (12, 4), "int4": (16, 16),
  "uint3": (12, 4), "uint4": (16, 16), "longlong2": (16, 16),
  "long2": (16, 16), "ulonglong1": (8, 8), "float1": (4, 4), "float2": (8, 8),
  "float3": (12, 4), "float4": (16, 16), "double1": (8, 8),
  "double2": (16, 16), "double3": (24, 8), "double4": (32, 16),
  "longlong4": (32, 16), "dim3": (12, 4),
}  # fmt: skip


def test_sizes_of_vector_types(lab):
  text = "__global__ void k(int* out) {\n"
  for i, name in enumerate(_VECTORS):
    text += (
      f"  out[{2 * i}] = sizeof({name}); out[{2 * i + 1}] = alignof({name});\n"
    )
  size = 2 * len(_VECTORS)
  got = lab.out(text + "}", "int32", size, launch="grid=(1) block=(1)")
  assert (
    dict(zip(_VECTORS, map(tuple, got.reshape(-1, 2)), strict=True)) == _VECTORS
  )


def test_vector_loads_and_stores(lab):
  text = """
  __global__ void k(const float* x, float* out) {
    int t = threadIdx.x;
    float4 v = reinterpret_cast<const float4*>(x)[t];
    float4 w = __ldg(reinterpret_cast<const float4*>(x) + t);
    float2 p = make_float2(v.x + w.y, v.z);
    float3 q = {1.0f, 2.0f, 3.0f};
    int4 n = make_int4(t, 2, 3, 4);
    uchar4 c{};
    c.w = 200;
    v = make_float4(p.x, p.y + q.z, n.x + n.w, c.x + c.w);
    reinterpret_cast<float4*>(out)[t] = v;
  }"""
  x = np.arange(32, dtype=np.float32)
  got = lab.out(text, inputs={"x": x}, launch="grid=(1) block=(8)")
  rows = x.reshape(8, 4)
  expected = np.stack(
    [
      rows[:, 0] + rows[:, 1],
      rows[:, 2] + 3,
      np.arange(8) + 4,
      np.full(8, 200),
    ],
    1,
  )
  np.testing.assert_array_equal(got.reshape(8, 4), expected)
