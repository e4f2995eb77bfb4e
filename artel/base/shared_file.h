// A file mapped as shared memory. Several processes may write disjoint parts of it concurrently.
//
//   const artel::SharedFile file("features", 1 << 20);
//   file.data()[17] = std::byte{1};
#pragma once

#include <cstddef>
#include <filesystem>

namespace artel {

class SharedFile {
 public:
  // Creates the file or extends it with zeros, and allocates disk space for all of it, because a
  // later write to a page without space would kill the process. Throws an Error of kind io if the
  // disk is full.
  SharedFile(const std::filesystem::path& path, size_t bytes);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

}  // namespace artel
