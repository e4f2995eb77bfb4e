#include "artel/base/disk.h"

#include "artel/base/text.h"

namespace artel {

namespace fs = std::filesystem;

std::string free_space_at(const fs::path& path) {
  std::error_code failed;
  fs::path folder = fs::absolute(path);
  while (!fs::exists(folder, failed) && folder != folder.parent_path())
    folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, failed);
  if (failed) return fmt::format("unknown space free in {}", path.string());
  return fmt::format("{} free in {}", format_bytes(static_cast<double>(space.available)),
                     path.string());
}

Error io_error(const fs::filesystem_error& error) {
  return {ErrorKind::io, fmt::format("[{}] cannot be read or written: {}", error.path1().string(),
                                     error.code().message())};
}

}  // namespace artel
