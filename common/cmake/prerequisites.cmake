# SPDX-License-Identifier: MIT
# Says in one sentence what the machine lacks, before CMake would say it at
# length; defines gg_pip_install().

if(CMAKE_GENERATOR STREQUAL "Unix Makefiles" AND NOT CMAKE_MAKE_PROGRAM)
  find_program(found_make NAMES gmake make NO_CACHE)
  find_program(found_ninja NAMES ninja NO_CACHE)
  if(NOT found_make AND found_ninja)
    message(FATAL_ERROR "make is missing but ninja is here: remove ${CMAKE_BINARY_DIR}, set the environment "
                        "variable CMAKE_GENERATOR=Ninja and run the same command again.")
  elseif(NOT found_make)
    message(FATAL_ERROR "make is missing: install it (Debian, Ubuntu: apt install make).")
  endif()
endif()

# nvcc 13.0 takes GCC up to 15; the C++20 used here starts with GCC 12.
function(gg_is_usable_gcc result path)
  execute_process(COMMAND ${path} -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "__clang__" OR NOT macros MATCHES "define __GNUC__ (1[2-5])\n")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

if(GG_FUZZ)
  find_program(CMAKE_CXX_COMPILER NAMES clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15
               clang++-14)
  if(NOT CMAKE_CXX_COMPILER)
    unset(CMAKE_CXX_COMPILER CACHE)
    message(FATAL_ERROR "Clang is missing, whose libFuzzer runs the fuzzers: install it (Debian, Ubuntu: apt "
                        "install clang).")
  endif()
else()
  set(usable TRUE)
  if(DEFINED CMAKE_CXX_COMPILER)  # on the command line, or in an earlier run
    set(names ${CMAKE_CXX_COMPILER})
    gg_is_usable_gcc(usable ${CMAKE_CXX_COMPILER})
  elseif(DEFINED ENV{CXX})
    set(names $ENV{CXX})
  else()
    set(names c++ g++ g++-15 g++-14 g++-13 g++-12)
  endif()
  find_program(CMAKE_CXX_COMPILER NAMES ${names} VALIDATOR gg_is_usable_gcc)
  if(NOT CMAKE_CXX_COMPILER OR NOT usable)
    unset(CMAKE_CXX_COMPILER CACHE)
    list(JOIN names " or " names)
    message(FATAL_ERROR "No C++ compiler called ${names} is GCC 12 to 15, as nvcc 13.0 and this code want: "
                        "install one (Debian, Ubuntu: apt install g++) or name it in the variable CXX.")
  endif()
endif()

set(apt_python "(Debian, Ubuntu: apt install python3 python3-venv python3-pip)")
find_package(Python3 3.10 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(FATAL_ERROR "Python 3.10 or later is missing: install it ${apt_python}.")
endif()

find_program(GIT_EXECUTABLE git)
if(NOT GIT_EXECUTABLE)
  message(FATAL_ERROR "git is missing: install it (Debian, Ubuntu: apt install git).")
endif()

# gg_pip_install(what [OPTIONAL] ARGS...) runs pip install ARGS... from a virtual environment in the
# build tree, made at the first call. Without OPTIONAL a failure ends the configuration. Of the
# user's settings of pip it keeps those that say where packages are and how to get there: what is
# installed, and into which folder, is ours to say.
set(gg_venv_python ${CMAKE_BINARY_DIR}/python/bin/python)
function(gg_pip_install what)
  cmake_parse_arguments(PARSE_ARGV 1 arg OPTIONAL "" "")
  set(plainly ${CMAKE_COMMAND} -E env --unset=PYTHONHOME --unset=PYTHONPATH)
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/python/bin/pip)
    execute_process(COMMAND ${plainly} ${Python3_EXECUTABLE} -m venv ${CMAKE_BINARY_DIR}/python
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      message(FATAL_ERROR "${Python3_EXECUTABLE} has no venv or no pip: install them ${apt_python}.")
    endif()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E environment OUTPUT_VARIABLE environment)
  string(REGEX MATCHALL "PIP_[A-Z_]*" of_user "${environment}")
  list(REMOVE_ITEM of_user PIP_CONFIG_FILE)
  list(TRANSFORM of_user PREPEND --unset=)
  execute_process(COMMAND ${plainly} ${of_user} ${gg_venv_python} -m pip config list OUTPUT_VARIABLE settings ERROR_QUIET)
  set(kept)
  foreach(setting index-url extra-index-url find-links no-index proxy cert client-cert trusted-host timeout default-timeout)
    string(TOUPPER PIP_${setting} name)
    string(REPLACE - _ name ${name})
    if(DEFINED ENV{${name}})
      list(APPEND kept ${name}=$ENV{${name}})
    elseif(settings MATCHES "(install|global)\\.${setting}='([^'\n]*)'")
      list(APPEND kept ${name}=${CMAKE_MATCH_2})
    endif()
  endforeach()
  execute_process(COMMAND ${plainly} ${of_user} PIP_CONFIG_FILE=/dev/null ${kept} ${gg_venv_python} -m pip install --quiet
                          --no-cache-dir --disable-pip-version-check --retries 2 ${arg_UNPARSED_ARGUMENTS}
                  RESULT_VARIABLE failed ERROR_VARIABLE log)
  if(failed AND arg_OPTIONAL)
    message(STATUS "${what} could not be fetched from PyPI: what wants it is skipped")
  elseif(failed)
    file(WRITE ${CMAKE_BINARY_DIR}/pip.log "${log}")
    string(REGEX MATCHALL "ERROR: [^\n]*" errors "${log}")
    string(REGEX REPLACE ".*;?ERROR: " "" reason "${errors}")
    if(log MATCHES "onnection|esolution|imed out|roxy" OR NOT reason)
      set(reason "connect this machine to the network")
    else()
      string(PREPEND reason "pip says: ")
    endif()
    message(FATAL_ERROR "${what} could not be fetched from PyPI: ${reason}; or install it by hand (all of pip's words "
                        "are in ${CMAKE_BINARY_DIR}/pip.log).")
  endif()
endfunction()
