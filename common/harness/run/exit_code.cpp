// SPDX-License-Identifier: MIT
//
// Errors, on stderr.

#include "common/harness/run/exit_code.h"

#include <csignal>
#include <cstdio>
#include <new>

#include "common/harness/base/paths.h"
#include "common/harness/machine/machine.h"

namespace gg {

int exit_code_of(const char* id, const std::function<Exit()>& work) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes makes writing fail, as a full disk does
  try {
    const std::string copied = copied_tree_problem(configured_tree());
    GG_REQUIRE(copied.empty(), "%s", copied.c_str());
    const Exit code = work();
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      throw Error(Exit::cannot_write, "the results could not be written to stdout");
    }
    return int(code);
  } catch (const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", id, error.what());
    return int(error.code);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: this problem needs more host memory than the %zu bytes that are free\n", id,
                 host_machine()->free_bytes());
    return int(Exit::no_memory);
  }
}

}  // namespace gg
