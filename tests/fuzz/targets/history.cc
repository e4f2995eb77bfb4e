#include "artel/train/loop/history.h"

#include "tests/fuzz/target.h"

namespace artel::fuzz::history {

// The history that a newcomer receives.
void read(const Bytes& bytes) {
  with_name(bytes, [&] {
    const std::string written = to_text(history_from_text(bytes.text()));
    require(to_text(history_from_text(written)) == written, ErrorKind::internal,
            "a history changed when it was written and read:\n{}", written);
  });
}

std::vector<std::string> seeds() {
  return {to_text(History{
      .seconds = 2.5,
      .samples = 70,
      .changes = {{.gone = {{{.number = 1, .host = "a", .process = 7, .door = ""}, "ended"}},
                   .came = {{.number = 3, .host = "b", .process = 8, .door = "", .place = 1}},
                   .staying = {0, 2},
                   .step = 4,
                   .at = 1.5}}})};
}

}  // namespace artel::fuzz::history
