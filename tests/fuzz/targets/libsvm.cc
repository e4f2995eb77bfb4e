#include "artel/data/tables/libsvm.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::libsvm {

void read(const Bytes& bytes) {
  data::SparseFile file(bytes);
  file.count_from(0);
  data::SparseSample sample;
  for (int64_t i = 0; i < file.size(); ++i) file.read(i, sample);
}

std::vector<std::string> seeds() {
  return {"+1 1:0.5 7:2 # note\n\n-1 3:1e-1\n", "0.25 0:1 1:-3.5e2\n1 2:4",
          "16777217 5:3e38 2:1 5:1e-400\n"};
}

}  // namespace artel::fuzz::libsvm
