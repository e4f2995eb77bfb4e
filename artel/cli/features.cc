#include "artel/transfer/features.h"

#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cli/commands.h"
#include "artel/cli/transfer_arguments.h"
#include "artel/cli/workers.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"

namespace artel::cli {
namespace {

struct Arguments {
  transfer::BaseSource base;
  std::string data, out = "features.npz", pooling = "mean", join, on;
  std::vector<std::string> layers;
  int64_t side = 0;
  int workers = 1, threads = 0;
  bool list = false;
};

void list_layers(const transfer::BaseNetwork& base) {
  observe::Table table({"layer", "output"});
  for (const transfer::LayerOutput& layer : transfer::layer_outputs(base.network(), base.sample))
    table.add({layer.name, to_string(layer.type.shape)});
  fmt::print("{}", table.text());
}

void show(const Arguments& arguments, const transfer::Features& features, double seconds) {
  observe::Table table({"layer", "one sample", "training", "test"});
  for (size_t i = 0; i < features.train.layers.size(); ++i) {
    const std::vector<int64_t>& extents = features.train.layers[i].shape().extents();
    const bool joined = i >= features.request.layers.size();
    table.add({joined ? arguments.join : features.request.layers[i],
               to_string(Shape({extents.begin() + 1, extents.end()})),
               format_count(features.train.size()), format_count(features.test.size())});
  }
  fmt::print("{}", table.text());
  const auto samples = static_cast<double>(features.train.size() + features.test.size());
  println("{}: {:.1f} s, {} samples/s", arguments.out, seconds,
          observe::rate_text(samples / std::max(1e-9, seconds)));
}

void features(Arguments& arguments) {
  if (arguments.list) return list_layers(transfer::open_base(arguments.base));
  require(!arguments.data.empty(), ErrorKind::invalid_argument,
          "features: got no DATA, expected a folder of pictures, a file or the name of a data set");
  require(arguments.on.empty() || !arguments.join.empty(), ErrorKind::invalid_argument,
          "--on: got a column without a table; give it with --join FILE.csv");
  if (arguments.workers > 1 && !launched_group()) {
    if (const int code = launch_here({.workers = arguments.workers}); code != 0)
      throw CLI::RuntimeError(code);
    return;
  }
  Cluster cluster = launched_cluster();
  cluster.attempt([&] {
    const transfer::BaseNetwork base = transfer::open_base(arguments.base);
    const DataConfig data = transfer::data_for(base, arguments.data, arguments.side);
    const transfer::FeatureRequest request = {
        .layers = arguments.layers, .pooling = transfer::pooling_by_name(arguments.pooling)};
    observe::Progress progress;
    const Clock::time_point begun = Clock::now();
    transfer::Features features = transfer::extract(
        base, data, request, arguments.threads > 0 ? arguments.threads : cluster.cores(),
        cluster.group(), [&](int64_t done, int64_t samples) {
          if (cluster.rank() == 0) progress.work("features", done, samples);
        });
    if (cluster.rank() > 0) return;
    progress.clear();
    const double seconds = seconds_between(begun, Clock::now());
    features.weights = arguments.base.weights;
    features.overrides = arguments.base.overrides;
    features.side = arguments.side;
    if (!arguments.join.empty()) join_columns(features, arguments.join, arguments.on);
    features.save(arguments.out);
    show(arguments, features, seconds);
  });
}

}  // namespace

void add_features(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "features", "Compute features: outputs of layers of a trained network for samples");
  add_base(command, arguments->base);
  command->add_option("DATA", arguments->data,
                      "Folder of pictures (one subfolder per class), CSV of texts, NPZ, name of a "
                      "data set, or TOML");
  command
      ->add_option("--layer", arguments->layers,
                   "Layer such as layer4; may be repeated (default: the input of the head)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--list", arguments->list, "List the layers of the base with their shapes");
  command->add_option("-o,--out", arguments->out, "File to write (default: features.npz)")
      ->type_name("FILE.npz");
  command
      ->add_option("--pool", arguments->pooling,
                   "Reduction of pixels or tokens to one vector: mean, max, or whole (no "
                   "reduction; default: mean)")
      ->type_name("HOW");
  command->add_option("--size", arguments->side, "Side of the images (default: that of the base)")
      ->type_name("PIXELS")
      ->check(at_least(1));
  command->add_option("--join", arguments->join, "Add the columns of this table to the features")
      ->type_name("FILE.csv");
  command
      ->add_option(
          "--on", arguments->on,
          "With --join: the column with picture names (default: rows in the order of the samples)")
      ->type_name("COLUMN");
  add_workers(command, arguments->workers);
  command->add_option("--threads", arguments->threads, "Cores of each worker")->type_name("N");
  add_overrides(command, arguments->base.overrides);
  command->footer(
      "The file has the arrays x_train, y_train, x_test and y_test (x2_train, ... for further "
      "layers).\n"
      "`artel fit` fits small models on it, and `artel train` reads it as data.set = \"npz\".\n\n"
      "Examples:\n"
      "  artel features runs/cifar fashion_mnist -o features.npz\n"
      "  artel features resnet18 flowers --weights resnet18.safetensors --layer layer3 --layer "
      "avgpool\n"
      "  artel features runs/cifar --list\n"
      "  artel features runs/pets photos --join ages.csv --on file -n 2");
  command->callback([arguments] { features(*arguments); });
}

}  // namespace artel::cli
