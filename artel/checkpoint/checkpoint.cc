#include "artel/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/base/zip.h"
#include "artel/checkpoint/safetensors.h"

namespace artel::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kManifest = "checkpoint.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kBest = "best";
constexpr const char* kFormat = "artel checkpoint";
constexpr int kVersion = 1;
constexpr std::string_view kPrefix = "step-";
constexpr uint64_t kMaxManifest = 64 << 20;

std::string folder_name(int64_t step) { return fmt::format("{}{:09}", kPrefix, step); }

// The step in a folder's name, if it is the name of a checkpoint.
std::optional<int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

json describe(const fs::path& path) {
  const MappedFile file(path);
  return {{"bytes", file.bytes().size()}, {"crc32", fmt::format("{:08x}", crc32(file.bytes()))}};
}

void verify(const fs::path& path, const json& expected) {
  const json found = describe(path);
  for (const char* property : {"bytes", "crc32"})
    require(found.at(property) == expected.at(property), ErrorKind::corrupt,
            "[{}] is truncated or was changed: got {} {}, expected {}", path.string(), property,
            found.at(property).dump(), expected.at(property).dump());
}

json parse_state(const std::string& text) {
  json state = json::parse(text, nullptr, false);
  require(state.is_object(), ErrorKind::invalid_argument,
          "the state of a checkpoint is not a JSON object: {}", text.substr(0, 100));
  return state;
}

void remove_old(const fs::path& folder, int keep_last) {
  if (keep_last <= 0) return;
  const std::vector<fs::path> all = list_checkpoints(folder);
  const auto best = best_checkpoint(folder);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < all.size(); ++i)
    if (!best || all[i] != *best) fs::remove_all(all[i]);
}

}  // namespace

fs::path save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                         const SaveOptions& options) {
  const json state = parse_state(checkpoint.state);
  const fs::path target = folder / folder_name(checkpoint.step);
  const fs::path temporary = folder / ("." + folder_name(checkpoint.step) + ".new");
  const fs::path replaced = folder / ("." + folder_name(checkpoint.step) + ".old");
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  write_safetensors(temporary / kWeights, checkpoint.weights, {{"format", "pt"}});
  write_safetensors(temporary / kOptimizer, checkpoint.optimizer);
  const json manifest = {{"format", kFormat},
                         {"version", kVersion},
                         {"step", checkpoint.step},
                         {"state", state},
                         {"files",
                          {{kWeights, describe(temporary / kWeights)},
                           {kOptimizer, describe(temporary / kOptimizer)}}}};
  write_file_atomically(temporary / kManifest, manifest.dump(2) + "\n");

  fs::remove_all(replaced);
  if (fs::exists(target)) fs::rename(target, replaced);
  fs::rename(temporary, target);
  sync_folder(folder);
  fs::remove_all(replaced);
  if (options.best) write_file_atomically(folder / kBest, target.filename().string() + "\n");
  remove_old(folder, options.keep_last);
  return target;
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
  const json manifest = json::parse(read_file(manifest_path, kMaxManifest), nullptr, false);
  require(manifest.is_object() && manifest.value("format", json()) == kFormat, ErrorKind::corrupt,
          "[{}] is truncated or not a checkpoint of Artel", manifest_path.string());
  try {
    require(manifest.at("version") == kVersion, ErrorKind::unsupported,
            "[{}] has version {}, expected {}", manifest_path.string(),
            manifest.at("version").dump(), kVersion);
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
  return std::move(newest->checkpoint);
}

std::optional<fs::path> best_checkpoint(const fs::path& folder) {
  if (!fs::exists(folder / kBest)) return std::nullopt;
  const fs::path path = folder / std::string(trim(read_file(folder / kBest, 4096)));
  if (!step_of(path) || !fs::is_directory(path)) return std::nullopt;
  return path;
}

}  // namespace artel::checkpoint
