// The program, its configuration keys, and its version.
#include "artel/cli/program.h"

#include <algorithm>

#include "artel/base/version.h"
#include "artel/cluster/launch.h"
#include "artel/exec/instructions.h"
#include "artel/run/config/config.h"
#include "interop.h"

namespace artel::python {
namespace {

// `program` are the words that start this program.
int run_program(const std::vector<std::string>& program,
                const std::vector<std::string>& arguments) {
  set_own_command(program, arguments);
  std::vector<std::string> words = {"artel"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const nb::gil_scoped_release without_gil;
  return cli::run(static_cast<int>(words.size()), pointers.data());
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const KeyDescription& key : config_keys()) names.push_back(key.name);
  for (const StrategyDescription& strategy : config_strategies())
    for (const KeyDescription& key : strategy.keys)
      if (std::ranges::find(names, key.name) == names.end()) names.push_back(key.name);
  return names;
}

}  // namespace

void add_program(nb::module_& module) {
  module.attr("__version__") = std::string(kHeaderVersion);
  module.def("run_program", run_program, nb::arg("program"), nb::arg("arguments"));
  module.def("key_names", key_names);
  module.def("instructions", [] { return std::string(instruction_names()[best_instructions()]); });
}

}  // namespace artel::python
