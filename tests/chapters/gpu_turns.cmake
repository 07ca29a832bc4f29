# SPDX-License-Identifier: MIT
# Read by ctest: how many of the chapters' tests on a GPU run at once. It gives each process a turn
# of some milliseconds, so that one of many short launches takes as long as all that run beside it.
# Three sets of large problems keep it busy. All begin before the emulator's tests.

set(turn 0)
foreach(test IN LISTS chapters_gpu_test_TESTS)
  math(EXPR turn "${turn} + 1")
  if(test MATCHES "OnGpuSets")
    math(EXPR lane "${turn} % 3")
    set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu_large_${lane} COST 200 PROCESSORS 1)
  else()
    math(EXPR lane "${turn} % 2")
    set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu_other_${lane} COST 100 PROCESSORS 1)
  endif()
  if(test MATCHES "BeforeTheNextOne")
    set_tests_properties(${test} PROPERTIES TIMEOUT 120)  # where it fails, the kernel hangs
  endif()
endforeach()
if(chapters_gpu_test_alone_TESTS)
  set_tests_properties(${chapters_gpu_test_alone_TESTS} PROPERTIES COST 150)
endif()
