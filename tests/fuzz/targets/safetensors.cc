#include "artel/checkpoint/safetensors.h"
#include "artel/base/file.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::safetensors {

void read(const Bytes& bytes) { checkpoint::parse_safetensors(bytes); }

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  checkpoint::write_safetensors(
      folder / "a",
      {{"w", Tensor::from<float>({2, 2}, {1, 2, 3, 4})}, {"b", Tensor({3}, DType::u8)}},
      {{"format", "pt"}});
  return {read_file(folder / "a")};
}

}  // namespace artel::fuzz::safetensors
