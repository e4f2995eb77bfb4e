#include "artel/run/config.h"

#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> overrides;
  bool markdown = false;
};

void print_config(const Arguments& arguments) {
  if (arguments.markdown)
    fmt::print("{}", config_markdown());
  else if (arguments.file.empty())
    fmt::print("{}", to_toml(default_config(arguments.overrides)));
  else
    fmt::print("{}", to_toml(read_config(arguments.file, arguments.overrides)));
}

}  // namespace

void add_config(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("config", "Show a configuration with all its keys and defaults");
  command->add_option("FILE", arguments->file, "Configuration (TOML); without it, the defaults");
  add_overrides(command, arguments->overrides);
  command->add_flag("--markdown", arguments->markdown, "Print the reference page of all keys");
  command->footer(
      "Examples:\n"
      "  artel config examples/mnist.toml --set train.epochs=2\n"
      "  artel config --markdown > docs/configuration.md");
  command->callback([arguments] { print_config(*arguments); });
}

}  // namespace artel::cli
