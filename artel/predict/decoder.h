// A network that predicts the next token, reading a text piece by piece.
//
// Keys and values of what has been read are kept, so each further token costs one pass over the
// weights and one over the cache. Networks with other layers that look back, such as an LSTM, read
// all of the text again for each token. Not synchronised.
//
//   artel::Decoder decoder(model, artel::checkpoint::load_weights("gpt2.safetensors"), 2);
//   const artel::Tensor scores = decoder.read(std::vector<int32_t>{464, 3290});
#pragma once

#include <map>
#include <memory>
#include <span>

#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

class Rereading;

class Decoder {
 public:
  // Throws if the network does not predict next tokens or the weights do not fit it. The results do
  // not depend on the number of threads. `window` is the most tokens that a network can remember
  // that has to read them again each time; 0: such a network is refused.
  Decoder(const Model& model, const NamedTensors& weights, int threads, int64_t window = 0);
  // The same with the weights of somebody else, who keeps them as they are. Those in a layout that
  // it cannot use are copied.
  Decoder(const Model& model, Parameters& weights, int threads, int64_t window = 0);
  // With the initial weights of a training with this seed.
  Decoder(const Model& model, uint64_t seed, int threads);
  ~Decoder();

  int64_t positions() const { return positions_; }    // the most tokens that it can remember
  int64_t size() const { return std::ssize(text_); }  // tokens read so far
  size_t weight_bytes() const;

  // Reads on, and returns the scores of the token that follows: [vocabulary]. `tokens` is not
  // empty. Throws for a token outside the vocabulary, and for more tokens than there are positions
  // left.
  Tensor read(std::span<const int32_t> tokens);
  void forget() { text_.clear(); }

 private:
  struct Compiled;
  Decoder(const Model& model, int threads);
  Compiled& compiled(int64_t tokens);
  // Finds out how many positions there are. Returns whether it can read on from where it was.
  bool reads_on(int64_t window);
  void find_cache();
  Tensor read_on(std::span<const int32_t> tokens);

  Model model_;
  int threads_;
  ThreadPool pool_;
  KernelChoices choices_;
  Parameters parameters_;                                  // with the caches
  Parameters* lender_ = nullptr;                           // of those that are not there
  std::map<int64_t, std::unique_ptr<Compiled>> compiled_;  // by number of tokens per call
  std::unique_ptr<Rereading> rereading_;                   // instead of all these
  int64_t positions_ = 0;
  std::vector<int32_t> text_;
};

}  // namespace artel
