#include "artel/checkpoint/onnx.h"
#include "tests/fuzz/target.h"
#include "tests/support/onnx_writer.h"

namespace artel::fuzz::onnx {

void read(const Bytes& bytes) {
  checkpoint::is_onnx(bytes);
  checkpoint::parse_onnx(bytes, [&](const std::string&) { return bytes; });
}

std::vector<std::string> seeds() {
  const std::string place =
      wire_field(1, std::string("location")) + wire_field(2, std::string("a"));
  return {onnx_model(
      {onnx_tensor("raw", 1, {2}, wire_field(9, std::string(8, 'x'))),
       onnx_tensor("listed", 7, {3},
                   wire_field(7, wire_number(1) + wire_number(2) + wire_number(3))),
       onnx_tensor("apart", 2, {4}, wire_field(13, place) + wire_field(14, uint64_t{1}))})};
}

}  // namespace artel::fuzz::onnx
