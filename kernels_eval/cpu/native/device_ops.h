// Operation codes that device headers and the runtime share.
#pragma once

enum ke_warp_op {
  KE_SYNC = 0,
  KE_SHFL_IDX,
  KE_SHFL_UP,
  KE_SHFL_DOWN,
  KE_SHFL_XOR,
  KE_BALLOT,
  KE_MATCH_ANY,
  KE_MATCH_ALL,
  KE_REDUCE_ADD,
  KE_REDUCE_MIN,
  KE_REDUCE_MIN_UNSIGNED,
  KE_REDUCE_MAX,
  KE_REDUCE_MAX_UNSIGNED,
  KE_REDUCE_AND,
  KE_REDUCE_OR,
  KE_REDUCE_XOR
};
enum ke_atomic_op {
  KE_ADD = 0,
  KE_EXCH,
  KE_MIN,
  KE_MAX,
  KE_AND,
  KE_OR,
  KE_XOR,
  KE_INC,
  KE_DEC,
  KE_CAS
};
enum ke_atomic_type {
  KE_I32 = 0,
  KE_U32,
  KE_I64,
  KE_U64,
  KE_F32,
  KE_F64,
  KE_F16,
  KE_BF16,
  KE_U16
};
