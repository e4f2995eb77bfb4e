// The expected result of a case, from the model's plain graph: neither fused nor differentiated.
#pragma once

#include <limits>
#include <map>
#include <string>

#include "tests/model_fuzz/training.h"

namespace artel::model_fuzz {

// Everything that is compared, by what it is: "loss", "gradient of 'head.weight'", "state
// '1.mean'", "metric accuracy", "prediction".
struct Results {
  Arrays values;
  double gradient_scale = 0;  // the largest element of all gradients
  // How far the scores of classes are apart, at least: below the errors of rounding, metrics that
  // count answers have no right value.
  double margin = std::numeric_limits<double>::infinity();
};

std::string gradient_of(const std::string& parameter);
std::string state_of(const std::string& state);
// True if it is a metric that counts answers.
bool counts_answers(const std::string& what);

class Expectation {
 public:
  explicit Expectation(const NetworkCase& network) : network_(network) {}

  // After step `number` with these parameters and states.
  Results step(int64_t number, const Arrays& leaves, const reference::Noise& noise = {});
  // The result of Training::evaluate.
  Results evaluation(const Arrays& leaves, const reference::Noise& noise = {});

 private:
  const Graph& training_graph_of(int64_t samples);
  Graph plain_graph(int64_t samples, bool training) const;

  const NetworkCase& network_;
  std::map<int64_t, Graph> graphs_;  // of training, by samples of a lane
};

}  // namespace artel::model_fuzz
