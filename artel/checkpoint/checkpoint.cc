#include "artel/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "artel/base/checksum.h"
#include "artel/base/disk.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/safetensors.h"

namespace artel::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kChecksum = "crc32";
constexpr const char* kManifest = "checkpoint.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kBest = "best";
constexpr const char* kFormat = "artel checkpoint";
// Version 1 stores strategy states under strategy-specific names.
constexpr int kVersion = 2, kOldestVersion = 1;
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kNew = ".new", kOld = ".old";  // suffixes during a save
constexpr uint64_t kMaxManifest = 64 << 20;

std::string folder_name(int64_t step) { return fmt::format("{}{:09}", kPrefix, step); }

json describe(const FileSummary& file) {
  return {{"bytes", file.bytes}, {"crc32", fmt::format("{:08x}", file.crc32)}};
}

void verify(const fs::path& path, const json& expected) {
  const json found = describe(summarise_file(path));
  for (const char* property : {"bytes", "crc32"})
    require(found.at(property) == expected.at(property), ErrorKind::corrupt,
            "[{}] is truncated or was changed: got {} {}, expected {}", path.string(), property,
            found.at(property).dump(), expected.at(property).dump());
}

// The checksum of the other members of a manifest.
std::string checksum_of(json manifest) {
  manifest.erase(kChecksum);
  const std::string text = manifest.dump();
  return fmt::format("{:08x}", crc32(std::as_bytes(std::span(text))));
}

json read_manifest(const fs::path& path) {
  const json manifest = parse_json(read_file(path, kMaxManifest), path.string());
  require(manifest.is_object() && manifest.value("format", json()) == kFormat, ErrorKind::corrupt,
          "[{}] is not a checkpoint of Artel", path.string());
  const json& version = manifest.at("version");
  if (!version.is_number_integer() || version < kOldestVersion || version > kVersion)
    fail(ErrorKind::unsupported,
         "[{}] format: got version {}, expected {} to {}; try the artel that wrote it",
         path.string(), json_excerpt(version), kOldestVersion, kVersion);
  // Older checkpoints have no checksum.
  const std::string expected = manifest.value(kChecksum, checksum_of(manifest));
  require(checksum_of(manifest) == expected, ErrorKind::corrupt,
          "[{}] was changed: got {} {}, expected {}", path.string(), kChecksum,
          checksum_of(manifest), expected);
  const json& step = manifest.at("step");
  if (!step.is_number_unsigned() || step != step_of(path.parent_path()).value_or(step))
    fail(ErrorKind::corrupt, "[{}] step: got {}, expected the number in the folder's name",
         path.string(), json_excerpt(step));
  return manifest;
}

// ".step-000000120.new" for "step-000000120".
fs::path hidden(const fs::path& target, std::string_view suffix) {
  return target.parent_path() / fmt::format(".{}{}", target.filename().string(), suffix);
}

void discard(const fs::path& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
}

void remove_old(const fs::path& folder, int keep_last) {
  if (keep_last <= 0) return;
  const std::vector<fs::path> all = list_checkpoints(folder);
  const auto best = best_checkpoint(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < all.size(); ++i)
    if (!best || all[i] != *best) fs::remove_all(all[i]);
}

}  // namespace

std::optional<int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

fs::path save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                         const SaveOptions& options) {
  return save_checkpoint(folder,
                         Snapshot{checkpoint.step, sources_of(checkpoint.weights),
                                  sources_of(checkpoint.optimizer), checkpoint.state},
                         options);
}

fs::path save_checkpoint(const fs::path& folder, const Snapshot& snapshot,
                         const SaveOptions& options) {
  const json state = parse_json(snapshot.state, "state of a checkpoint");
  require(state.is_object(), ErrorKind::invalid_argument,
          "the state of a checkpoint is not a JSON object: {}", json_excerpt(state));
  const auto write = [&](const fs::path& into) {
    const FileSummary weights =
        write_safetensors(into / kWeights, snapshot.weights, {{"format", "pt"}});
    const FileSummary optimizer = write_safetensors(into / kOptimizer, snapshot.optimizer);
    json manifest = {{"format", kFormat},
                     {"version", kVersion},
                     {"step", snapshot.step},
                     {"state", state},
                     {"files", {{kWeights, describe(weights)}, {kOptimizer, describe(optimizer)}}}};
    manifest[kChecksum] = checksum_of(manifest);
    write_file_atomically(into / kManifest, manifest.dump(2) + "\n");
  };
  return save_files(folder, snapshot.step, write, options);
}

fs::path save_files(const fs::path& folder, int64_t step,
                    const std::function<void(const fs::path&)>& write, const SaveOptions& options) {
  const fs::path target = folder / folder_name(step);
  const fs::path temporary = hidden(target, kNew), replaced = hidden(target, kOld);
  try {
    sweep(folder);
    fs::create_directories(temporary);
    write(temporary);
    if (fs::exists(target)) fs::rename(target, replaced);
    fs::rename(temporary, target);
    sync_folder(folder);
    fs::remove_all(replaced);
    if (options.best) write_file_atomically(folder / kBest, target.filename().string() + "\n");
    remove_old(folder, options.keep_last);
    return target;
  } catch (const fs::filesystem_error& error) {
    discard(temporary);
    throw io_error(error);
  } catch (...) {
    discard(temporary);
    throw;
  }
}

void sweep(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const bool is_new = path.extension() == kNew, is_old = path.extension() == kOld;
    if (!path.filename().string().starts_with('.') || !(is_new || is_old)) continue;
    const fs::path target = folder / path.stem().string().substr(1);
    if (!step_of(target)) continue;
    if (is_old && !fs::exists(target))
      fs::rename(path, target);
    else
      fs::remove_all(path);
  }
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && step_of(entry.path())) found.push_back(entry.path());
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return step_of(a) < step_of(b); });
  return found;
}

Checkpoint load_checkpoint(const fs::path& path) {
  const fs::path manifest_path = path / kManifest;
  try {
    const json manifest = read_manifest(manifest_path);
    for (const char* name : {kWeights, kOptimizer})
      verify(path / name, manifest.at("files").at(name));
    return {manifest.at("step"), read_safetensors(path / kWeights).tensors,
            read_safetensors(path / kOptimizer).tensors, manifest.at("state").dump()};
  } catch (const json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is incomplete: {}", manifest_path.string(), error.what());
  }
}

std::optional<Newest> load_newest(const fs::path& folder) {
  const std::vector<fs::path> all = list_checkpoints(folder);
  if (all.empty()) return std::nullopt;
  std::vector<std::string> refused;
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    try {
      return Newest{load_checkpoint(*path), *path, std::move(refused)};
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  }
  fail(ErrorKind::corrupt, "[{}] holds no checkpoint that can be used:\n  {}", folder.string(),
       join(refused, "\n  "));
}

Checkpoint checkpoint_at(const fs::path& folder) {
  if (fs::exists(folder / kManifest)) return load_checkpoint(folder);
  const fs::path inner = folder / "checkpoints";
  auto newest = load_newest(fs::is_directory(inner) ? inner : folder);
  require(newest.has_value(), ErrorKind::not_found, "[{}] holds no checkpoint", folder.string());
  for (const std::string& reason : newest->refused)
    log(LogLevel::warning, "{}; {} is used instead", reason, newest->path.string());
  return std::move(newest->checkpoint);
}

std::optional<fs::path> best_checkpoint(const fs::path& folder) {
  if (!fs::exists(folder / kBest)) return std::nullopt;
  const fs::path path = folder / std::string(trim(read_file(folder / kBest, 4096)));
  if (!step_of(path) || !fs::is_directory(path)) return std::nullopt;
  return path;
}

}  // namespace artel::checkpoint
