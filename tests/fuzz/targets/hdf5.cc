#include "artel/checkpoint/hdf5.h"
#include "tests/fuzz/target.h"
#include "tests/support/hdf5_writer.h"

namespace artel::fuzz::hdf5 {

void read(const Bytes& bytes) { checkpoint::parse_hdf5(bytes); }

std::vector<std::string> seeds() {
  Hdf5Writer writer;
  writer.add("conv1", "kernel:0", {1, 1, 2, 2}, {1, 2, 3, 4});
  writer.add("conv1", "bias:0", {2}, {5, 6});
  return {writer.finish()};
}

}  // namespace artel::fuzz::hdf5
