// Runs that begin with a GGUF file.
#include <gtest/gtest.h>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/data/text/byte_pair.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/run.h"
#include "artel/run/samples/text_uses.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

constexpr uint64_t kLlamaWidth = 32, kLlamaHidden = 64, kLlamaTokens = 256;

// The tokens of a file without merges: the bytes, as GPT-2 prints them.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const bool shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    tokens.push_back(shown && byte < 127 ? std::string(1, static_cast<char>(byte))
                                         : fmt::format("<0x{:02X}>", byte));
  }
  tokens[' '] = "Ġ";
  tokens['\n'] = "Ċ";
  return tokens;
}

// A llama with random weights and long rows of positions.
std::string llama_file() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("llama.embedding_length", static_cast<uint32_t>(kLlamaWidth));
  writer.add("llama.block_count", uint32_t{1});
  writer.add("llama.attention.head_count", uint32_t{2});
  writer.add("llama.attention.head_count_kv", uint32_t{1});
  writer.add("llama.context_length", uint32_t{4096});
  writer.add("llama.feed_forward_length", static_cast<uint32_t>(kLlamaHidden));
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "smollm");
  writer.add("tokenizer.ggml.tokens", byte_tokens());
  writer.add("tokenizer.ggml.token_type", std::vector<int32_t>(kLlamaTokens, 1));
  writer.add("tokenizer.ggml.merges", std::vector<std::string>());
  Random random{3};
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& extents) {
    uint64_t elements = 1;
    for (const uint64_t extent : extents) elements *= extent;
    std::vector<float> values(elements);
    for (float& value : values) value = extents.size() == 1 ? 1.0F : 0.2F * random.normal();
    writer.add_tensor(name, extents, values);
  };
  const uint64_t w = kLlamaWidth;
  add("token_embd.weight", {w, kLlamaTokens});
  add("output_norm.weight", {w});
  add("blk.0.attn_norm.weight", {w});
  add("blk.0.ffn_norm.weight", {w});
  add("blk.0.attn_q.weight", {w, w});
  add("blk.0.attn_k.weight", {w, w / 2});
  add("blk.0.attn_v.weight", {w, w / 2});
  add("blk.0.attn_output.weight", {w, w});
  add("blk.0.ffn_gate.weight", {w, kLlamaHidden});
  add("blk.0.ffn_up.weight", {w, kLlamaHidden});
  add("blk.0.ffn_down.weight", {kLlamaHidden, w});
  return writer.file();
}

class GgufRunTest : public testing::Test {
 protected:
  GgufRunTest() { write_file_atomically(folder_ / "model.gguf", llama_file()); }

  std::string gguf() const { return (folder_ / "model.gguf").string(); }

  TemporaryFolder folder_;
};

// The configuration of docs/smaller_models.md.
TEST_F(GgufRunTest, AdaptersAreTrainedOnIt) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += fmt::format("{} of {}.\n", i % 7, i % 5);
  write_file_atomically(folder_ / "notes.txt", text);
  write_file_atomically(folder_ / "lora.toml", R"([data]
set = "text"
path = "notes.txt"
context = 16
tokenizer = "model.gguf"
[model]
name = "llama"
weights = "model.gguf"
width = 32
depth = 1
heads = 2
key_heads = 1
hidden = 64
positions = 4096
rotary_base = 10000
adapters = "lora 2"
[train]
freeze = ["model."]
batch_size = 4
steps = 10
optimizer = { name = "adamw", lr = 0.01 }
[cluster]
threads = 1
lanes = 1
)");
  const std::string out = (folder_ / "tuned").string();
  artel::Run(folder_ / "lora.toml", RunOptions{.out = out, .quiet = true}).train();
  const NamedTensors weights = open_run({.path = out}).trainer->weights();
  const Tensor* const b = find_tensor(weights, "lora.model.layers.0.mlp.up_proj.b");
  ASSERT_NE(b, nullptr);
  EXPECT_TRUE(std::ranges::any_of(b->values<float>(), [](float value) { return value != 0; }));
}

TEST_F(GgufRunTest, TheCacheIsAsLongAsTheText) {
  const auto write = [&](int64_t tokens, int64_t context) {
    std::string text;
    const WrittenText written =
        write_text({.source = gguf(),
                    .prompt = "abcd",
                    .options = {.tokens = tokens, .sampling = {.temperature = 0}},
                    .context = context,
                    .threads = 1},
                   [&](std::string_view more) {
                     text += more;
                     return true;
                   });
    return std::pair{written, text};
  };
  // Keys and values of one head of 16 floats.
  const auto [few, short_text] = write(4, 0);
  EXPECT_EQ(few.cache_bytes, 8U * 2 * 16 * sizeof(float));
  const auto [more, long_text] = write(20, 0);
  EXPECT_EQ(more.cache_bytes, 3 * few.cache_bytes);
  EXPECT_EQ(long_text.substr(0, short_text.size()), short_text);
  // The network rereads the end of the text when it has no positions left.
  const auto [limited, text] = write(20, 6);
  EXPECT_EQ(limited.cache_bytes, 6U * 2 * 16 * sizeof(float));
  EXPECT_EQ(limited.tokens, 20);
  EXPECT_THROW(write(20, 4), Error);
}

}  // namespace
}  // namespace artel
