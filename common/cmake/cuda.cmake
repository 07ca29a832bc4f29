# SPDX-License-Identifier: MIT
# Chooses nvcc before CUDA is enabled: the machine's, if it is 13.0 or later, else that of NVIDIA's
# wheels, fetched into the build tree. With glibc 2.42 or later it is 13.2: both declare rsqrt, and
# only from then on alike.

execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dM -E -x c++ -include features.h /dev/null OUTPUT_VARIABLE macros)
if(macros MATCHES "define __GLIBC_MINOR__ ([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 42)
  set(least_cuda 13.2)
  set(wheels cuda-nvcc==13.2.86 cuda-crt==13.2.86 nvvm==13.2.86 cuda-runtime==13.2.86 cuda-cccl==13.2.86)
else()
  set(least_cuda 13.0)
  set(wheels cuda-nvcc==13.0.88 cuda-crt==13.0.88 nvvm==13.0.88 cuda-runtime==13.0.96 cuda-cccl==13.0.85)
endif()
list(TRANSFORM wheels PREPEND nvidia-)

function(gg_is_usable_nvcc result path)
  execute_process(COMMAND ${path} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "release ([0-9.]+)")
    set_property(GLOBAL PROPERTY gg_rejected_nvcc " (${path} does not run)")
    set(${result} FALSE PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 VERSION_LESS least_cuda)
    set_property(GLOBAL PROPERTY gg_rejected_nvcc " (${path} is ${CMAKE_MATCH_1})")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

file(GLOB side_by_side /usr/local/cuda-*/bin)
find_program(CMAKE_CUDA_COMPILER NAMES $ENV{CUDACXX} nvcc PATHS /usr/local/cuda/bin ${side_by_side}
             VALIDATOR gg_is_usable_nvcc)
set(usable TRUE)
if(CMAKE_CUDA_COMPILER)
  gg_is_usable_nvcc(usable ${CMAKE_CUDA_COMPILER})  # it may have been named on the command line
endif()

if(NOT CMAKE_CUDA_COMPILER OR NOT usable)
  list(GET wheels 0 version)
  string(REGEX REPLACE ".*=" "" version ${version})
  set(toolkit ${CMAKE_BINARY_DIR}/cuda-${version})
  if(NOT EXISTS ${toolkit})
    get_property(rejected GLOBAL PROPERTY gg_rejected_nvcc)
    message(STATUS "No CUDA Toolkit ${least_cuda} or later here${rejected}: "
                   "fetching NVIDIA's compiler from PyPI into the build tree, about 100 MB")
    file(REMOVE_RECURSE ${toolkit}.partial)
    gg_pip_install("A CUDA Toolkit ${least_cuda} or later" --no-deps --target ${toolkit}.partial ${wheels})
    # CMake looks for these two names, which the wheels leave out.
    file(CREATE_LINK lib ${toolkit}.partial/nvidia/cu13/lib64 SYMBOLIC)
    file(CREATE_LINK libcudart.so.13 ${toolkit}.partial/nvidia/cu13/lib/libcudart.so SYMBOLIC)
    file(RENAME ${toolkit}.partial ${toolkit})
  endif()
  set(CMAKE_CUDA_COMPILER ${toolkit}/nvidia/cu13/bin/nvcc CACHE FILEPATH "nvcc" FORCE)
  set(CUDAToolkit_ROOT ${toolkit}/nvidia/cu13 CACHE PATH "Where nvcc's libraries are" FORCE)
endif()

set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
set(CMAKE_CUDA_ARCHITECTURES OFF)  # every target names its own: gg_compile in flags.cmake
# Programs link the runtime by its path, as CUDA::cudart: -lcudart is not found in a folder with a
# space in its name.
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
