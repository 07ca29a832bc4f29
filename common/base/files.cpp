// SPDX-License-Identifier: MIT
//
// Reading whole files, and replacing them in one step.

#include "common/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace gg {
namespace {

[[noreturn]] void cannot_write(const std::string& path, const char* what) {
  const std::string why = std::strerror(errno);
  unlink((path + ".new").c_str());
  throw Error(Exit::cannot_write, format("%s: %s failed: %s; what was there before is unchanged",
                                         path.c_str(), what, why.c_str()));
}

// The file that will take the place of `path` once it is complete.
int open_beside(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw Error(Exit::cannot_write, path + ": is there and is no plain file; name another");
  }
  const int file = open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) cannot_write(path, "creating it");
  return file;
}

}  // namespace

bool read_file(const std::string& path, std::string& content) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  content = std::move(bytes).str();
  return !bytes.bad();  // set when reading from the file failed
}

void require_writable(const std::string& path) {
  close(open_beside(path));
  unlink((path + ".new").c_str());
}

void write_file(const std::string& path, const std::string& content) {
  const int file = open_beside(path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = write(file, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int error = errno;
      close(file);
      errno = error;
      cannot_write(path, "writing");
    }
    done += size_t(wrote);
  }
  if (fsync(file) != 0 && errno != EINVAL) {
    const int error = errno;
    close(file);
    errno = error;
    cannot_write(path, "writing");
  }
  if (close(file) != 0) cannot_write(path, "writing");
  if (rename((path + ".new").c_str(), path.c_str()) != 0) cannot_write(path, "renaming it into place");
}

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

void require_directory(const std::string& dir) {
  struct stat info {};
  GG_REQUIRE(stat(dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode), "%s: no such directory; create it first",
             dir.c_str());
}

}  // namespace gg
