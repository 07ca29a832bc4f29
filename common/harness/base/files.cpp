// SPDX-License-Identifier: MIT
//
// Reading whole files, and replacing them in one step.

#include "common/harness/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gg {
namespace {

constexpr int kMostLinks = 40;  // as many as the system follows

[[noreturn]] void cannot_write(const std::string& path, const char* what, const char* changed) {
  const std::string why = std::strerror(errno);
  throw Error(Exit::cannot_write, format("%s: %s failed: %s; %s", path.c_str(), what, why.c_str(), changed));
}
constexpr char kUnchanged[] = "what was there before is unchanged";

// Where a path leads, whether anything is there or not. Throws where that is something else than
// a plain file.
std::string target_of(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code failed;
  for (int links = 0; std::filesystem::is_symlink(target, failed) && links < kMostLinks; ++links)
    target = target.parent_path() / std::filesystem::read_symlink(target, failed);
  struct stat info {};
  if (stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw Error(Exit::cannot_write, path + ": is there and is no plain file; name another");
  }
  return target;
}

// An open new file beside `target`, under a name that nobody has, with the permissions of the
// file it replaces.
int open_beside(const std::string& path, const std::string& target, std::string& beside) {
  int file = -1;
  for (int i = 0; file < 0; ++i) {
    beside = format("%s.new-%d-%d", target.c_str(), int(getpid()), i);
    file = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) cannot_write(path, "creating it", kUnchanged);
  }
  struct stat info {};
  if (stat(target.c_str(), &info) == 0) fchmod(file, info.st_mode & 0777);
  return file;
}

bool write_all(int file, const std::string& content) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = write(file, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += size_t(wrote);
  }
  return fsync(file) == 0 || errno == EINVAL;
}

}  // namespace

NewFiles::~NewFiles() {
  for (size_t i = placed_; i < files_.size(); ++i) unlink(files_[i].beside.c_str());
}

void NewFiles::add(const std::string& path, const std::string& content) {
  File added{path, target_of(path), ""};
  const int file = open_beside(path, added.target, added.beside);
  files_.push_back(added);
  const bool wrote = write_all(file, content);
  const int error = errno;
  const bool closed = close(file) == 0;
  if (wrote && closed) return;
  if (!wrote) errno = error;
  cannot_write(path, "writing", kUnchanged);
}

void NewFiles::commit() {
  for (; placed_ < files_.size(); ++placed_) {
    const File& next = files_[placed_];
    if (rename(next.beside.c_str(), next.target.c_str()) == 0) continue;
    std::string changed = placed_ == 0 ? kUnchanged : "already replaced: ";
    for (size_t i = 0; i < placed_; ++i) changed += (i > 0 ? ", " : "") + files_[i].path;
    cannot_write(next.path, "renaming it into place", changed.c_str());
  }
}

void write_file(const std::string& path, const std::string& content) {
  NewFiles files;
  files.add(path, content);
  files.commit();
}

void require_writable(const std::string& path) { NewFiles().add(path, ""); }

bool read_file(const std::string& path, std::string& content) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  content = std::move(bytes).str();
  return !bytes.bad();  // set when reading from the file failed
}

// The lock lies on the file itself. Whoever waits for it may find that the file was replaced
// meanwhile, and asks again.
FileLock::FileLock(const std::string& path) : target_(target_of(path)) {
  while (true) {
    file_ = open(target_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) cannot_write(path, "opening it", kUnchanged);
    while (flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      close(file_);
      cannot_write(path, "locking it", kUnchanged);
    }
    struct stat mine {
    }, now{};
    if (fstat(file_, &mine) == 0 && stat(target_.c_str(), &now) == 0 && mine.st_dev == now.st_dev &&
        mine.st_ino == now.st_ino)
      return;
    close(file_);
  }
}

FileLock::~FileLock() {
  // A file that was only made for the lock, and that nobody has replaced, goes again.
  struct stat mine {
  }, now{};
  if (fstat(file_, &mine) == 0 && stat(target_.c_str(), &now) == 0 && mine.st_ino == now.st_ino &&
      mine.st_dev == now.st_dev && mine.st_size == 0)
    unlink(target_.c_str());
  close(file_);
}

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

void require_directory(const std::string& dir, const char* advice) {
  struct stat info {};
  const bool there = stat(dir.c_str(), &info) == 0;
  GG_REQUIRE(!there || S_ISDIR(info.st_mode), "%s: is a file, a folder is wanted: %s", dir.c_str(), advice);
  GG_REQUIRE(there, "%s: there is no such folder: %s", dir.c_str(), advice);
}

}  // namespace gg
