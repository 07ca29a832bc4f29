// SPDX-License-Identifier: MIT
//
// The exhibits that want a Blackwell.

#include "no_slices.cuh"
#include "parity_of_another_ring.cuh"
#include "released_before_it_was_read.cuh"

int main(int count, char** words) {
  using namespace museum;
  return show(
      count, words, gg::Arch::sm_100a,
      {{"parity_of_another_ring", parity_of_another_ring::run<false>, parity_of_another_ring::run<true>},
       {"no_slices", no_slices::run<false>, no_slices::run<true>},
       {"released_before_it_was_read", released_before_it_was_read::run<false>,
        released_before_it_was_read::run<true>}});
}
