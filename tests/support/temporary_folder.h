// A new empty folder that disappears with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "artel/base/error.h"

namespace artel {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "artel_test_XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, ErrorKind::io, "[{}] cannot create", name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace artel
