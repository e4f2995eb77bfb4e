// A random network with its data and settings: what the model fuzzer runs, keeps and prints.
//
// As text it is a configuration file that `artel train` reads, with one comment that says what its
// samples are; the samples themselves are made from the seed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/base/random.h"
#include "artel/nn/loss.h"
#include "artel/nn/model.h"
#include "artel/optim/config.h"
#include "artel/tensor/tensor.h"
#include "tests/model_fuzz/mesh_setting.h"

namespace artel::model_fuzz {

struct NetworkCase {
  std::vector<std::string> layers;
  std::vector<Shape> samples;  // the inputs x, x2, x3, ... of one sample
  int64_t tokens = 0;          // above 0: samples are whole numbers below it
  bool flat_target = false;    // one number per sample instead of a column of one
  bool shares = false;         // of classes, instead of labels
  bool ignored = false;        // some labels are -100, which cross entropy leaves out
  bool lines = false;          // lines of text of different lengths, as data.lines has them
  double target_mean = 0;      // of targets that are neither labels nor shares
  std::string loss = "mse";
  double label_smoothing = 0;
  std::vector<double> class_weights;
  std::vector<std::string> metrics;
  std::vector<std::string> freeze;
  std::string schedule = "constant";  // of the learning rate, with several workers
  optim::Options optimizer = {{"name", "sgd"}};
  int64_t batch = 4;
  int64_t last_batch = 0;  // samples of the last step, if it has fewer
  int64_t steps = 3;
  int64_t lanes = 1, threads = 1, workers = 1;
  MeshSetting mesh;             // of the workers
  int64_t resumed_workers = 0;  // above 0: this many continue after an epoch, perhaps without lanes
  bool limit_memory = false;
  bool tune = false;
  bool exact_convolutions = false;
  uint64_t seed = 0;  // of the weights and of the data

  Model model() const;
  Loss training_loss() const;
  TensorType x() const;  // of one sample, its inputs side by side
  TensorType y() const;  // of one target, in the shape of the network's output
  // Samples of step `step`, counted from 1.
  int64_t samples_of(int64_t step) const {
    return step == steps && last_batch > 0 ? last_batch : batch;
  }
  // The batch of a step.
  Tensor inputs(int64_t step) const;
  Tensor targets(int64_t step) const;
  // The batches of all steps one after another.
  Tensor all_inputs() const;
  Tensor all_targets() const;
  bool trained(const std::string& parameter) const;  // not frozen
};

std::string to_toml(const NetworkCase& network);
// Throws an Error for text that is not a case.
NetworkCase parse_case(std::string_view text, std::string_view name);
// Writes `network` as NAME.toml and its samples as NAME.npz next to it, for `artel train`.
void write_files(const NetworkCase& network, const std::string& folder, const std::string& name);

// The most that a case may cost: thousands of small ones run in a minute. Large ones are there for
// threads that share a kernel, which they do only where there is enough to do.
struct Budget {
  int64_t elements = 1 << 14;  // of any value
  double flops = 4e6;          // of all layers together
};
inline constexpr Budget kSmall = {}, kLarge = {300000, 1.6e7};
bool is_within(const Budget& budget, const NetworkCase& network);

// Valid: the network can be built for training with the case's lanes.
NetworkCase random_case(Random& random);
// For several workers.
NetworkCase random_mesh_case(Random& random);

// Variants with one thing smaller or simpler, the boldest first; some may not be valid.
std::vector<NetworkCase> simpler(const NetworkCase& network);

}  // namespace artel::model_fuzz
