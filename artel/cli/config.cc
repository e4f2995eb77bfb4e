#include "artel/run/config/config.h"

#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> overrides;
  bool markdown = false, strategies = false;
};

// Text in lines of at most 100 characters, after an indent.
std::string wrapped(std::string_view text, size_t indent) {
  std::string lines;
  size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column == 0 || column + 1 + word.size() > 100) {
      lines += (column == 0 ? "" : "\n") + std::string(indent, ' ');
      column = indent;
    } else {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + '\n';
}

// Names and keys of all strategies, as each declares them.
std::string strategies_help() {
  std::string text = "Strategies (--set cluster.strategy=NAME):\n";
  for (const StrategyDescription& strategy : config_strategies()) {
    text += fmt::format("  {}\n{}",
                        strategy.names.empty() ? strategy.title : join(strategy.names, ", "),
                        wrapped(strategy.help, 6));
    for (const KeyDescription& key : strategy.keys)
      text += fmt::format("    {} = {}\n{}", key.name, key.default_value, wrapped(key.help, 6));
  }
  return text;
}

void print_config(const Arguments& arguments) {
  if (arguments.markdown)
    fmt::print("{}", config_markdown());
  else if (arguments.strategies)
    fmt::print("{}", strategies_help());
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
  command->add_flag("--strategies", arguments->strategies,
                    "Explain the strategies of training on several workers, with their keys");
  command->footer(
      "Examples:\n"
      "  artel config --strategies\n"
      "  artel config examples/mnist.toml --set train.epochs=2\n"
      "  artel config --markdown > docs/configuration.md");
  command->callback([arguments] { print_config(*arguments); });
}

}  // namespace artel::cli
