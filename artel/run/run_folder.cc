#include "artel/run/run_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/data/text/tokenizer.h"

namespace artel {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMostLayoutBytes = 16 << 20;

RunFolder numbered(const std::string& stem, int number) {
  return RunFolder(fs::path("runs") / (number == 1 ? stem : fmt::format("{}-{}", stem, number)));
}

}  // namespace

bool RunFolder::used() const { return fs::exists(config()) || fs::exists(checkpoints()); }

void RunFolder::save_layout(const data::SampleLayout& layout) const {
  const Json json = {{"input", layout.input.extents()},
                     {"type", to_string(layout.input_type)},
                     {"classes", layout.classes},
                     {"class_names", layout.class_names}};
  write_file_atomically(samples(), json.dump(2) + "\n");
  if (layout.tokenizer) layout.tokenizer->save(tokenizer());
}

std::string RunFolder::resume_note(const std::string& unit, int64_t done) const {
  return done > 0 ? fmt::format("resuming {} after {} {}", path_.string(), unit, done)
                  : fmt::format("nothing to resume in {}: starting", path_.string());
}

data::SampleLayout RunFolder::load_layout() const {
  const std::string text = read_file(samples(), kMostLayoutBytes);
  try {
    const Json json = Json::parse(text);
    data::SampleLayout layout;
    layout.input = Shape(json.at("input").get<std::vector<int64_t>>());
    layout.input_type = dtype_from_string(json.at("type").get<std::string>());
    layout.classes = json.at("classes");
    layout.class_names = json.at("class_names").get<std::vector<std::string>>();
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
  return {};
}

RunFolder choose_folder(const FolderRequest& request) {
  require(request.out.empty() || request.name.empty(), ErrorKind::invalid_argument,
          "got both --out and --name, expected one of them");
  if (!request.out.empty() || !request.name.empty()) {
    const RunFolder folder(request.out.empty() ? fs::path("runs") / request.name
                                               : fs::path(request.out));
    require(request.resume || !folder.used(), ErrorKind::invalid_argument,
            "[{}] there is a run already; continue it with --resume, or choose another --out or "
            "--name",
            folder.path().string());
    return folder;
  }
  const std::string stem = request.config.stem().string();
  int number = 1;
  while (numbered(stem, number).used()) ++number;
  return numbered(stem, request.resume && number > 1 ? number - 1 : number);
}

}  // namespace artel
