// Text generation with a network that has no cache, such as an LSTM. Reads the whole text again for
// each token.
#pragma once

#include <span>

#include "artel/predict/predictor.h"

namespace artel {

class Rereading {
 public:
  // Uses at most `window` tokens of a text. Throws if the network does not predict next tokens or
  // is not causal.
  Rereading(const Model& model, const NamedTensors& weights, int threads, int64_t window,
            const std::string& device = "cpu");

  size_t weight_bytes() const { return weight_bytes_; }
  // The scores of the token that follows the text: [vocabulary].
  Tensor scores_after(std::span<const int32_t> text);

 private:
  Tensor scores(std::span<const int32_t> text);  // at each position of the window
  void check_causal();

  int64_t window_;
  size_t weight_bytes_ = 0;
  Predictor predictor_;
};

}  // namespace artel
