// Incremental inference with a language model.
//
// Attention keys and values of the text are cached, so each new token takes one pass over the
// weights and one over the cache. Networks with other layers that depend on earlier tokens, such as
// an LSTM, read the whole text again for each token. Not thread safe.
//
//   artel::Decoder decoder(model, artel::checkpoint::load_weights("gpt2.safetensors"), 2);
//   const artel::Tensor scores = decoder.read(std::vector<int32_t>{464, 3290});
#pragma once

#include <map>
#include <memory>
#include <span>

#include "artel/exec/program.h"
#include "artel/graph/passes/quantise_weights.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

class Rereading;

class Decoder {
 public:
  // Throws if the network does not predict next tokens or if the weights do not fit it. Computes
  // with quantised matrices (tensor/quantised.h) directly. Results do not depend on the number of
  // threads. `window` is the maximum text length for networks without a cache; if it is 0, they are
  // refused. `device` as in exec/devices.h.
  Decoder(const Model& model, const NamedTensors& weights, int threads, int64_t window = 0,
          const std::string& device = "cpu");
  // Borrows the weights, which must not change. Copies weights whose layout it cannot use.
  Decoder(const Model& model, Parameters& weights, int threads, int64_t window = 0);
  // Uses the initial weights of a training with this seed.
  Decoder(const Model& model, uint64_t seed, int threads);
  ~Decoder();

  int64_t positions() const { return positions_; }    // maximum text length in tokens
  int64_t size() const { return std::ssize(text_); }  // tokens read so far
  size_t weight_bytes() const;
  size_t cache_bytes() const;  // memory of the cache, for all positions

  // Appends `tokens` to the text and returns the scores [vocabulary] of the next token. `tokens`
  // must not be empty. Throws for a token outside the vocabulary, or if the text would get longer
  // than positions().
  Tensor read(std::span<const int32_t> tokens);
  void forget() { text_.clear(); }

 private:
  struct Compiled;
  Decoder(const Model& model, int threads, const std::string& device);
  Compiled& compiled(int64_t tokens);
  // Sets `positions_`. Returns true if the network has a cache.
  bool reads_on(int64_t window);
  void find_cache();
  Tensor read_on(std::span<const int32_t> tokens);

  Model model_;
  int threads_;
  ThreadPool pool_;
  KernelChoices choices_;
  std::map<std::string, QuantisedType> matrices_;          // quantised weights
  Parameters parameters_;                                  // weights and caches
  Parameters* lender_ = nullptr;                           // borrowed weights
  std::map<int64_t, std::unique_ptr<Compiled>> compiled_;  // by number of tokens per call
  std::unique_ptr<Rereading> rereading_;                   // for networks without a cache
  int64_t positions_ = 0;
  std::vector<int32_t> text_;
};

}  // namespace artel
