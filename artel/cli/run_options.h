// Arguments that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace artel::cli {

// `--set KEY=VALUE`, any number of times.
inline void add_overrides(CLI::App* command, std::vector<std::string>& overrides) {
  command->add_option("--set", overrides, "Override a key of the configuration; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace artel::cli
