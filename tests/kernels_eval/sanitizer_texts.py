"""What compute-sanitizer prints, of our own making, after the formats that its
manual shows."""

# A device function, inlined or called; the frame above it is the kernel's.
OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
printed by the kernel: Invalid __global__ write of size 8 bytes
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0xb0 in kernel.cu:7
=========     by thread (33,1,0) in block (2,0,5)
=========     Address 0x7cc43aa04000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7c
=========         Device Frame: k(float *)+0x30 in kernel.cu:12
=========     Saved host backtrace up to driver entry point at launch time
=========         Host Frame: cuLaunchKernel [0xacd4] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0xb0 in kernel.cu:99
=========     by thread (34,1,0) in block (2,0,5)
=========     Address 0x7cc43aa04004 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k()+0x90 in kernel.cu:4
=========     and Read access at k(int *)+0x100 in kernel.cu:5 [508 hazards]
=========     and Write access at k(int *)+0x140 in kernel.cu:8 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
