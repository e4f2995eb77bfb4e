// Arguments that several commands share.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "artel/run/folder/saved_run.h"

namespace artel::cli {

// A check for a numeric option.
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

// `--token` and `--token-file`, for given_token of cluster/token.h.
inline void add_token(CLI::App* command, std::string& token, std::string& file,
                      const std::string& help,
                      const std::string& file_help =
                          "File with the token (default: the environment variable "
                          "ARTEL_TOKEN)") {
  command->add_option("--token", token, help + "; visible to other users of this machine");
  command->add_option("--token-file", file, file_help)->type_name("FILE")->excludes("--token");
}

// The trained network that a command uses. `--set` goes to `overrides`.
inline void add_source(CLI::App* command, RunSource& source, std::vector<std::string>& overrides) {
  command
      ->add_option("SOURCE", source.path,
                   "Run (its newest checkpoint is used), checkpoint or weight file")
      ->required();
  command->add_flag("--best", source.best,
                    "The best checkpoint of the run (by train.best_by) instead of the newest");
  command->add_flag("--trained", source.trained,
                    "Trained weights, even if the run has averaged ones (train.optimizer.average)");
  command
      ->add_option("--config", source.config_file,
                   "Configuration that describes model and data, for a weight file")
      ->type_name("FILE");
  add_overrides(command, overrides);
}
inline void add_source(CLI::App* command, RunSource& source) {
  add_source(command, source, source.overrides);
}

}  // namespace artel::cli
