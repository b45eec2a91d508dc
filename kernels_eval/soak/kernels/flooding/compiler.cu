// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Makes the compiler say much.
int a0 = undeclared_0;
int a1 = undeclared_1;
int a2 = undeclared_2;
int a3 = undeclared_3;
int a4 = undeclared_4;
int a5 = undeclared_5;
int a6 = undeclared_6;
int a7 = undeclared_7;
int a8 = undeclared_8;
int a9 = undeclared_9;
int a10 = undeclared_10;
int a11 = undeclared_11;
int a12 = undeclared_12;
int a13 = undeclared_13;
int a14 = undeclared_14;
int a15 = undeclared_15;
int a16 = undeclared_16;
int a17 = undeclared_17;
int a18 = undeclared_18;
int a19 = undeclared_19;
int a20 = undeclared_20;
int a21 = undeclared_21;
int a22 = undeclared_22;
int a23 = undeclared_23;
int a24 = undeclared_24;
int a25 = undeclared_25;
int a26 = undeclared_26;
int a27 = undeclared_27;
int a28 = undeclared_28;
int a29 = undeclared_29;
int a30 = undeclared_30;
int a31 = undeclared_31;
int a32 = undeclared_32;
int a33 = undeclared_33;
int a34 = undeclared_34;
int a35 = undeclared_35;
int a36 = undeclared_36;
int a37 = undeclared_37;
int a38 = undeclared_38;
int a39 = undeclared_39;
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
