#include "artel/run/folder/identity.h"

#include <fmt/format.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/file_lock.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/cluster/token.h"
#include "artel/run/folder/resume.h"

namespace artel {

namespace fs = std::filesystem;

std::string new_identity() { return random_token(); }

std::string identity_of(const RunFolder& folder) {
  if (fs::exists(folder.identity())) return std::string(trim(read_file(folder.identity())));
  if (!fs::exists(folder.config())) return "";
  const std::string settings = join(deciding_settings(read_config(folder.config())), "\n");
  return fmt::format("settings-{:016x}", hash_name(settings));
}

void save_identity(const RunFolder& folder, const std::string& identity) {
  write_file_atomically(folder.identity(), identity + "\n");
}

fs::path path_aside(const RunFolder& folder) {
  const fs::path whole = fs::absolute(folder.path()).lexically_normal();
  const fs::path named = whole.has_filename() ? folder.path() : folder.path().parent_path();
  for (int number = 1;; ++number) {
    const fs::path aside =
        named.string() + (number == 1 ? ".replaced" : fmt::format(".replaced-{}", number));
    if (!fs::exists(aside)) return aside;
  }
}

void make_room(const RunFolder& folder, const std::string& identity) {
  if (!folder.used() || identity_of(folder) == identity) return;
  const std::optional<std::string> holder =
      fs::exists(folder.lock()) ? FileLock::holder_of(folder.lock()) : std::nullopt;
  require(!holder, ErrorKind::invalid_argument,
          "[{}] on {} holds a different run, which {} is writing; try another --out or --name",
          folder.path().string(), host_name(), holder.value_or(""));
  const fs::path aside = path_aside(folder);
  fs::rename(folder.path(), aside);
  log(LogLevel::warning, "{} on {} held a different run, which was moved to {}",
      folder.path().string(), host_name(), aside.string());
}

}  // namespace artel
