#include "artel/checkpoint/pieces.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::piece_index {

void read(const Bytes& bytes) {
  checkpoint::parse_piece_index(std::string(bytes.text()), bytes.name);
}

std::vector<std::string> seeds() {
  return {
      R"({"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors", )"
      R"("b": "model-00002-of-00002.safetensors"}})"};
}

}  // namespace artel::fuzz::piece_index
