// SPDX-License-Identifier: MIT
//
// The exhibits that an H200 can run.

#include "empty_expert.cuh"
#include "map_in_flight.cuh"
#include "offset_of_32_bits.cuh"
#include "offsets_before_the_wait.cuh"
#include "padded_scales.cuh"
#include "peer_has_left.cuh"
#include "rows_past_the_last_offset.cuh"
#include "store_before_the_tile.cuh"
#include "straddling_pair.cuh"

int main(int count, char** words) {
  using namespace museum;
  return show(
      count, words, gg::Arch::sm_90a,
      {{"straddling_pair", straddling_pair::run<false>, straddling_pair::run<true>},
       {"offsets_before_the_wait", offsets_before_the_wait::run<false>, offsets_before_the_wait::run<true>},
       {"empty_expert", empty_expert::run<false>, empty_expert::run<true>},
       {"rows_past_the_last_offset", rows_past_the_last_offset::run<false>,
        rows_past_the_last_offset::run<true>},
       {"offset_of_32_bits", offset_of_32_bits::run<false>, offset_of_32_bits::run<true>},
       {"padded_scales", padded_scales::run<false>, padded_scales::run<true>},
       {"map_in_flight", map_in_flight::run<false>, map_in_flight::run<true>},
       {"store_before_the_tile", store_before_the_tile::run<false>, store_before_the_tile::run<true>},
       {"peer_has_left", peer_has_left::run<false>, peer_has_left::run<true>}});
}
