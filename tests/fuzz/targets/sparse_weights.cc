#include "artel/predict/sparse_weights.h"

#include "artel/base/file.h"
#include "artel/base/with_where.h"
#include "artel/checkpoint/safetensors.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::sparse_weights {

void read(const Bytes& bytes) {
  with_where("fuzz", [&] { with_zeros(checkpoint::parse_safetensors(bytes).tensors); });
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  Tensor sparse({16, 40});
  for (int64_t i = 0; i < sparse.elements(); i += 13) sparse.values<float>()[i] = 1.5F;
  checkpoint::write_safetensors(folder / "a", without_zeros({{"w", sparse}, {"b", Tensor({3})}}),
                                {});
  return {read_file(folder / "a")};
}

}  // namespace artel::fuzz::sparse_weights
