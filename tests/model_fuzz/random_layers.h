// Layers at random, with odd sizes. They are proposals: whether they fit is found out by building
// them.
#pragma once

#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/tensor/shape.h"

namespace artel::model_fuzz {

int64_t between(Random& random, int64_t least, int64_t most);
bool one_in(Random& random, uint64_t n);

template <typename T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[random.below(from.size())];
}

// Sizes at which kernels change behaviour: 1, primes, one less and one more than a vector.
int64_t random_size(Random& random, int64_t most);

class LayerMaker {
 public:
  // `inputs` are the shapes of the network's inputs x, x2, ...; `tokens` as in NetworkCase.
  LayerMaker(Random& random, std::vector<Shape> inputs, int64_t tokens)
      : random_(random), inputs_(std::move(inputs)), tokens_(tokens) {}

  // One layer, or several that belong together, that may fit samples of this shape. `depth` counts
  // the blocks around them.
  std::vector<std::string> propose(const Shape& shape, int depth = 0);

 private:
  int64_t size(int64_t most) { return random_size(random_, most); }
  bool one_in(uint64_t n) { return model_fuzz::one_in(random_, n); }
  int64_t divisor(int64_t n);
  std::string pair(int64_t least, int64_t most);
  std::string fresh(const char* prefix);  // a name that is not taken

  std::string layer(const Shape& shape, int depth);
  std::string image_layer(const Shape& shape);
  std::string activation();
  std::string preserving(const Shape& shape, bool with_states);  // keeps the shape
  std::string combination(const std::string& kept);
  std::string conv(const Shape& shape);
  std::string conv_options();
  std::string pool_options();
  std::string reshaped(const Shape& shape);
  std::string recurrent(const Shape& shape);
  std::string conv1d(const Shape& shape);
  std::string residual(const Shape& shape, int depth);
  std::string block(const Shape& shape, int depth);

  std::vector<std::string> skip(const Shape& shape);
  std::vector<std::string> branches(const Shape& shape);
  std::vector<std::string> used_twice(const Shape& shape);
  std::vector<std::string> other_input(const Shape& shape);

  Random& random_;
  const std::vector<Shape> inputs_;
  const int64_t tokens_;
  int names_ = 0;
};

}  // namespace artel::model_fuzz
