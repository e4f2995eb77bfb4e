// Arguments that several commands share.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace artel::cli {

// A check of an option's number.
inline CLI::Validator at_least(double smallest) {
  return CLI::Validator(
      [smallest](std::string& text) {
        double number = 0;
        if (CLI::detail::lexical_cast(text, number) && number >= smallest) return std::string();
        return fmt::format("got '{}', expected a number of at least {}", text, smallest);
      },
      "");
}

// `--set KEY=VALUE`, any number of times.
inline void add_overrides(CLI::App* command, std::vector<std::string>& overrides) {
  command->add_option("--set", overrides, "Override a key of the configuration; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace artel::cli
