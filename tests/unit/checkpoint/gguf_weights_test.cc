// Weights of GGUF files: rows of queries and keys in the order of other files, as numbers or as
// they are stored.
#include "artel/checkpoint/gguf_weights.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/checkpoint/weights.h"
#include "tests/support/gguf_writer.h"

namespace artel::checkpoint {
namespace {

// Two heads of four rows, one of keys; row i of each matrix is full of i.
std::string small_file() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("llama.attention.head_count", uint32_t{2});
  writer.add("llama.attention.head_count_kv", uint32_t{1});
  std::string q, k, v;
  for (int row = 0; row < 8; ++row) {
    const std::vector<uint8_t> codes(32, 1);
    q += gguf_block({static_cast<float>(row)}, codes);
    if (row < 4) k += gguf_block({static_cast<float>(row), 0}, std::vector<uint8_t>(16, 0x11));
    if (row < 4) v += gguf_block({static_cast<float>(row)}, codes);
  }
  writer.add_tensor("blk.0.attn_q.weight", {32, 8}, 8, q);
  writer.add_tensor("blk.0.attn_k.weight", {32, 4}, 3, k);
  writer.add_tensor("blk.0.attn_v.weight", {32, 4}, 8, v);
  return writer.file();
}

std::vector<float> first_column(const Tensor& matrix) {
  std::vector<float> column;
  for (int64_t row = 0; row < matrix.shape()[0]; ++row)
    column.push_back(matrix.values<float>()[row * matrix.shape()[1]]);
  return column;
}

const std::vector<float> kQueries = {0, 2, 1, 3, 4, 6, 5, 7}, kKeys = {0, 2, 1, 3},
                         kValues = {0, 1, 2, 3};

TEST(GgufWeights, PairsLieHalfAHeadApart) {
  const NamedTensors tensors = parse_weights(make_bytes(small_file(), "model.gguf"));
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(first_column(tensors[0].tensor), kQueries);
  EXPECT_EQ(first_column(tensors[1].tensor), kKeys);
  EXPECT_EQ(first_column(tensors[2].tensor), kValues);
}

TEST(GgufWeights, MatricesCanStayQuantised) {
  const Gguf file = parse_gguf(make_bytes(small_file(), "model.gguf"));
  const NamedTensors tensors = gguf_weights(file, GgufForm::quantised);
  EXPECT_EQ(tensors.size(), 2 + 3 + 2);
  EXPECT_EQ(first_column(expand(find_quantised(tensors, "blk.0.attn_q.weight"))), kQueries);
  EXPECT_EQ(first_column(expand(find_quantised(tensors, "blk.0.attn_k.weight"))), kKeys);
}

TEST(GgufWeights, RowsThatDoNotFitTheHeadsAreRefused) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("llama.attention.head_count", uint32_t{3});
  writer.add_tensor("blk.0.attn_q.weight", {32, 8}, 8, std::string(8 * 34, 'x'));
  EXPECT_THROW(gguf_weights(parse_gguf(make_bytes(writer.file(), "model.gguf"))), Error);
}

}  // namespace
}  // namespace artel::checkpoint
