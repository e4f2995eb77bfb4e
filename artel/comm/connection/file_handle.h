#pragma once

#include <unistd.h>

#include <utility>

namespace artel::comm {

// A file descriptor that is closed with its owner.
class FileHandle {
 public:
  explicit FileHandle(int file = -1) : file_(file) {}
  FileHandle(FileHandle&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileHandle() {
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }

 private:
  int file_;
};

}  // namespace artel::comm
