#include "artel/nn/zoo/autoencoder.h"

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

Layer stack(const std::vector<Layer>& layers) {
  std::vector<Layer> all;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) all.push_back(relu());
    all.push_back(layers[i]);
  }
  return sequential(std::move(all));
}

}  // namespace

Layer autoencoder(const std::vector<int64_t>& widths) {
  require(!widths.empty(), ErrorKind::invalid_argument,
          "[autoencoder] widths: got none, expected at least the width of the code");
  return {"autoencoder", [widths](Build& build, Value x) {
            const Shape shape = x.shape();
            x = artel::flatten(x);
            std::vector<Layer> encoder, decoder;
            for (const int64_t width : widths) encoder.push_back(dense(width));
            for (size_t i = widths.size() - 1; i-- > 0;) decoder.push_back(dense(widths[i]));
            decoder.push_back(dense(x.shape()[1]));
            x = named("encoder", stack(encoder))(build, x);
            return artel::reshape(named("decoder", stack(decoder))(build, x), shape);
          }};
}

Layer conv_autoencoder(const std::vector<int64_t>& channels) {
  require(!channels.empty(), ErrorKind::invalid_argument,
          "[conv_autoencoder] channels: got none, expected at least those of the code");
  return {"conv_autoencoder", [channels](Build& build, Value x) {
            require(x.shape().rank() == 4, ErrorKind::shape,
                    "[conv_autoencoder] got input {}, expected [batch, channels, height, width]",
                    to_string(x.shape()));
            std::vector<Layer> encoder, decoder;
            int64_t above = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
            for (const int64_t count : channels) {
              encoder.push_back(conv(count, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}));
              // One more row or column if the extent that was halved is even.
              decoder.insert(decoder.begin(),
                             conv_transpose(above, {3, 3},
                                            {.stride = {2, 2},
                                             .padding = {1, 1},
                                             .output_padding = {1 - height % 2, 1 - width % 2}}));
              above = count;
              height = (height + 1) / 2;
              width = (width + 1) / 2;
            }
            x = named("encoder", stack(encoder))(build, x);
            return named("decoder", stack(decoder))(build, x);
          }};
}

}  // namespace artel::nn
