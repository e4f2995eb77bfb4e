#include "artel/run/config/published_config.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::published_config {

void read(const Bytes& bytes) { parse_published_config(std::string(bytes.text()), bytes.name); }

std::vector<std::string> seeds() {
  return {R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, )"
          R"("n_positions": 1024, "vocab_size": 50257})",
          R"({"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6, )"
          R"("num_attention_heads": 12, "max_position_embeddings": 512, )"
          R"("intermediate_size": 1536, "hidden_act": "gelu", "vocab_size": 30522})"};
}

}  // namespace artel::fuzz::published_config
