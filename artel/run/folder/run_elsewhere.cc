#include "artel/run/folder/run_elsewhere.h"

#include <unistd.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// The first line is the machine, the second one the path.
constexpr const char* kWhere = "where.txt";

fs::path notes_folder() { return data::data_folder() / "elsewhere"; }

// Machines that share a home folder share this one.
fs::path own_note() { return notes_folder() / fmt::format("{}-{}", host_name(), ::getpid()); }

fs::path normal(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

RunElsewhere::RunElsewhere(const fs::path& folder, const std::string& machine,
                           const std::string& config)
    : machine_(machine), here_(own_note()) {
  fs::remove_all(here_.path());  // of a process that was killed
  fs::create_directories(here_.path());
  fs::permissions(here_.path(), fs::perms::owner_all);
  lock_.emplace(here_.lock(), Deadline::after(1));
  write_file_atomically(here_.config(), config);
  write_file_atomically(here_.path() / kWhere, machine + "\n" + normal(folder).string() + "\n");
}

RunElsewhere::~RunElsewhere() {
  std::error_code ignored;
  fs::remove_all(here_.path(), ignored);
}

std::optional<FoundElsewhere> find_run_elsewhere(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(notes_folder(), ignored)) {
    const RunFolder here(entry.path());
    // Those of killed workers, and of other machines, have no holder here.
    if (!fs::exists(here.lock()) || !FileLock::holder_of(here.lock())) continue;
    const fs::path where = entry.path() / kWhere;
    if (!fs::is_regular_file(where, ignored)) continue;
    const std::vector<std::string> lines = split(read_file(where), '\n');
    if (lines.size() < 2 || (!folder.empty() && lines[1] != normal(folder))) continue;
    return FoundElsewhere{.folder = lines[1], .machine = lines[0], .here = entry.path()};
  }
  return {};
}

std::string hint_elsewhere(const fs::path& folder) {
  const auto found = find_run_elsewhere(folder);
  return found ? fmt::format("; it is on {}: run the command there", found->machine) : "";
}

}  // namespace artel
