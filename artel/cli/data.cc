#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/data/fetch.h"
#include "artel/data/sparse_sample_maker.h"
#include "artel/observe/table.h"
#include "artel/run/fetch.h"
#include "artel/run/setup.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> names;  // of `get`
  std::string shown;               // set or configuration
  std::string path;
  std::vector<std::string> overrides;
};

void get(const Arguments& arguments) {
  for (const std::string& name : arguments.names) println("{}: {}", name, fetch_set(name).string());
}

void list() {
  observe::Table table({"set", "what", "where"});
  for (const data::CatalogueEntry& entry : data::catalogue()) {
    const auto folder = data::find_set(entry);
    table.add({entry.name, entry.description, folder ? folder->string() : "not here yet"});
  }
  fmt::print("{}", table.text());
  println(
      "own data: set = \"folder\", \"csv\", \"npz\", \"npy\", \"libsvm\", \"text\" or "
      "\"labelled_text\", with a path");
}

// How many samples each class has.
std::vector<int64_t> count_classes(const data::Dataset& set) {
  const data::SampleLayout& layout = set.layout();
  std::vector<int64_t> counts(layout.classes);
  std::vector<std::byte> input(layout.input_bytes());
  std::vector<int32_t> target(layout.target.elements());
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, input, std::as_writable_bytes(std::span(target)));
    for (const int32_t label : target)
      if (label >= 0) ++counts[label];  // masked texts have none at most positions
  }
  return counts;
}

void show(const Arguments& arguments) {
  RunConfig config;
  if (arguments.shown.ends_with(".toml")) {
    config = read_config(arguments.shown, arguments.overrides);
  } else {
    config = parse_config("", "defaults", arguments.overrides);
    config.data.set = arguments.shown;
  }
  if (!arguments.path.empty()) config.data.path = arguments.path;
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  println("{}: {} training and {} test samples, inputs {} {}", config.data.set,
          format_count(data.split.train->size()), format_count(data.split.test->size()),
          to_string(layout.input_type), to_string(layout.input));
  if (layout.target_kind != data::TargetKind::classes) {
    println("targets: {}", layout.target_kind == data::TargetKind::values ? "values" : "none");
    return;
  }
  const std::vector<int64_t> train = count_classes(*data.split.train);
  const std::vector<int64_t> test = count_classes(*data.split.test);
  observe::Table table({"class", "training", "test"});
  for (int64_t i = 0; i < layout.classes; ++i)
    table.add({class_name(layout, i), format_count(train[i]), format_count(test[i])});
  fmt::print("{}", table.text());
}

struct Making {
  std::string path;
  data::SparseMakerOptions options;
};

}  // namespace

void add_data(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("data", "Get, list and look at data sets");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  artel data list\n"
      "  artel data get mnist cifar10\n"
      "  artel data show fashion_mnist\n"
      "  artel data show csv --path iris.csv --set data.target=species");

  CLI::App* getting = command->add_subcommand("get", "Fetch, verify and unpack sets by name");
  getting->add_option("SET", arguments->names, "Names, as `artel data list` shows them")
      ->required();
  getting->footer("Example:\n  artel data get mnist");
  getting->callback([arguments] { get(*arguments); });

  CLI::App* listing = command->add_subcommand("list", "The sets that can be fetched");
  listing->footer("Example:\n  artel data list");
  listing->callback(list);

  const auto making = std::make_shared<Making>();
  CLI::App* maker = command->add_subcommand("make", "Write made-up sparse samples (libsvm)");
  maker->add_option("FILE", making->path, "Where to")->required();
  maker->add_option("--rows", making->options.rows, "Samples")->capture_default_str();
  maker->add_option("--features", making->options.features, "Features")->capture_default_str();
  maker->add_option("--nonzeros", making->options.nonzeros, "Values of a sample, about")
      ->capture_default_str();
  maker->add_option("--seed", making->options.seed, "Another seed, other samples")
      ->capture_default_str();
  maker->footer("Example:\n  artel data make sparse.libsvm --rows 100000 --features 10000000");
  maker->callback([making] { data::make_sparse_samples(making->path, making->options); });

  CLI::App* showing = command->add_subcommand("show", "Samples, shapes and classes of a set");
  showing->add_option("SET", arguments->shown, "Name or kind of a set, or a configuration (.toml)")
      ->required();
  showing->add_option("--path", arguments->path, "Folder or file of the data")->type_name("PATH");
  add_overrides(showing, arguments->overrides);
  showing->footer("Example:\n  artel data show csv --path iris.csv --set data.target=species");
  showing->callback([arguments] { show(*arguments); });
}

}  // namespace artel::cli
