#include "artel/run/folder/run_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/data/text/tokenizer.h"
#include "artel/run/folder/run_elsewhere.h"

namespace artel {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kFolderVersion = 1;  // of all files in it; the first runs did not write theirs
constexpr uint64_t kMostLayoutBytes = 16 << 20;
constexpr unsigned kPrivate = 0600;

RunFolder numbered(const std::string& stem, int number) {
  return RunFolder(fs::path("runs") / (number == 1 ? stem : fmt::format("{}-{}", stem, number)));
}

// Empty if another process has claimed the folder; `holder` is then set to its name.
std::optional<ClaimedFolder> claim(const RunFolder& folder, std::string& holder) {
  require(!fs::exists(folder.path()) || fs::is_directory(folder.path()),
          ErrorKind::invalid_argument, "[{}] is a file, expected a folder for the run",
          folder.path().string());
  const bool is_new = fs::create_directories(folder.path());
  try {
    return ClaimedFolder{folder, is_new,
                         std::make_unique<FileLock>(folder.lock(), Deadline::after(0)), false};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::unsupported) {
      log(LogLevel::warning, "{}; a second process that writes there will not be detected",
          error.what());
      return ClaimedFolder{folder, is_new, nullptr, false};
    }
    if (error.kind() != ErrorKind::timeout) throw;
    holder = error.what();
    return {};
  }
}

}  // namespace

bool RunFolder::used() const { return fs::exists(config()) || fs::exists(checkpoints()); }

void RunFolder::save_layout(const data::SampleLayout& layout,
                            const std::string& fingerprint) const {
  Json parts = Json::array();
  for (const data::InputPart& part : layout.parts)
    parts.push_back({{"name", part.name}, {"shape", part.shape.extents()}});
  const Json json = {{"version", kFolderVersion},
                     {"input", layout.input.extents()},
                     {"parts", parts},
                     {"type", to_string(layout.input_type)},
                     {"classes", layout.classes},
                     {"class_names", layout.class_names},
                     {"first_index", layout.first_index},
                     {"fingerprint", fingerprint}};
  write_file_atomically(samples(), json.dump(2) + "\n");
  if (layout.tokenizer) layout.tokenizer->save(tokenizer());
  if (layout.table) layout.table->save(table());
}

std::string RunFolder::resume_note(int64_t step) const {
  return step > 0 ? fmt::format("resuming {} after step {}", path_.string(), step)
                  : fmt::format("nothing to resume in {}: starting", path_.string());
}

void RunFolder::save_workers(const RunWorkers& workers) const {
  Json json = {{"transport", workers.transport},
               {"token", workers.token},
               {"encrypt", workers.encrypt},
               {"address", workers.address}};
  json["workers"] = Json::array();
  for (const RunWorkers::Worker& worker : workers.workers)
    json["workers"].push_back({{"worker", worker.number},
                               {"host", worker.host},
                               {"process", worker.process},
                               {"door", worker.door}});
  write_file_atomically(this->workers(), json.dump(2) + "\n", kPrivate);
}

RunWorkers RunFolder::load_workers() const {
  require(fs::exists(workers()), ErrorKind::not_found,
          "[{}] no workers of this run can be found: it has ended, or is not elastic{}",
          path_.string(), hint_elsewhere(path_));
  const std::string text = read_file(workers(), kMostLayoutBytes);
  try {
    const Json json = parse_json(text, workers().string());
    RunWorkers found = {.transport = json.at("transport"),
                        .token = json.at("token"),
                        .encrypt = json.value("encrypt", false),
                        .address = json.value("address", ""),
                        .workers = {}};
    for (const Json& worker : json.at("workers"))
      found.workers.push_back(
          {worker.at("worker"), worker.at("host"), worker.at("process"), worker.at("door")});
    return found;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", workers().string(), error.what());
  }
}

std::string RunFolder::fingerprint() const {
  if (!fs::exists(samples())) return "";
  const Json json = parse_json(read_file(samples(), kMostLayoutBytes), samples().string());
  return json.is_object() ? json.value("fingerprint", "") : "";
}

data::SampleLayout RunFolder::load_layout() const {
  const std::string text = read_file(samples(), kMostLayoutBytes);
  try {
    const Json json = parse_json(text, samples().string());
    const int version = json.value("version", 1);
    require(version == kFolderVersion, ErrorKind::unsupported,
            "[{}] folder of a run: got version {}, expected {}; try the artel that wrote it",
            samples().string(), version, kFolderVersion);
    data::SampleLayout layout;
    layout.input = Shape(json.at("input").get<std::vector<int64_t>>());
    layout.input_type = dtype_from_string(json.at("type").get<std::string>());
    layout.classes = json.at("classes");
    layout.class_names = json.at("class_names").get<std::vector<std::string>>();
    for (const Json& part : json.value("parts", Json::array()))
      layout.parts.push_back(
          {part.at("name"), Shape(part.at("shape").get<std::vector<int64_t>>())});
    layout.first_index = json.value("first_index", 1);
    if (fs::exists(table())) layout.table = data::TableEncoder::load(table());
    if (fs::exists(tokenizer())) layout.tokenizer = data::open_tokenizer(tokenizer());
    return layout;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", samples().string(), error.what());
  }
}

std::optional<RunFolder> find_run(const fs::path& path) {
  const fs::path start = fs::absolute(path).lexically_normal();
  for (fs::path folder = start; folder != folder.parent_path(); folder = folder.parent_path()) {
    const RunFolder candidate(folder);
    if (fs::exists(candidate.config()) && fs::exists(candidate.samples())) return candidate;
  }
  // A link may lead into one.
  std::error_code failed;
  const fs::path real = fs::canonical(start, failed);
  if (!failed && real != start) return find_run(real);
  return {};
}

namespace {

// A name must stay below runs/ and fit on a line.
void check_name(const std::string& name) {
  const fs::path path(name);
  const bool leads_out =
      path.is_absolute() || std::any_of(path.begin(), path.end(), [](const fs::path& part) {
        return part == "." || part == "..";
      });
  require(!leads_out && printable_line(name) == name, ErrorKind::invalid_argument,
          "--name: got '{}', expected the name of a folder below runs; --out takes any path",
          printable_line(name));
}

}  // namespace

RunFolder choose_folder(const FolderRequest& request) {
  require(request.out.empty() || request.name.empty(), ErrorKind::invalid_argument,
          "got both --out and --name, expected one of them");
  if (!request.out.empty() || !request.name.empty()) {
    check_name(request.name);
    const RunFolder folder(request.out.empty() ? fs::path("runs") / request.name
                                               : fs::path(request.out));
    require(request.resume || !folder.used(), ErrorKind::invalid_argument,
            "[{}] the folder already contains a run; continue it with --resume, or choose another "
            "--out "
            "or --name",
            folder.path().string());
    return folder;
  }
  const std::string stem = request.config.stem().string();
  int number = 1;
  while (numbered(stem, number).used()) ++number;
  return numbered(stem, request.resume && number > 1 ? number - 1 : number);
}

ClaimedFolder claim_folder(const FolderRequest& request) {
  if (request.resume || !request.out.empty() || !request.name.empty()) {
    const RunFolder folder = choose_folder(request);
    std::string holder;
    std::optional<ClaimedFolder> claimed = claim(folder, holder);
    require(claimed.has_value(), ErrorKind::invalid_argument,
            "{}; two processes cannot write to one run: wait for it, or choose another --out or "
            "--name",
            holder);
    choose_folder(request);  // which may have been used in the meantime
    return std::move(*claimed);
  }
  const std::string stem = request.config.stem().string();
  for (int number = 1;; ++number) {
    std::string holder;
    if (numbered(stem, number).used()) continue;
    std::optional<ClaimedFolder> claimed = claim(numbered(stem, number), holder);
    if (claimed && !claimed->folder.used()) return std::move(*claimed);
  }
}

void require_run_to_resume(const RunFolder& folder) {
  require(folder.used(), ErrorKind::not_found, "[{}] no run to resume; try without --resume",
          folder.path().string());
}

ClaimedFolder take_over_folder(const RunFolder& folder) {
  fs::create_directories(folder.path());
  return {folder, /*is_new=*/false, FileLock::take_over(folder.lock()), /*begun=*/true};
}

}  // namespace artel
