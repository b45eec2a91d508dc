"""What tensor cores reach at most: floating-point operations a second.

Dense products of float16 or bfloat16, from NVIDIA's data sheets of the H200,
the H100 and the A100 (figures "with sparsity" halved). They hold at the boost
clock; a GPU that is cool may be some percent faster. Names are the driver's: a
part of a GPU (MIG) has another one. A device that is not here has no figure.
"""

HALF_FLOPS_PER_S = {
  "NVIDIA H200": 989.5e12,
  "NVIDIA H100 80GB HBM3": 989.5e12,
  "NVIDIA H100 PCIe": 756e12,
  **dict.fromkeys(
    (
      "NVIDIA A100-SXM4-40GB",
      "NVIDIA A100-SXM4-80GB",
      "NVIDIA A100-PCIE-40GB",
      "NVIDIA A100 80GB PCIe",
    ),
    312e12,
  ),
}
