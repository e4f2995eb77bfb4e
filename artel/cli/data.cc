#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/data/class_balance.h"
#include "artel/data/fetch.h"
#include "artel/data/sets.h"
#include "artel/data/tables/sparse_sample_maker.h"
#include "artel/data/tables/table_report.h"
#include "artel/observe/table.h"
#include "artel/run/config/fetch.h"
#include "artel/run/config/setup.h"

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
    table.add({entry.name, entry.description, folder ? folder->string() : "not on this machine"});
  }
  fmt::print("{}", table.text());
  println("own data, with a path: set = \"{}\"", join(data::kinds_of_own_data(), "\", \""));
}

void show_columns(const RunConfig& config) {
  require(!config.data.path.empty(), ErrorKind::invalid_argument,
          "the data set 'csv' needs a path; give --path, or set data.path");
  const data::Table table =
      data::read_csv(config.data.path, {.decimal_comma = config.data.decimal_comma});
  observe::Table lines({"column", "use", "missing", "content", "warning"});
  for (const data::ColumnReport& column : data::describe_columns(table, table_options(config)))
    lines.add(
        {column.name, column.use, format_count(column.missing), column.content, column.warning});
  fmt::print("{}", lines.text());
}

void show(const Arguments& arguments) {
  RunConfig config;
  if (arguments.shown.ends_with(".toml")) {
    config = read_config(arguments.shown, arguments.overrides);
  } else {
    config = default_config(arguments.overrides);
    config.data.set = arguments.shown;
  }
  if (!arguments.path.empty()) config.data.path = arguments.path;
  if (config.data.set == "csv") {
    show_columns(config);
    if (config.data.target.empty()) {
      println(
          "no target is chosen, so it is the last column; choose one with --set data.target=NAME");
      try {
        open_data(config);
      } catch (const Error& error) {
        println("{}", error.what());
        return;
      }
    }
  }
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  println("{}: {}, inputs {} {}", config.data.set, sizes_of(data), to_string(layout.input_type),
          to_string(layout.input));
  if (layout.target_kind != data::TargetKind::classes) {
    println("targets: {}", layout.target_kind == data::TargetKind::values ? "values" : "none");
    return;
  }
  std::vector<std::string> title = {"class", "training"};
  std::vector<std::vector<int64_t>> counts = {data::class_counts(*data.train)};
  if (data.validation) {
    title.emplace_back("validation");
    counts.push_back(data::class_counts(*data.validation));
  }
  title.emplace_back("test");
  counts.push_back(data::class_counts(*data.test));
  observe::Table table(title);
  for (int64_t i = 0; i < layout.classes; ++i) {
    std::vector<std::string> row = {class_name(layout, i)};
    for (const std::vector<int64_t>& part : counts) row.push_back(format_count(part[i]));
    table.add(row);
  }
  fmt::print("{}", table.text());
}

struct Making {
  std::string path;
  data::SparseMakerOptions options;
};

}  // namespace

void add_data(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("data", "Download, list, and inspect data sets");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  artel data list\n"
      "  artel data get mnist cifar10\n"
      "  artel data show fashion_mnist\n"
      "  artel data show csv --path iris.csv --set data.target=species");

  CLI::App* getting = command->add_subcommand("get", "Download, verify, and unpack data sets");
  getting->add_option("SET", arguments->names, "Names from `artel data list`")->required();
  getting->footer("Example:\n  artel data get mnist");
  getting->callback([arguments] { get(*arguments); });

  CLI::App* listing = command->add_subcommand("list", "List the available data sets");
  listing->footer("Example:\n  artel data list");
  listing->callback(list);

  const auto making = std::make_shared<Making>();
  CLI::App* maker = command->add_subcommand("make", "Write synthetic sparse samples (libsvm)");
  maker->add_option("FILE", making->path, "File to write")->required();
  maker->add_option("--rows", making->options.rows, "Number of samples")->capture_default_str();
  maker->add_option("--features", making->options.features, "Number of features")
      ->capture_default_str();
  maker
      ->add_option("--nonzeros", making->options.nonzeros,
                   "Approximate number of values per sample")
      ->capture_default_str();
  maker->add_option("--seed", making->options.seed, "Random seed")->capture_default_str();
  maker->footer("Example:\n  artel data make sparse.libsvm --rows 100000 --features 10000000");
  maker->callback([making] { data::make_sparse_samples(making->path, making->options); });

  CLI::App* showing =
      command->add_subcommand("show", "Show samples, shapes, and classes of a data set");
  showing
      ->add_option("SET", arguments->shown,
                   "Name or kind of a data set, or a configuration (.toml)")
      ->required();
  showing->add_option("--path", arguments->path, "Folder or file of the data")->type_name("PATH");
  add_overrides(showing, arguments->overrides);
  showing->footer("Example:\n  artel data show csv --path iris.csv --set data.target=species");
  showing->callback([arguments] { show(*arguments); });
}

}  // namespace artel::cli
