// A network that predicts the next token, reading a text piece by piece.
//
// Keys and values of what has been read are kept, so that a further token costs one pass over the
// weights and one over the cache. Not synchronised.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

class Decoder {
 public:
  // Throws if the network does not predict next tokens or the weights do not fit it. The results do
  // not depend on the number of threads.
  Decoder(const Model& model, const NamedTensors& weights, int threads);
  // With the weights that training with this seed begins with.
  Decoder(const Model& model, uint64_t seed, int threads);
  ~Decoder();

  int64_t positions() const { return positions_; }  // the most tokens that it can remember
  int64_t size() const { return size_; }            // that it has read
  size_t weight_bytes() const;

  // Reads on, and returns the scores of the token that follows: [vocabulary]. `tokens` is not
  // empty. Throws for one outside of the vocabulary and for more than there are positions left.
  Tensor read(std::span<const int32_t> tokens);
  void forget() { size_ = 0; }

 private:
  struct Compiled;
  Decoder(const Model& model, int threads);
  Compiled& compiled(int64_t tokens);

  Model model_;
  int threads_;
  ThreadPool pool_;
  KernelChoices choices_;
  Parameters parameters_;                                  // with the caches
  std::map<int64_t, std::unique_ptr<Compiled>> compiled_;  // by tokens at once
  int64_t positions_ = 0, size_ = 0;
};

}  // namespace artel
