#include "artel/run/config/first_sections.h"

#include <algorithm>
#include <bit>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFewSamples = 200;

// Shares of the samples. With few samples, more are held out, because the loss of one or two says
// little.
double validation_share(int64_t samples) { return samples < kFewSamples ? 0.2 : 0.1; }

// The number of epochs that makes a few thousand steps. Early stopping usually ends training
// sooner.
int64_t epochs_for(int64_t samples, int64_t batch) {
  constexpr int64_t kSteps = 6000;
  return std::clamp<int64_t>(kSteps * batch / std::max<int64_t>(1, samples), 10, 200);
}

// Small sets make at least four steps per epoch.
int64_t batch_for(int64_t samples) {
  const auto quarter = static_cast<uint64_t>(std::max<int64_t>(2, samples / 4));
  const int64_t most = samples < 5000 ? 32 : samples < 100'000 ? 64 : 256;
  return std::min(most, static_cast<int64_t>(std::bit_floor(quarter)));
}

// Some hundred steps without improvement.
int64_t patience_for(int64_t samples, int64_t batch) {
  constexpr int64_t kSteps = 400;
  return std::clamp<int64_t>(kSteps * batch / std::max<int64_t>(1, samples), 10, 50);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(in_quotes(name));
  return fmt::format("[{}]", join(all, ", "));
}

std::string path_from(const FirstConfigOptions& options, const fs::path& data) {
  return in_quotes(fs::proximate(data, options.folder).string());
}

int64_t training_samples(int64_t samples, double test_share) {
  return static_cast<int64_t>(static_cast<double>(samples) * (1 - test_share) *
                              (1 - validation_share(samples)));
}

void check_size(const fs::path& path, int64_t samples, const char* what) {
  constexpr int64_t kLeast = 10;
  require(samples >= kLeast, ErrorKind::invalid_argument,
          "[{}] got {}, expected {} or more to train and to test with", path.string(),
          counted(samples, what), kLeast);
}

std::string held_out(int64_t samples, bool has_test_part) {
  return fmt::format("validation = {}  # share of the training samples that judges each epoch\n{}",
                     validation_share(samples),
                     has_test_part ? std::string()
                                   : fmt::format("test_fraction = {}  # share of all samples that "
                                                 "is held out for the final test\n",
                                                 kTestShare));
}

std::string train_section(const Problem& problem) {
  const int64_t batch = batch_for(problem.samples);
  const bool classes = problem.classes > 0;
  return fmt::format(
      R"(
[train]
batch_size = {}  # samples per step, over all workers
epochs = {}  # at most; patience stops earlier
patience = {}  # epochs without a better loss on the validation part
loss = "{}"
metrics = {}
best_by = "loss"  # criterion for the best checkpoint: the loss or one of the metrics
optimizer = "adam lr=0.002"  # vary the learning rate first: 0.0005 to 0.01
schedule = "cosine"  # lowers the learning rate until the end
seed = 1
)",
      batch, epochs_for(problem.samples, batch), patience_for(problem.samples, batch),
      classes ? "cross_entropy" : "mse",
      classes          ? R"(["accuracy"])"
      : problem.tested ? R"(["mean absolute error", "r2"])"
                       : R"(["mean absolute error"])");
}

int64_t outputs_of(const Problem& problem) {
  return problem.classes > 0 ? std::max<int64_t>(2, problem.classes) : problem.outputs;
}

std::string dense_network(const Problem& problem, const std::string& first) {
  const int width = problem.samples < 2000 ? 64 : problem.samples < 50'000 ? 128 : 256;
  return fmt::format(
      R"(
[model]
# Two hidden layers. If training and validation loss are both high, try more or wider layers. If
# only the validation loss is high, try "dropout 0.2" after each relu.
layers = [{}"dense {}", "relu", "dense {}", "relu", "dense {}"]
)",
      first, width, width, outputs_of(problem));
}

}  // namespace artel
