// A network that predicts next tokens, but cannot read on from where it was, such as an LSTM: it
// reads all of the text again for each token.
#pragma once

#include <span>

#include "artel/predict/predictor.h"

namespace artel {

class Rereading {
 public:
  // Texts of at most `window` tokens. Throws if the network does not predict next tokens, or sees
  // those that follow.
  Rereading(const Model& model, const NamedTensors& weights, int threads, int64_t window);

  size_t weight_bytes() const { return weight_bytes_; }
  // The scores of the token that follows the text: [vocabulary].
  Tensor scores_after(std::span<const int32_t> text);

 private:
  Tensor scores(std::span<const int32_t> text);  // after each token of the window
  void check_causal();

  int64_t window_;
  size_t weight_bytes_ = 0;
  Predictor predictor_;
};

}  // namespace artel
