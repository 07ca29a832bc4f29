# SPDX-License-Identifier: MIT
# How our code is compiled and where its programs go: gg_compile(target arch), arch being 80, 90a or
# 100a. gg_for_this_cpu(name) takes from the emulator's sources, a list called `name`, those for
# CPUs of another kind; gg_this_cpu is the least CPU that the emulator runs on, as a flag.
# gg_precompile(target) reads standard headers once for all its C++ sources, gg_unite(target groups)
# the headers of ours once for a group of them.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Programs start with the toolkit's runtime, on a bare machine too; for the emulator they start
# themselves again with LD_LIBRARY_PATH, which comes before a RUNPATH.
set(CMAKE_BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR})
set(CMAKE_CUDA_USE_RESPONSE_FILE_FOR_INCLUDES OFF)  # so that compile_commands.json says it all
list(PREPEND CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/common/cmake/nvcc-launcher)

set(gg_exact_sums)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(gg_this_cpu -march=x86-64-v3)
else()
  # A processor that multiplies and adds at once would round once where two roundings are written.
  # The x86-64 that everything but the emulator is compiled for cannot.
  set(gg_this_cpu)
  set(gg_exact_sums -ffp-contract=off)
endif()

function(gg_for_this_cpu name)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    # It is chosen when the emulator runs, on CPUs that have it.
    set(avx512 ${${name}})
    list(FILTER avx512 INCLUDE REGEX fused_sums_avx512)
    set_source_files_properties(${avx512} PROPERTIES COMPILE_OPTIONS -march=x86-64-v4 SKIP_PRECOMPILE_HEADERS ON)
  else()
    list(FILTER ${name} EXCLUDE REGEX fused_sums_avx)
    set(${name} ${${name}} PARENT_SCOPE)
  endif()
endfunction()

# Machine code is for a GPU that is here. Without it a program holds the same PTX, which the
# emulator runs, and which the driver of a GPU compiles when a program first runs there; a third of
# what nvcc takes is saved. Then tests/build has ptxas look for spills.
set(gg_machine_code ${GG_MACHINE_CODE})
if("${GG_MACHINE_CODE}" STREQUAL "")
  set(asks_driver "import ctypes; raise SystemExit(ctypes.CDLL('libcuda.so.1').cuInit(0))")
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "${asks_driver}" RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
  if(NOT no_gpu)
    set(gg_machine_code ON)
  endif()
endif()

# gg_compile(target arch [MACHINE_CODE]): with machine code wherever it is built.
function(gg_compile target arch)
  set(code compute_${arch})
  if(gg_machine_code OR "MACHINE_CODE" IN_LIST ARGN)
    string(APPEND code ",sm_${arch}")
    if(arch STREQUAL "80")
      string(APPEND code ",sm_90")
    endif()
  endif()
  # C++20 as a plain flag: CMake 3.25.1 does not know that nvcc has it. -Wrestrict is off: GCC 12
  # sees it where strings are joined (its bug 105651). A register spill is an error everywhere:
  # nvcc-launcher makes it one.
  set(warnings -Wall -Wextra -Wno-restrict ${gg_exact_sums})
  set(cuda_warnings)
  if(GG_WERROR)
    list(APPEND warnings -Werror)
    set(cuda_warnings -Werror=all-warnings)
  endif()
  list(JOIN warnings "," for_nvcc)
  target_compile_options(${target} PRIVATE -std=c++20
    $<$<COMPILE_LANGUAGE:CXX>:${warnings}>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${for_nvcc} ${cuda_warnings} -Xptxas=--warn-on-spills
      --generate-code=arch=compute_${arch},code=[${code}] --compress-mode=none -lineinfo --expt-relaxed-constexpr>)
  target_link_options(${target} PRIVATE LINKER:--enable-new-dtags)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  if(GG_SANITIZE)  # host code; kernels are the emulator's to check
    # Programs give the runtime any int as an enum, which it refuses: so enums are not checked.
    set(sanitize -fsanitize=address -fsanitize=undefined -fno-sanitize=enum -fno-sanitize-recover=undefined
      -fno-omit-frame-pointer -g1)
    list(JOIN sanitize "," for_nvcc)
    # GCC 12 to 14 see it in <regex> under ASan (its bug 105616).
    list(APPEND sanitize -Wno-maybe-uninitialized)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${sanitize}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${for_nvcc}>)
    target_link_options(${target} PRIVATE ${sanitize})
  endif()
endfunction()

# A third of what a source of ours takes to compile is reading the standard library. Each source
# goes on to include what it uses: docs.headers fails where it does not. (GCC 12 warns of what its
# own <string> does when that is precompiled, as if it were a header of ours: the three warnings
# that it then has are off. The preset `sanitize` finds what they are for.)
function(gg_precompile target)
  set(headers algorithm cstring fstream functional map memory set string vector)
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
  set(of_string -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${of_string}>")
endfunction()

# Compiles a target's C++ sources in so many groups, each as one file, for most of a small source's
# time goes to headers. A source's group follows from its name alone, so that another source moves
# none. Names of one group's sources must differ, also those in namespaces without a name; those
# that match the regular expression `alone` stay by themselves. A build for debugging has no groups.
function(gg_unite target groups alone)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "${alone}")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME name)
    string(MD5 digits ${name})
    string(SUBSTRING ${digits} 0 6 digits)
    math(EXPR group "0x${digits} % ${groups}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP group_${group})
  endforeach()
endfunction()
