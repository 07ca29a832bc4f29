// SPDX-License-Identifier: MIT
//
// All forms of this folder. An opcode of theirs stands in core/isa/forms.cpp too, for builds that
// leave them out.

#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {

std::vector<Form> foreign_forms() {
  std::vector<Form> all;
  for (const std::vector<Form>& page : {half_forms(), video_forms(), wmma_forms(), ldmatrix_bytes_forms(),
                                        stmatrix_bytes_forms(), bulk_run_forms(), cluster_launch_forms()}) {
    all.insert(all.end(), page.begin(), page.end());
  }
  return all;
}

}  // namespace gg::emu
