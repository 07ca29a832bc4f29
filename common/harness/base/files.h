// SPDX-License-Identifier: MIT
//
// Files that are read whole, and replaced whole or not at all.

#pragma once

#include <string>
#include <vector>

#include "common/kernel/error.h"

namespace gg {

// Files that take their places together. Each is written beside the one that it replaces; what was
// not put into place is removed at the end. A symbolic link stays and its target is replaced.
// Functions throw gg::Error (cannot write) and say what has changed by then.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  ~NewFiles();

  // Writes `content` beside `path`, down to the disk. Nothing has changed yet.
  void add(const std::string& path, const std::string& content);
  // Renames all into place, in the order in which they were added.
  void commit();

 private:
  struct File {
    std::string path;    // as it was asked for
    std::string target;  // behind symbolic links
    std::string beside;  // where it was written
  };
  std::vector<File> files_;
  size_t placed_ = 0;  // how many have their places
};

// Replaces one file.
void write_file(const std::string& path, const std::string& content);
// Throws what write_file would for a folder that is missing or may not be written, or for a path
// that is no plain file, before any work is done.
void require_writable(const std::string& path);
// False if there is none or it can't be read.
bool read_file(const std::string& path, std::string& content);

// Nobody else who asks for the lock of this file has it while this exists: for reading it, and
// replacing it. Waits. Throws gg::Error (cannot write) for a path that is no plain file or may
// not be written.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string target_;
  int file_ = -1;
};

bool exists(const std::string& path);
// Throws gg::Error (bad input) where there is no such folder; the sentence ends with the advice.
void require_directory(const std::string& dir, const char* advice);

}  // namespace gg
