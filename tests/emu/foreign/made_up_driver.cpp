// SPDX-License-Identifier: MIT
//
// The names that links_driver.cpp wants when it is linked. When it runs, gg-emu puts the
// emulator's before them.

extern "C" {

int cuInit() { return 999; }
int cuCtxGetDevice() { return 999; }
int cuCtxSetCurrent() { return 999; }
int cuDevicePrimaryCtxRetain() { return 999; }
int cuDevicePrimaryCtxRelease_v2() { return 999; }
int cuLaunchKernel() { return 999; }
int cuMemAlloc_v2() { return 999; }
int cuMemFree_v2() { return 999; }
int cuMemcpyDtoH_v2() { return 999; }
int cuMemsetD32_v2() { return 999; }
int cuModuleGetFunction() { return 999; }
int cuModuleLoadData() { return 999; }

}  // extern "C"
