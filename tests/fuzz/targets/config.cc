#include "artel/run/config/config.h"
#include "artel/base/error.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::config {

// Every readable configuration can be written and read again.
void read(const Bytes& bytes) {
  const RunConfig config = parse_config(
      {reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size()}, bytes.name);
  const std::string written = to_toml(config);
  require(written == to_toml(parse_config(written, "written")), ErrorKind::internal,
          "a configuration changed when it was written and read:\n{}", written);
}

std::vector<std::string> seeds() {
  return {
      to_toml(parse_config("", "defaults")),
      "[data]\nset = \"mnist\"\naugment = [\"flip\", 'crop 28 2']\n[model]\nlayers = [\n"
      "  \"conv 16 3x3 padding 1\", # comment\n  \"residual { conv 16 3x3 | relu }\",\n"
      "  \"dense 10\" ]\n[train]\noptimizer.name = \"adam\"\nmemory_limit = \"1.5 GiB\"\n"
      "schedule = { name = \"multi_step\", milestones = [3, 6.5] }\n[cluster]\ndelay = \"none\"\n"};
}

}  // namespace artel::fuzz::config
