// large_batches [EPOCHS [BATCH ...]]: trains one network on Fashion-MNIST with larger and larger
// batches, each for the same number of epochs, by five recipes; prints the test accuracies and
// draws large_batches.svg. docs/large_batches.md discusses the result.
#include <artel/artel.h>
#include <artel/base/file.h>
#include <artel/observe/plot.h>
#include <artel/observe/table.h>

#include <string>
#include <vector>

namespace {

namespace nn = artel::nn;
namespace optim = artel::optim;

struct Recipe {
  std::string name;
  optim::OptimizerConfig optimizer;
  optim::ScheduleConfig schedule;
};

// Rates were chosen for batches of 128; `scaling` says how each recipe changes them with the batch.
std::vector<Recipe> recipes() {
  const auto schedule = [](const std::string& scaling, double warmup) {
    return optim::ScheduleConfig{.shape = optim::Polynomial{.power = 2},
                                 .warmup = warmup,
                                 .warmup_start = 0.01,
                                 .scaling = scaling,
                                 .reference_batch = 128};
  };
  const auto sgd = optim::sgd(0.02, {.momentum = 0.9});
  return {{"the same rate", sgd, schedule("none", 0)},
          {"linear scaling", sgd, schedule("linear", 0)},
          {"linear scaling, warm-up", sgd, schedule("linear", 4)},
          {"LARS, warm-up", optim::lars(0.5, {.trust = 0.01}), schedule("sqrt", 4)},
          {"LAMB, warm-up", optim::lamb(0.01), schedule("sqrt", 4)}};
}

// The test accuracy after training, or that of guessing if the loss ran away.
double accuracy(artel::Cluster& cluster, const artel::data::Split& data, const Recipe& recipe,
                int64_t batch, int64_t epochs) try {
  const artel::Model model = nn::sequential(
      {nn::flatten(), nn::dense(256), nn::relu(), nn::dense(128), nn::relu(), nn::dense(10)});
  artel::Trainer trainer(cluster, model,
                         {.optimizer = recipe.optimizer, .schedule = recipe.schedule, .lanes = 2});
  trainer.fit(data.train, {.batch_size = batch, .epochs = epochs});
  return trainer.evaluate(data.test).accuracy;
} catch (const artel::Error& error) {
  if (error.kind() != artel::ErrorKind::numeric) throw;
  return 0.1;
}

}  // namespace

int main(int argc, char** argv) try {
  artel::Cluster cluster(argc, argv);
  const int64_t epochs = argc > 1 ? std::stoll(argv[1]) : 10;
  std::vector<int64_t> batches;
  for (int i = 2; i < argc; ++i) batches.push_back(std::stoll(argv[i]));
  if (batches.empty()) batches = {128, 512, 2048, 8192, 16384};
  const auto data = artel::data::fashion_mnist("/usr/share/datasets/fashion-mnist");

  std::vector<std::string> header = {"recipe"};
  for (const int64_t batch : batches) header.push_back(std::to_string(batch));
  artel::observe::Table table(header);
  artel::observe::Plot plot{.title = fmt::format("Fashion-MNIST, {} epochs", epochs),
                            .x_label = "global batch",
                            .y_label = "test accuracy, %",
                            .series = {},
                            .log_x = true};
  for (const Recipe& recipe : recipes()) {
    std::vector<std::string> row = {recipe.name};
    artel::observe::Series series{.name = recipe.name, .points = {}, .markers = true};
    for (const int64_t batch : batches) {
      const double percent = 100 * accuracy(cluster, data, recipe, batch, epochs);
      row.push_back(fmt::format("{:.1f}", percent));
      series.points.emplace_back(static_cast<double>(batch), percent);
    }
    table.add(row);
    plot.series.push_back(std::move(series));
  }
  if (cluster.rank() != 0) return 0;
  fmt::print("{}", table.text());
  artel::write_file_atomically("large_batches.svg", artel::observe::to_svg(plot));
} catch (const artel::Error& error) {
  artel::println("large_batches: {}", error.what());
  return 1;
}
