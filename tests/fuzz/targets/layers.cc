#include "artel/base/text.h"
#include "artel/nn/model.h"
#include "artel/nn/parse_layers.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::layers {

// A network as text, one layer per line, is parsed and its shapes are inferred.
void read(const Bytes& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size());
  with_name(bytes, [&] {
    inference_graph(nn::parse_layers(split(text, '\n')), {DType::f32, Shape{2, 3, 8, 8}});
  });
}

std::vector<std::string> seeds() {
  return {"conv 8 3x3 padding same no_bias\nbatch_norm\nrelu\nmax_pool 2\nflatten\nhead: dense 10",
          "residual { conv 3 3x3 padding 1 | batch_norm } shortcut { conv 3 1x1 "
          "}\nadaptive_average_pool 1",
          "flatten\ndropout 0.5\ndense 4 no_bias\ngelu\nlayer_norm\nsoftmax"};
}

}  // namespace artel::fuzz::layers
