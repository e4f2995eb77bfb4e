#include "artel/predict/rereading.h"

#include <algorithm>
#include <cstring>

#include "artel/base/error.h"

namespace artel {

Rereading::Rereading(const Model& model, const NamedTensors& weights, int threads, int64_t window,
                     const std::string& device)
    : window_(window), predictor_(model, {DType::i32, {window}}, weights, threads, device) {
  for (const NamedTensor& weight : weights) weight_bytes_ += weight.tensor.bytes();
  check_causal();
}

// Pads the text; the padding must not affect the result.
Tensor Rereading::scores(std::span<const int32_t> text) {
  Tensor x({1, window_}, DType::i32);
  std::fill(x.values<int32_t>().begin(), x.values<int32_t>().end(), 0);
  std::copy(text.begin(), text.end(), x.values<int32_t>().begin());
  const Tensor scores = predictor_(x);
  require(scores.shape().rank() == 3 && scores.shape()[1] == window_, ErrorKind::unsupported,
          "the network does not predict next tokens: its output is {}, expected [batch, {}, "
          "vocabulary]",
          to_string(scores.shape()), window_);
  return scores.reshaped({window_, scores.shape()[2]});
}

void Rereading::check_causal() {
  if (window_ == 1) return;
  std::vector<int32_t> text(static_cast<size_t>(window_), 0);
  const Tensor before = scores(text);
  text.back() = 1;
  const Tensor after = scores(text);
  const Tensor a = before.rows(0, window_ - 1), b = after.rows(0, window_ - 1);
  require(
      std::memcmp(a.raw(), b.raw(), a.bytes()) == 0, ErrorKind::unsupported,
      "the network sees the tokens that it should predict, so it cannot generate text; leave out "
      "what looks ahead, such as `bidirectional` or attention that is not causal");
}

Tensor Rereading::scores_after(std::span<const int32_t> text) {
  const auto last = static_cast<int64_t>(text.size()) - 1;
  const Tensor all = scores(text);
  return all.rows(last, last + 1).reshaped({all.shape()[1]});
}

}  // namespace artel
