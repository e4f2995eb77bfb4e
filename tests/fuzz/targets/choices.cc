#include "artel/exec/plan/choices.h"

#include "tests/fuzz/target.h"

namespace artel::fuzz::choices {

// choices.txt: what can be read is written as the same again.
void read(const Bytes& bytes) {
  with_name(bytes, [&] {
    const std::string written = to_string(parse_choices(bytes.text()));
    require(to_string(parse_choices(written)) == written, ErrorKind::internal,
            "choices changed when they were written and read:\n{}", written);
  });
}

std::vector<std::string> seeds() {
  KernelChoices choices;
  choices.chosen = {{"conv 3x3 [8, 3, 8, 8]", "winograd"}, {"dense [8, 4]", "blas"}};
  return {to_string(choices)};
}

}  // namespace artel::fuzz::choices
