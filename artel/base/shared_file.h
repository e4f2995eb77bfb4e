// A file that several processes write at once, each other parts of it, as memory.
//
//   const artel::SharedFile file("features", 1 << 20);
//   file.data()[17] = std::byte{1};
#pragma once

#include <cstddef>
#include <filesystem>

namespace artel {

class SharedFile {
 public:
  // Makes the file, or enlarges it with zeros, and takes room on the disk for all of it: a page
  // that found none later would end the process. Throws an Error of kind io if there is none.
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
