#include "artel/checkpoint/tfjs.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::tfjs {

void read(const Bytes& bytes) {
  checkpoint::is_tfjs_manifest(bytes);
  checkpoint::parse_tfjs(bytes, [&](const std::string& name) {
    return make_bytes(std::string(12, '\x3c'), bytes.name + ": " + name);
  });
}

std::vector<std::string> seeds() {
  return {
      R"([{"paths": ["a", "b"], "weights": [{"name": "w", "shape": [2, 2], "dtype": "float32"},)"
      R"({"name": "q", "shape": [8], "dtype": "float32", "quantization":)"
      R"({"dtype": "uint8", "scale": 0.5, "min": -1}}]}])",
      R"({"weightsManifest": [{"paths": ["a"], "weights": [)"
      R"({"name": "h", "shape": [4], "dtype": "float32", "quantization": {"dtype": "float16"}},)"
      R"({"name": "i", "shape": [1], "dtype": "int32"}]}]})"};
}

}  // namespace artel::fuzz::tfjs
