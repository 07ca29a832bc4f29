// SPDX-License-Identifier: MIT
//
// The table of all forms.

#include "common/emu/core/isa/forms.h"

namespace gg::emu {

const FormTable& all_forms() {
  static const FormTable& table = *new const FormTable({
      integer_forms(),
      bits_forms(),
      bits_fields_forms(),
      compare_forms(),
      mov_forms(),
      floating_forms(),
      floating_pairs_forms(),
      half_forms(),
      cvt_forms(),
      cvta_forms(),
      cvt_narrow_forms(),
      control_forms(),
      call_forms(),
      video_forms(),
      barrier_forms(),
      ldst_forms(),
      atomic_forms(),
      warp_forms(),
      mma_forms(),
      wmma_forms(),
      ldmatrix_forms(),
      stmatrix_forms(),
      ldmatrix_bytes_forms(),
      stmatrix_bytes_forms(),
      cp_async_forms(),
      mbarrier_forms(),
      cluster_forms(),
      tensormap_forms(),
      bulk_forms(),
      cluster_launch_forms(),
      wgmma_forms(),
      tcgen05_forms(),
      tcgen05_mma_forms(),
      fence_forms(),
      warpgroup_forms(),
  });
  return table;
}

}  // namespace gg::emu
