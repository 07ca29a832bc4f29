# SPDX-License-Identifier: MIT
# GoogleTest: the machine's library, if what this compiler makes can be linked with it (one that a
# newer GCC built wants that GCC's runtime); else the sources that Debian's and Ubuntu's
# libgtest-dev bring, else those of its release 1.15.2, built in the build tree.

set(trial ${CMAKE_BINARY_DIR}/gtest_links)
file(WRITE ${trial}/CMakeLists.txt "cmake_minimum_required(VERSION 3.24)\nproject(gtest_links CXX)\n"
  "find_package(GTest REQUIRED)\nadd_executable(links links.cpp)\ntarget_link_libraries(links GTest::gtest_main)\n")
file(WRITE ${trial}/links.cpp "#include <gtest/gtest.h>\nTEST(A, B) { EXPECT_EQ(1, 1); }\n")
try_compile(GG_GTEST_LINKS ${trial}/build ${trial} gtest_links
            CMAKE_FLAGS -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})

if(GG_GTEST_LINKS)
  find_package(GTest REQUIRED QUIET)
else()
  include(FetchContent)
  set(BUILD_GMOCK OFF)
  set(INSTALL_GTEST OFF)
  set(sources /usr/src/googletest)
  if(EXISTS ${sources}/CMakeLists.txt)
    message(STATUS "The machine's GoogleTest does not link: building it from ${sources}")
    FetchContent_Declare(googletest SYSTEM SOURCE_DIR ${sources})
  else()
    set(releases https://github.com/google/googletest/releases/download)
    set(archive ${CMAKE_BINARY_DIR}/googletest-1.15.2.tar.gz)
    if(NOT EXISTS ${archive})
      message(STATUS "No GoogleTest here: fetching its release 1.15.2 into the build tree, 1 MB")
      file(DOWNLOAD ${releases}/v1.15.2/googletest-1.15.2.tar.gz ${archive}.partial STATUS status TLS_VERIFY ON)
      if(NOT status MATCHES "^0;")
        message(FATAL_ERROR "GoogleTest could not be fetched from GitHub (${status}): connect this machine to "
                            "the network or install it (Debian, Ubuntu: apt install libgtest-dev).")
      endif()
      file(RENAME ${archive}.partial ${archive})
    endif()
    FetchContent_Declare(googletest SYSTEM DOWNLOAD_EXTRACT_TIMESTAMP ON
      URL ${archive} URL_HASH SHA256=7b42b4d6ed48810c5362c265a17faebe90dc2373c885e5216439d37927f02926)
  endif()
  FetchContent_MakeAvailable(googletest)
endif()
include(GoogleTest)
