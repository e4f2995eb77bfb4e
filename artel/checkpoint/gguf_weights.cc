#include "artel/checkpoint/gguf_weights.h"

#include <cstring>

#include "artel/base/error.h"

namespace artel::checkpoint {
namespace {

// The number of heads with interleaved rows; 0 if the rows are not interleaved.
int64_t interleaved_heads(const Gguf& file, const std::string& tensor) {
  if (!file.has("general.architecture") || file.text("general.architecture") != "llama") return 0;
  const std::string heads = "llama.attention.head_count", key_heads = heads + "_kv";
  if (tensor.ends_with(".attn_q.weight")) return file.integer(heads);
  if (tensor.ends_with(".attn_k.weight"))
    return file.integer(file.has(key_heads) ? key_heads : heads);
  return 0;
}

// Reorders the rows of each head: even rows first, then odd rows.
Tensor evens_first(const Tensor& matrix, int64_t heads) {
  Tensor result(matrix.shape(), matrix.dtype());
  const int64_t rows = matrix.shape()[0] / heads, half = rows / 2;
  const size_t bytes = matrix.bytes() / static_cast<size_t>(matrix.shape()[0]);
  for (int64_t row = 0; row < matrix.shape()[0]; ++row) {
    const int64_t head = row / rows, place = row % rows;
    const int64_t from = head * rows + (place < half ? 2 * place : 2 * (place - half) + 1);
    std::memcpy(result.raw() + row * bytes, matrix.raw() + from * bytes, bytes);
  }
  return result;
}

void append_ordered(NamedTensors& all, const Gguf& file, const GgufTensor& tensor, GgufForm form) {
  const int64_t heads = interleaved_heads(file, tensor.name);
  const bool ordered = heads == 0;
  require(ordered || (tensor.shape.rank() == 2 && tensor.shape[0] % (2 * heads) == 0),
          ErrorKind::corrupt, "[{}] tensor '{}' has the shape {}, expected rows for {} heads",
          file.name, tensor.name, to_string(tensor.shape), heads);
  const auto order = [&](const Tensor& rows) { return ordered ? rows : evens_first(rows, heads); };
  if (form == GgufForm::numbers || !is_quantised(tensor) || tensor.shape.rank() != 2) {
    all.push_back({tensor.name, order(numbers_of(tensor))});
    return;
  }
  QuantisedMatrix matrix = quantised_matrix(tensor);
  matrix.codes = order(matrix.codes);
  matrix.scales = order(matrix.scales);
  if (matrix.has_offsets()) matrix.offsets = order(matrix.offsets);
  append(all, tensor.name, matrix);
}

}  // namespace

NamedTensors gguf_weights(const Gguf& file, GgufForm form) {
  NamedTensors all;
  for (const GgufTensor& tensor : file.tensors) append_ordered(all, file, tensor, form);
  return all;
}

}  // namespace artel::checkpoint
