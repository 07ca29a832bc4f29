# SPDX-License-Identifier: MIT
# GoogleTest: the machine's, else its release 1.15.2 built in the build tree.

find_package(GTest QUIET)
if(NOT GTest_FOUND)
  include(FetchContent)
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
  set(BUILD_GMOCK OFF)
  set(INSTALL_GTEST OFF)
  FetchContent_Declare(googletest SYSTEM DOWNLOAD_EXTRACT_TIMESTAMP ON
    URL ${archive} URL_HASH SHA256=7b42b4d6ed48810c5362c265a17faebe90dc2373c885e5216439d37927f02926)
  FetchContent_MakeAvailable(googletest)
endif()
include(GoogleTest)
