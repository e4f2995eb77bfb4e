#include "artel/tensor/gguf.h"
#include "artel/checkpoint/gguf_weights.h"
#include "artel/data/text/byte_pair.h"
#include "artel/run/config/published_config.h"
#include "tests/fuzz/target.h"
#include "tests/support/gguf_writer.h"

namespace artel::fuzz::gguf {

void read(const Bytes& bytes) {
  const Gguf file = parse_gguf(bytes);
  checkpoint::gguf_weights(file, checkpoint::GgufForm::numbers);
  checkpoint::gguf_weights(file, checkpoint::GgufForm::quantised);
  gguf_config(file);
  data::read_byte_pair(file);
}

std::vector<std::string> seeds() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  for (const char* key : {"embedding_length", "block_count", "attention.head_count",
                          "attention.head_count_kv", "context_length", "feed_forward_length"})
    writer.add(std::string("llama.") + key, uint32_t{1});
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> tokens = {"<a>"};
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(data::to_printable(std::string(1, static_cast<char>(byte))));
  std::vector<int32_t> kinds(tokens.size(), 1);
  kinds.front() = 3;
  writer.add("tokenizer.ggml.tokens", tokens);
  writer.add("tokenizer.ggml.token_type", kinds);
  writer.add("tokenizer.ggml.merges", std::vector<std::string>());
  writer.add_tensor("token_embd.weight", {32, 1}, 8, std::string(34, 'x'));
  writer.add_tensor("blk.0.attn_q.weight", {32, 2}, 3, std::string(40, 'x'));
  writer.add_tensor("blk.0.attn_k.weight", {32, 2}, 2, std::string(36, 'x'));
  writer.add_tensor("output_norm.weight", {2}, std::vector<float>{1, 2});
  return {writer.file()};
}

}  // namespace artel::fuzz::gguf
