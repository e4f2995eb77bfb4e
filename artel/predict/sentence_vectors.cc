#include "artel/predict/sentence_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"

namespace artel {

Tensor token_rows(const data::WordPiece& tokenizer, const std::vector<std::string>& texts,
                  int64_t most) {
  size_t longest = 0;
  std::vector<std::vector<int32_t>> rows;
  for (const std::string& text : texts) {
    const size_t pieces = tokenizer.encode(text).size() + 2;
    require(static_cast<int64_t>(pieces) <= most, ErrorKind::invalid_argument,
            "[text '{}...'] got {} tokens, expected at most the network's {} positions; try a "
            "shorter text",
            text.substr(0, 20), pieces, most);
    rows.push_back(tokenizer.sentence(text, "", most).tokens);
    longest = std::max(longest, rows.back().size());
  }
  Tensor tokens({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, DType::i32);
  int32_t* out = tokens.values<int32_t>().data();
  for (std::vector<int32_t>& row : rows) {
    row.resize(longest, tokenizer.number("[PAD]"));
    out = std::copy(row.begin(), row.end(), out);
  }
  return tokens;
}

Tensor mean_vectors(const Tensor& tokens, const Tensor& hidden, int32_t padding) {
  const int64_t rows = hidden.shape()[0], positions = hidden.shape()[1], width = hidden.shape()[2];
  Tensor vectors({rows, width});
  const float* in = hidden.values<float>().data();
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> sum(static_cast<size_t>(width));
    for (int64_t i = 0; i < positions; ++i, in += width) {
      if (tokens.values<int32_t>()[row * positions + i] == padding) continue;
      for (int64_t c = 0; c < width; ++c) sum[c] += in[c];
    }
    // After scaling to length 1, the sum equals the mean.
    const double length = std::sqrt(std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0));
    for (int64_t c = 0; c < width; ++c)
      vectors.values<float>()[row * width + c] =
          static_cast<float>(length > 0 ? sum[c] / length : 0.0);
  }
  return vectors;
}

Tensor cosines(const Tensor& vectors) {
  const int64_t rows = vectors.shape()[0], width = vectors.shape()[1];
  const float* v = vectors.values<float>().data();
  Tensor result({rows, rows});
  for (int64_t a = 0; a < rows; ++a)
    for (int64_t b = 0; b < rows; ++b)
      result.values<float>()[a * rows + b] = static_cast<float>(
          std::inner_product(v + a * width, v + (a + 1) * width, v + b * width, 0.0));
  return result;
}

}  // namespace artel
