// SPDX-License-Identifier: MIT
// Lines that the reports of names_test.cpp point to; nobody compiles them.
__device__ void wait_for_stage(uint32_t full_addr, int stage) {
  gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, 0);
}
__global__ void ring(uint32_t full_addr, Mailbox& mailbox) {
  for (int stage = 0; stage < 2; ++stage) gg::ptx::mbarrier_init(full_addr + stage * 8, 2);
  gg::ptx::mbarrier_init(gg::ptx::shared_addr(&mailbox.empty), 1);
  gg::ptx::mbarrier_arrive(full_addr + 8);
  if (warp == 0) gg::ptx::mbarrier_arrive(full_addr + 8);
  wait_for_stage(full_addr, 1);
}
