#include "artel/exec/opencl/program_cache.h"

#include <cstdlib>
#include <filesystem>
#include <span>

#include "artel/base/digest.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"

namespace artel::opencl {
namespace {

constexpr std::string_view kMagic = "artel OpenCL program 1\n";
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

std::string digest_of(std::string_view text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

std::filesystem::path cache_folder() {
  if (const char* folder = std::getenv("ARTEL_DATA"); folder && *folder)
    return std::filesystem::path(folder) / "opencl";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "artel" / "opencl";
  return {};
}

std::filesystem::path path_of(const std::string& key) {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / (digest_of(key) + ".bin");
}

}  // namespace

// A digest of the content follows the magic line, to detect truncated files.
std::string cache_file(std::string_view key, std::string_view binary) {
  std::string rest = fmt::format("{}\n{}", digest_of(key), binary);
  return fmt::format("{}{}\n{}", kMagic, digest_of(rest), rest);
}

std::optional<std::string_view> binary_in(std::string_view file, std::string_view key) {
  constexpr size_t kDigest = 64;
  if (!file.starts_with(kMagic)) return {};
  file.remove_prefix(kMagic.size());
  if (file.size() < 2 * (kDigest + 1) || file[kDigest] != '\n') return {};
  const std::string_view digest = file.substr(0, kDigest), rest = file.substr(kDigest + 1);
  if (rest.substr(0, kDigest) != digest_of(key) || rest[kDigest] != '\n' ||
      digest != digest_of(rest))
    return {};
  return rest.substr(kDigest + 1);
}

std::optional<std::string> kept_binary(const std::string& key) {
  const std::filesystem::path path = path_of(key);
  std::error_code missing;
  if (path.empty() || !std::filesystem::is_regular_file(path, missing)) return {};
  try {
    const std::string file = read_file(path, kMostBytes);
    const std::optional<std::string_view> binary = binary_in(file, key);
    return binary ? std::optional(std::string(*binary)) : std::nullopt;
  } catch (const Error& error) {
    log(LogLevel::debug, "[opencl] {}", error.what());
    return {};
  }
}

void keep_binary(const std::string& key, std::string_view binary) {
  const std::filesystem::path path = path_of(key);
  if (path.empty()) return;
  try {
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, cache_file(key, binary));
  } catch (const std::exception& error) {
    log(LogLevel::warning, "[opencl] cannot cache a compiled program: {}", error.what());
  }
}

}  // namespace artel::opencl
