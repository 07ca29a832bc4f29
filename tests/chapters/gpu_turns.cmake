# SPDX-License-Identifier: MIT
# Read by ctest: of the chapters' tests on a GPU eight run at once and begin early. More only wait for the GPU, while the
# emulator's tests could have their cores.

set(turn 0)
foreach(test IN LISTS chapters_gpu_test_TESTS)
  math(EXPR turn "(${turn} + 1) % 8")
  set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu_turn_${turn} COST 100)
endforeach()
