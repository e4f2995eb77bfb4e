#include "artel/ps/cut.h"
#include "artel/ps/placement.h"
#include "artel/ps/report.h"
#include "artel/ps/setup.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::ps_text {
namespace {

template <typename T>
void read_twice(std::string_view text, T (*from)(std::string_view)) {
  const std::string written = ps::to_text(from(text));
  require(ps::to_text(from(written)) == written, ErrorKind::internal,
          "a text changed when it was written and read:\n{}", written);
}

}  // namespace

// Texts exchanged by servers and workers; the first byte selects the kind.
void read(const Bytes& bytes) {
  if (bytes.data.empty()) return;
  const std::string_view text = bytes.text().substr(1);
  with_name(bytes, [&] {
    switch (bytes.text()[0]) {
      case 'f':
        return read_twice(text, ps::frozen_from_text);
      case 'h':
        return read_twice(text, ps::holdings_from_text);
      case 'p':
        return read_twice(text, ps::placements_from_text);
      case 's':
        return read_twice(text, ps::setup_from_text);
      case 'r':
        return read_twice(text, ps::report_from_text);
      default:
        break;
    }
  });
}

std::vector<std::string> seeds() {
  return {"f" + ps::to_text(ps::Frozen{.updates = 7, .finished = {4, ps::Frozen::kLost}}),
          "h" + ps::to_text(std::vector<ps::Holding>{{.range = 1, .changes = 7, .begun = true}}),
          "p" + ps::to_text(std::vector<ps::Placement>{{.primary = 1, .copies = {0, 2}}}),
          "s" + ps::to_text(ps::Setup{.keys = {0, 4},
                                      .segments = {{.name = "w", .keys = {0, 4}}},
                                      .workers = {{.number = 2, .finished = 3}}}),
          "r" + ps::to_text(ps::Report{.staleness = {{0, 1}}})};
}

}  // namespace artel::fuzz::ps_text
