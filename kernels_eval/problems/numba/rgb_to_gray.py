from numba import cuda, float32

RED, GREEN, BLUE = float32(0.299), float32(0.587), float32(0.114)


@cuda.jit
def rgb_to_gray(rgb, out, n):
  i = cuda.grid(1)
  if i < n:
    red, green, blue = rgb[i, 0], rgb[i, 1], rgb[i, 2]
    out[i] = RED * float32(red) + GREEN * float32(green) + BLUE * float32(blue)
