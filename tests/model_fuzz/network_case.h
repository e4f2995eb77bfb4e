// A random network with its data and settings: what the model fuzzer runs, keeps and prints.
//
// As text it is a configuration file that `artel train` reads, with one comment that says what its
// samples are; the samples themselves are made from the seed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/base/random.h"
#include "artel/nn/model.h"
#include "artel/optim/config.h"
#include "artel/tensor/tensor.h"

namespace artel::model_fuzz {

struct NetworkCase {
  std::vector<std::string> layers;
  Shape sample;
  int64_t tokens = 0;        // above 0: samples are whole numbers below it
  bool flat_target = false;  // one number a sample instead of a column of one
  std::string loss = "mse";
  double label_smoothing = 0;
  optim::Options optimizer = {{"name", "sgd"}};
  int64_t batch = 4;
  int64_t steps = 3;
  int64_t lanes = 1, threads = 1, workers = 1;
  bool limit_memory = false;
  bool tune = false;
  bool exact_convolutions = false;
  uint64_t seed = 0;  // of the weights and of the data

  Model model() const;
  TensorType x() const;  // of one sample
  TensorType y() const;  // of one target, in the shape of the network's output
  // Batch number `step`.
  Tensor inputs(int64_t step) const;
  Tensor targets(int64_t step) const;
};

std::string to_toml(const NetworkCase& network);
// Throws an Error for text that is no case.
NetworkCase parse_case(std::string_view text, std::string_view name);
// Writes `network` as NAME.toml and its samples as NAME.npz beside it, for `artel train`.
void write_files(const NetworkCase& network, const std::string& folder, const std::string& name);

// The operations and bytes that a case may cost, so that thousands run in a minute.
bool is_small(const NetworkCase& network);

// Valid: the network can be built for training with the case's lanes.
NetworkCase random_case(Random& random);

// The same with one thing smaller or simpler each, the boldest first; some may not be valid.
std::vector<NetworkCase> simpler(const NetworkCase& network);

}  // namespace artel::model_fuzz
