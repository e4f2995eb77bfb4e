#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/nn/summary.h"
#include "artel/observe/table.h"
#include "artel/transfer/bases.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> names;  // of `get`
  std::string shown;               // of `info`
};

void get_models(const Arguments& arguments) {
  for (const std::string& name : arguments.names) {
    const transfer::BaseDescription& base = transfer::find_base(name);
    const std::string folder = transfer::get_base(base).string();
    const std::optional<double> difference = transfer::check_base(base);
    println("{}: {}{}", name, folder,
            difference ? fmt::format(" (matches the published outputs to {:.0e})", *difference)
                       : std::string());
  }
}

void list_bases() {
  observe::Table table({"base", "what", "features", "licence", "where"});
  for (const transfer::BaseDescription& base : transfer::base_list()) {
    const auto folder = transfer::find_base_folder(base);
    table.add({base.name, base.text, format_count(base.features), base.licence,
               folder ? folder->string() : "not on this machine"});
  }
  fmt::print("{}", table.text());
  println("`artel info` lists networks to train from scratch.");
}

std::string source_text(const data::Source& source) {
  std::vector<std::string> files;
  for (const data::RemoteFile& file : source.files) files.push_back(file.from);
  const std::string all = join(files, ", ");
  return source.kind == data::SourceKind::npm ? "npm " + all : source.address + all;
}

std::string numbers(const std::vector<float>& values) {
  std::vector<std::string> parts;
  for (const float value : values) parts.push_back(fmt::format("{:.4g}", value));
  return join(parts, " ");
}

void show_model(const Arguments& arguments) {
  const transfer::BaseDescription& base = transfer::find_base(arguments.shown);
  const auto folder = transfer::find_base_folder(base);
  observe::Table table({base.name, base.text});
  table.add({"network", base.model.name});
  table.add({"trained on", base.trained_on});
  table.add({"published by", base.source});
  table.add({"licence", base.licence});
  table.add({"input", to_string(base.sample.shape)});
  if (base.sample.dtype == DType::f32) {
    table.add(
        {"pictures", fmt::format("scaled to {}, the middle {} x {}, red, green, blue",
                                 base.pictures.scaled, base.pictures.size, base.pictures.size)});
    table.add({"mean", numbers(base.pictures.means)});
    table.add({"deviation", numbers(base.pictures.deviations)});
  }
  table.add({"features", format_count(base.features)});
  if (!base.head.empty())
    table.add({"head", base.head + (base.headless ? " (not published)" : "")});
  for (size_t i = 0; i < base.files.sources.size(); ++i) {
    const data::Source& source = base.files.sources[i];
    table.add({i == 0 ? "from" : "or from", source_text(source)});
    for (const data::RemoteFile& file : source.files) table.add({"SHA-256", file.digest});
  }
  table.add({"where", folder ? folder->string() : "not on this machine"});
  fmt::print("{}", table.text());
}

}  // namespace

void add_models(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("models", "Download, list, and inspect published networks");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  artel models list\n"
      "  artel models get resnet50_keras faces\n"
      "  artel models info faces");

  CLI::App* getting = command->add_subcommand(
      "get",
      "Download, verify, and convert networks, and compare their outputs with the published ones");
  getting->add_option("BASE", arguments->names, "Names from `artel models list`")->required();
  getting->footer("Example:\n  artel models get resnet50_keras");
  getting->callback([arguments] { get_models(*arguments); });

  CLI::App* listing = command->add_subcommand("list", "List the available networks");
  listing->footer("Example:\n  artel models list");
  listing->callback(list_bases);

  CLI::App* showing = command->add_subcommand(
      "info", "Show a network's licence, source, digests, and picture format");
  showing->add_option("BASE", arguments->shown, "Name from `artel models list`")->required();
  showing->footer("Example:\n  artel models info faces");
  showing->callback([arguments] { show_model(*arguments); });
}

}  // namespace artel::cli
