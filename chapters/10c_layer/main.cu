// SPDX-License-Identifier: MIT
// Chapter 10c: the launches of a layer's training step, which the harness checks and times.
#include "common/harness/harness.cuh"
#include "launch.cuh"

int main(int argc, char** argv) {
  return gg::run_layer(argc, argv,
                       {.forward = chapter::forward,
                        .backward = chapter::backward,
                        .update = chapter::update,
                        .workspace_bytes = chapter::workspace_bytes});
}
