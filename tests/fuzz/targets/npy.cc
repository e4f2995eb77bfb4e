#include "artel/tensor/npy.h"
#include "artel/base/file.h"
#include "artel/base/zip.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::npy {

void read(const Bytes& bytes) {
  if (is_zip(bytes))
    parse_npz(bytes);
  else
    parse_npy(bytes);
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  const Tensor numbers = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  write_npy(folder / "a.npy", numbers);
  write_npz(folder / "a.npz", {{"x", numbers}, {"y", Tensor({4}, DType::i64)}});
  std::string fortran = read_file(folder / "a.npy");
  fortran.replace(fortran.find("False"), 5, "True ");
  return {read_file(folder / "a.npy"), read_file(folder / "a.npz"), fortran};
}

}  // namespace artel::fuzz::npy
