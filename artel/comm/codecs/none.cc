// No compression: sends floats unchanged. The collective computes the exact canonical sum.
#include <cstring>

#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/rank_sum.h"
#include "artel/comm/codecs/unaligned.h"

namespace artel::comm {
namespace {

class None final : public Codec {
 public:
  std::string name() const override { return "none"; }
  size_t encoded_bytes(size_t floats) const override { return floats * sizeof(float); }

  void all_reduce(Group& group, const CodecContext&, ErrorFeedback&, std::span<float> values,
                  bool mean) const override {
    add_over_ranks(group, values, mean);
  }

 private:
  void write(const CodecContext&, std::span<const float> values, std::byte* out) const override {
    if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
  }
  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += scale * load_at<float>(in.data(), i);
  }
};

}  // namespace

CodecDefinition none_codec() {
  return {.name = "none", .make = [](auto) { return std::make_unique<None>(); }};
}

}  // namespace artel::comm
