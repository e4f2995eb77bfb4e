#include "artel/run/config/fetch.h"

#include <unistd.h>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"

namespace artel {
namespace {

// One live line in a terminal, one line for each download elsewhere.
class FetchLine {
 public:
  ~FetchLine() {
    if (live_) tell(stderr, "\n");
  }
  void operator()(const data::FetchProgress& progress) {
    if (terminal_) {
      tell(stderr, fmt::format("\r{}  {}\x1b[K", progress.what,
                               format_bytes(static_cast<double>(progress.bytes))));
      live_ = true;
    } else if (progress.what != last_) {
      log(LogLevel::info, "fetching {}", progress.what);
    }
    last_ = progress.what;
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool live_ = false;
  std::string last_;
};

}  // namespace

std::filesystem::path fetch_entry(const data::CatalogueEntry& entry) {
  if (const auto folder = data::find_set(entry)) return *folder;
  FetchLine line;
  return data::get_set(entry,
                       {.progress = [&](const data::FetchProgress& progress) { line(progress); }});
}

std::filesystem::path fetch_set(const std::string& name) {
  return fetch_entry(data::find_entry(name));
}

}  // namespace artel
