// Text generation with a network that predicts the next token.
//
//   artel::Decoder decoder(model, artel::checkpoint::load_weights("gpt2.safetensors"), 2);
//   artel::generate(decoder, {464, 3290}, {.tokens = 20}, [](int32_t token) {
//     artel::println("{}", token);
//     return true;
//   });
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "artel/base/random.h"
#include "artel/predict/decoder.h"

namespace artel {

struct SamplingOptions {
  double temperature = 1;  // divides the scores; 0 always takes the likeliest token
  int64_t top_k = 0;       // restricts to the k likeliest tokens; 0 allows all
  double top_p = 1;        // restricts to the likeliest tokens with this total probability
};

// Draws a token by its probability. Of equal scores, the smaller token counts as likelier. Throws
// for options out of range, and if all scores are NaN.
int32_t sample_token(std::span<const float> scores, const SamplingOptions& options, Random& random);

struct GenerateOptions {
  int64_t tokens = 256;
  SamplingOptions sampling = {};
  uint64_t seed = 0;
  int64_t vocabulary = 0;  // restricts to the first `vocabulary` tokens; 0 allows all
  // The token that separates training samples, such as the line feed of data.lines. The network
  // starts over after it, because training samples never span it.
  std::optional<int32_t> separator = {};
};

// Continues `prompt` token by token. `on_token` receives each new token and returns true to
// continue. When the decoder runs out of positions, it rereads the last half of the text and
// continues from there. Throws for a prompt that is empty or longer than the decoder's positions.
void generate(Decoder& decoder, std::vector<int32_t> prompt, const GenerateOptions& options,
              const std::function<bool(int32_t)>& on_token);

}  // namespace artel
