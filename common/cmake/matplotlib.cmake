# SPDX-License-Identifier: MIT
# Matplotlib for plots/plot.py: the machine's, if it is 3.8 or later, else a pinned one in the build tree.

set(gg_plot_python ${Python3_EXECUTABLE})
set(probe "import matplotlib as m; raise SystemExit(m.__version_info__ < (3, 8))")
execute_process(COMMAND ${gg_plot_python} -B -c "${probe}" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(NOT missing EQUAL 0)
  set(gg_plot_python ${gg_venv_python})
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/python/matplotlib-3.10.9)
    message(STATUS "No matplotlib 3.8 or later here: fetching it from PyPI into the build tree, 40 MB")
    gg_pip_install("Matplotlib 3.8 or later" matplotlib==3.10.9)
    file(TOUCH ${CMAKE_BINARY_DIR}/python/matplotlib-3.10.9)
  endif()
endif()
