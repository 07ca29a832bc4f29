# SPDX-License-Identifier: MIT
# Read by ctest: of the chapters' tests on a GPU eight run at once and begin early. More only wait for the GPU, while the
# emulator's tests could have their cores. Tiny sets keep the cores busy and large ones the GPU, so all tests of a chapter
# begin before those of the next; the last chapters, which take longest, come first.

set(turn 0)
set(suite "")
foreach(test IN LISTS chapters_gpu_test_TESTS)
  string(REGEX REPLACE "/[^/]*$" "" suite_of_this "${test}")
  if(NOT suite_of_this STREQUAL suite)
    set(suite "${suite_of_this}")
    set(cost 100)
  endif()
  math(EXPR turn "(${turn} + 1) % 8")
  math(EXPR cost "${cost} + 1")
  set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu_turn_${turn} COST ${cost})
endforeach()
