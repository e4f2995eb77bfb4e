#include "artel/base/file.h"
#include "artel/base/zip.h"
#include "artel/checkpoint/torch_file.h"
#include "tests/fuzz/target.h"
#include "tests/support/pickle.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::torch {

void read(const Bytes& bytes) {
  checkpoint::parse_torch(bytes);
  checkpoint::parse_torch(bytes, checkpoint::TorchPart::model);
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  const std::string object = "}q\1(" + pickle::text("state_dict") + "}(" +
                             pickle::text("module.w") +
                             pickle::tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3}) + "u" +
                             pickle::text("epoch") + pickle::integer(3) + "u";
  const std::string program = pickle::program(object), storage(24, 'x');
  write_zip(folder / "a", {{"a/data.pkl", {std::as_bytes(std::span(program))}},
                           {"a/data/0", {std::as_bytes(std::span(storage))}}});
  return {read_file(folder / "a"), pickle::legacy_file(object, "](" + pickle::text("0") + "e",
                                                       pickle::little(6, 8) + storage)};
}

}  // namespace artel::fuzz::torch
