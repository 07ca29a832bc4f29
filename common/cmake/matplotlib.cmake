# SPDX-License-Identifier: MIT
# Sets gg_plot_python to a Python with matplotlib: the machine's, if it has 3.8 or later, else one
# in the build tree, into which GG_FIGURES has it fetched; empty if there is none. Where matplotlib
# is fetched, ruff is too, if there are tests: gg_ruff_version is the one whose findings are none.

set(gg_plot_python ${Python3_EXECUTABLE})
set(gg_ruff_version 0.17.6)
set(probe "from importlib.metadata import version; v = version('matplotlib').split('.')")
string(APPEND probe "; raise SystemExit((int(v[0]), int(v[1])) < (3, 8))")
execute_process(COMMAND ${gg_plot_python} -B -c "${probe}" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing)
  set(fetched ${CMAKE_BINARY_DIR}/python/matplotlib-3.10.9)
  if(GG_FIGURES AND NOT EXISTS ${fetched})
    message(STATUS "No matplotlib 3.8 or later here: fetching it from PyPI into the build tree, 40 MB")
    gg_pip_install("Matplotlib 3.8 or later" matplotlib==3.10.9)
    file(TOUCH ${fetched})
  endif()
  set(fetched_ruff ${CMAKE_BINARY_DIR}/python/ruff-${gg_ruff_version})
  if(GG_FIGURES AND GG_TESTS AND NOT EXISTS ${fetched_ruff})
    message(STATUS "Fetching ruff ${gg_ruff_version}, which looks over the Python files, from PyPI into the build tree, 12 MB")
    gg_pip_install("The linter ruff" ruff==${gg_ruff_version})
    file(TOUCH ${fetched_ruff})
  endif()
  set(gg_plot_python)
  if(EXISTS ${fetched})
    set(gg_plot_python ${gg_venv_python})
  endif()
endif()
